"""``jaxgate check``: a check of the commit on GitHub, in progress at first, and red unless the run left something green."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from jaxgate.cli.console import refuse, say, tell
from jaxgate.ext.check.text import Conclusion, conclude
from jaxgate.keep.results import RESULTS, page_of, read_run_file


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Declare ``jaxgate check``."""
    checking = command(
        "check",
        lambda known: check(known.when, known.name, Path(known.artifacts)),
        help="set a check of the commit on GitHub, which is red where a run was lost",
        description="In a job of GitHub's with the permission checks: write and GITHUB_TOKEN. `begin` sets the check to in "
        "progress, `end` gives it its conclusion: green only if the folder has results of this commit that say so. Exit "
        "codes: 0 begun or green, 1 red, 2 GitHub did not take it.",
    )
    checking.add_argument("when", choices=("begin", "end"))
    checking.add_argument("--name", default="jaxgate", metavar="NAME", help="one for each job (default: jaxgate)")
    checking.add_argument("--artifacts", default="perf-artifacts", metavar="DIR", help="default: perf-artifacts")


def check(
    when: str,
    name: str,
    folder: Path,
    environ: Mapping[str, str] = os.environ,
    wait: Callable[[float], None] = time.sleep,
) -> int:
    """Begin or end the check of what the run left in ``folder``; gives the exit code."""
    from jaxgate.ext.check.github import CheckError, Checks  # noqa: PLC0415 - it imports urllib

    try:
        checks = Checks(name, environ, wait)
        if when == "begin":
            checks.begin()
            tell(check=name)
            say(f"jaxgate check: {name}: in progress")
            return 0
        found = _left(folder, environ["GITHUB_SHA"])
        checks.end(found)
    except CheckError as error:
        return refuse("check", str(error), 2)
    tell(check=name, passed=found.passed, title=found.title)
    say(f"jaxgate check: {name}: {'success' if found.passed else 'failure'}: {found.title}")
    return 0 if found.passed else 1


def _left(folder: Path, commit: str) -> Conclusion:
    """The conclusion of what a run left."""
    try:
        results = read_run_file(folder / RESULTS)
    except (OSError, ValueError) as error:
        return conclude(None, "", commit, f"The run left no results: it was killed, or never begun, or lost ({error}).")
    return conclude(results, page_of(folder), commit)
