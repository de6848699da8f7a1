"""``jaxgate store``: move the programs that git has into the project's store."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from jaxgate.cli.console import refuse, say, tell
from jaxgate.cli.pytest_arguments import IniError, usual_folder, usual_programs
from jaxgate.keep.baselines import read_all
from jaxgate.keep.programs import move_to, named_by, open_programs
from jaxgate.model.outcome import UsageError
from jaxgate.model.program import UnreachableError
from jaxgate.model.words import plural


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Declare ``jaxgate store``."""
    command(
        "store",
        lambda _: store(Path()),
        help="move the programs of baselines out of git into the store that perf_programs names",
        description="Write each program that a baseline names into the store, read it back, then remove the file. Exit codes: "
        "0 all are there, 1 one is missing here and there, 2 the store does not answer, or none is named.",
    )


def store(start: Path) -> int:
    """Move a project's programs into its store; gives the exit code."""
    try:
        root, url = usual_folder(start), usual_programs(start)
        shelf = open_programs(root, url).shelf
        if shelf is None:
            return refuse("store", 'expected perf_programs = "s3://bucket/folder" in pyproject.toml, found none', 2)
        baselines, unreadable = read_all(root)
        if unreadable:
            return refuse("store", f"{unreadable[0].path} is unreadable: {unreadable[0].reason}", 1)
        moved, missing = move_to(shelf, root, named_by(baselines.values()))
    except (IniError, UsageError, UnreachableError) as error:
        return refuse("store", str(error), 2)
    tell(moved=[name for name, _ in moved], missing=[list(one) for one in missing])
    megabytes = sum(size for _, size in moved) / 1e6
    say(
        f"jaxgate store: {plural(len(moved), 'program')} moved to {url}, {megabytes:.1f} MB; commit that they are gone here"
    )
    for fingerprint, digest in missing:
        say(f"missing here and there: {fingerprint} {digest[:8]}")
    return 1 if missing else 0
