"""``jaxgate diff A B``: two runs, revisions or kinds of hardware beside each other. Needs no JAX and no device."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from jaxgate.cli.console import refuse, say, tell, write
from jaxgate.cli.pytest_arguments import IniError, history_place, usual_folder
from jaxgate.ext.diff.judge import diff_sides
from jaxgate.ext.diff.model import DiffSide, RunDiff
from jaxgate.ext.diff.sides import is_results, side_of_commit, side_of_hardware, side_of_results, side_of_revision
from jaxgate.ext.diff.text import diff_json, diff_lines, diff_page, diff_summary
from jaxgate.ext.history.store import HistoryError, HistoryStore, find_place
from jaxgate.ext.page.writing import write_page
from jaxgate.keep.git import COMMIT, commit_of
from jaxgate.keep.results import UnreadableResultsError
from jaxgate.keep.strict import CorruptBaselineError
from jaxgate.model.outcome import UsageError

EXPECTED = (
    "expected results.json or the folder that has it, a revision of git, hardware as the folders of baselines name it "
    "(cpu-amd-epyc, cpu-amd-epyc-1-jax-0.12) or a target (tpu:v5e:2x4), found {name!r}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """How it is printed."""

    everything: bool = False  # all cases, and all facts of each
    as_json: bool = False  # for machines
    as_markdown: bool = False  # for a pull request
    page: Path | None = None  # an HTML page; `None` for none


def diff(first: str, second: str, folder: str | None, shown: Shown) -> int:
    """Compare two sides, and print what differs.

    Args:
        first: One side.
        second: The other.
        folder: Of the baselines; ``None`` for what pytest would take.
        shown: How it is printed.

    Returns:
        The exit code: 0 if both could be compared, whatever differs; 2 if one could not be read, or they share no case.
    """
    try:
        root = Path(folder) if folder else usual_folder(Path.cwd())
        found = diff_sides(_side(first, root), _side(second, root))
    except (IniError, UsageError, UnreadableResultsError, CorruptBaselineError) as error:
        return refuse("diff", str(error), 2)
    if not found.cases:
        return refuse("diff", f"{first} and {second} share no case: {_alone(found)}", 2)
    if shown.page is not None:
        from jaxgate.ext.diff.page import diff_document  # noqa: PLC0415 - imports the templates

        return write_page("diff", shown.page, lambda: diff_document(found, diff_summary(found)))
    if shown.as_json:
        tell(**diff_json(found))
        return 0
    if shown.as_markdown:
        write(diff_page(found))
        return 0
    for line in diff_lines(found, everything=shown.everything):
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


def _alone(found: RunDiff) -> str:
    return f"{len(found.only_first)} on the first side, {len(found.only_second)} on the second"
