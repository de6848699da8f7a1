"""Baselines recorded elsewhere become those of a project: for hardware and a release line that have none yet."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path

from jaxgate.keep.baselines import baseline_files, read_baseline, save_baseline
from jaxgate.keep.log import append_log
from jaxgate.keep.programs import ProgramStore
from jaxgate.model import ProgramRecord


def adopt_revision(
    other: Path, into: Path, folder: str, *, without: Collection[str], serves: Callable[..., bool], why: str
) -> list[str]:
    """Copy the baselines of one hardware and release line with their programs, and log it.

    Args:
        other: Folder of baselines that holds them.
        into: Folder of baselines that has none of these.
        folder: The one of hardware and release line.
        without: Names of cases whose baselines are left there.
        serves: Whether a stored program may stand for a new one of its structure: ``serves(stored, content=new)``.
        why: The reason, for the log.

    Returns:
        The names of the cases; none if there are such baselines already, which are somebody's decision.
    """
    if (into / folder).exists():
        return []
    programs, kept = ProgramStore(other), ProgramStore(into)
    names = []
    for path in baseline_files(other, folder):
        baseline = read_baseline(path)
        if baseline.case in without:
            continue
        contents = {about.digest: programs.load(structure, about.digest) for structure, about in baseline.programs}
        known = {digest: content for digest, content in contents.items() if content is not None}
        if len(known) < len(contents):
            continue
        save_baseline(into, baseline.stored_as(partial(_copy, kept, known, serves)))
        names.append(baseline.case)
    if names:
        append_log(into, created=names, refreshed=[], folder=folder, why=why)
    return names


def _copy(
    into: ProgramStore,
    contents: Mapping[str | None, bytes],
    serves: Callable[..., bool],
    structure: str,
    about: ProgramRecord,
) -> str:
    """Save a program before its baseline, which never names a file that is not there; gives its digest there."""
    content = contents[about.digest]
    return into.save(structure, content, partial(serves, content=content))
