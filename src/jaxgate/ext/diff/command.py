"""``jaxgate diff A B``: two runs, revisions or kinds of hardware beside each other. Needs no JAX and no device."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path

from jaxgate.cli.console import refuse, say, tell, write
from jaxgate.cli.pytest_arguments import IniError, history_place, usual_folder
from jaxgate.ext.diff.judge import diff_sides
from jaxgate.ext.diff.model import DiffSide
from jaxgate.ext.diff.sides import is_results, side_of_commit, side_of_hardware, side_of_results, side_of_revision
from jaxgate.ext.diff.text import diff_json, diff_lines, diff_page, diff_summary
from jaxgate.ext.history.store import HistoryError, HistoryStore, find_place
from jaxgate.ext.page.command import write_page
from jaxgate.keep.git import COMMIT, commit_of
from jaxgate.keep.results import UnreadableResultsError
from jaxgate.keep.strict import CorruptBaselineError
from jaxgate.model.outcome import UsageError

EXPECTED = (
    "expected results.json or the folder that has it, a revision of git, hardware as the folders of baselines name it "
    "(cpu-amd-epyc, cpu-amd-epyc-1-jax-0.12) or a target (tpu:v5e:2x4), found {name!r}"
)


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


def _diff(known: argparse.Namespace) -> int:
    try:
        root = Path(known.baselines) if known.baselines else usual_folder(Path.cwd())
        found = diff_sides(_side(known.first, root), _side(known.second, root))
    except (IniError, UsageError, UnreadableResultsError, CorruptBaselineError) as error:
        return refuse("diff", str(error), 2)
    if not found.cases:
        sides = f"{len(found.only_first)} on the first side, {len(found.only_second)} on the second"
        return refuse("diff", f"{known.first} and {known.second} share no case: {sides}", 2)
    if known.page is not None:
        from jaxgate.ext.diff.page import diff_document  # noqa: PLC0415 - imports the templates

        return write_page("diff", known.page, lambda: diff_document(found, diff_summary(found)))
    if known.json:
        tell(**diff_json(found))
    elif known.markdown:
        write(diff_page(found))
    else:
        for line in diff_lines(found, everything=known.all):
            say(line)
    return 0


def _side(name: str, root: Path) -> DiffSide:
    path = Path(name)
    if is_results(path):
        return side_of_results(name, path)
    finders: tuple[Callable[[str, Path], DiffSide | None], ...] = (side_of_hardware, _remembered, side_of_revision)
    for find in finders:
        if side := find(name, root):
            return side
    raise UsageError(EXPECTED.format(name=name))


def _remembered(name: str, root: Path) -> DiffSide | None:
    """What the history has of a commit."""
    commit = commit_of(root, name) or name
    named, folder = history_place(Path.cwd(), os.environ)
    try:
        place = find_place(named, folder)
        if place is None or not COMMIT.fullmatch(commit):
            return None
        points = HistoryStore(place).at_commit(commit)
    except HistoryError as error:
        raise UsageError(f"the history cannot be asked for {name}: {error}") from None
    return side_of_commit(name, points)
