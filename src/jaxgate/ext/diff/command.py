"""What ``jaxgate diff`` takes on its command line; the comparison itself is loaded once it is asked for."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from jaxgate.cli.console import refuse


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Declare ``jaxgate diff``."""
    comparing = command(
        "diff",
        _diff,
        help="show two runs, two revisions or two kinds of hardware side by side",
        description="Hold the facts of each case on one side against those on the other: what a run left (results.json or its "
        "folder), a revision of git (a commit, a branch; what the history has of it, or what it stores), or what is stored of some hardware (cpu-amd-epyc, "
        "cpu-amd-epyc-1-jax-0.12, tpu:v5e:2x4). Times are shown, not judged. Exit codes: 0 compared, whatever differs, 2 a "
        "side cannot be read or no case is on both.",
    )
    comparing.add_argument("first", metavar="A", help="one side")
    comparing.add_argument("second", metavar="B", help="the other side")
    comparing.add_argument("--all", action="store_true", help="all cases that differ, with all of their facts")
    form = comparing.add_mutually_exclusive_group()
    form.add_argument("--markdown", action="store_true", help="everything, for a pull request")
    form.add_argument("--page", type=Path, default=None, metavar="FILE", help="everything, as an HTML page")
    comparing.add_argument("--baselines", default=None, metavar="DIR", help="folder of the baselines")


def _diff(known: argparse.Namespace, rest: list[str]) -> int:
    from jaxgate.ext.diff.run import Shown, diff  # noqa: PLC0415 - loads what `jaxgate --help` does without

    if rest:
        return refuse("diff", f"unknown arguments {' '.join(rest)}", 2)
    shown = Shown(everything=known.all, as_json=known.json, as_markdown=known.markdown, page=known.page)
    return diff(known.first, known.second, known.baselines, shown)
