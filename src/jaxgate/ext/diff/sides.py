"""The sides of ``jaxgate diff``: what a run left, what is stored of some hardware, or what a revision has stored."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from jaxgate.ext.diff.model import DiffSide
from jaxgate.ext.history.model import HistoryPoint
from jaxgate.ext.history.store import history_point
from jaxgate.ext.history.text import when
from jaxgate.judge.figures import figures_of_baseline
from jaxgate.keep.baselines import read_all
from jaxgate.keep.git import revision_files
from jaxgate.keep.results import RESULTS, read_results
from jaxgate.keep.strict import CorruptBaselineError
from jaxgate.model.baseline import Baseline
from jaxgate.model.machine import split_folder_name
from jaxgate.model.numbers import FACT_NAMES
from jaxgate.model.outcome import RunRecord, UsageError
from jaxgate.model.words import plural, shortlist

MAX_NAMED = 6


def side_of_results(name: str, path: Path) -> DiffSide:
    """What a run left: its ``results.json``, or the folder that has it.

    Raises:
        UnreadableResultsError: If it cannot be read.
        UsageError: If no case of it has figures: an earlier jaxgate wrote none.
    """
    run = read_results(path)
    cases = _grouped(history_point(case, run, run.moment) for case in run.cases if case.figures is not None)
    if not cases:
        raise UsageError(f"{name}: expected figures of cases, found none; run the suite again with this jaxgate")
    return DiffSide(name=name, about=_about_run(run), cases=cases)


def side_of_hardware(name: str, root: Path) -> DiffSide | None:
    """What is stored of some hardware; ``None`` if no baseline is of it.

    ``name`` is a folder of baselines (``cpu-amd-epyc-1-jax-0.12``), or as much of it as names the hardware (``cpu-amd-epyc``,
    every number of devices, of the newest release line), or a target (``tpu:v5e:2x4``).

    Raises:
        CorruptBaselineError: If a baseline cannot be trusted.
    """
    wanted = name.replace(":", "-")
    folders = {path.name: split for path in root.glob("*") if path.is_dir() and (split := split_folder_name(path.name))}
    key, line = split_folder_name(wanted) or (wanted, "")
    lines = {folder: own for folder, (slug, own) in folders.items() if key in (slug, slug.rpartition("-")[0])}
    if not lines:
        return None
    newest = line or max(lines.values(), key=_as_numbers)
    chosen = sorted(folder for folder, own in lines.items() if own == newest)
    baselines = [baseline for folder in chosen for baseline in _read(root, folder)]
    others = sorted({*lines.values()} - {newest}, key=_as_numbers)
    more = f"; there is jax {' and '.join(others)}, too: {key}-jax-{others[-1]}" if others and not line else ""
    about = f"{plural(len(baselines), 'baseline')} of {shortlist(chosen, MAX_NAMED)}{more}"
    return DiffSide(name=name, about=about, cases=_cases(baselines)) if baselines else None


def side_of_commit(name: str, points: Sequence[HistoryPoint]) -> DiffSide | None:
    """What the history remembers of a commit; ``None`` if no case of it has facts."""
    cases = _grouped(points)
    if not cases:
        return None
    moments = sorted({when(point.moment) or "a day that is not known" for point in points})
    days = moments[0] if len(moments) == 1 else f"{moments[0]} to {moments[-1]}"
    hardware = sorted({point.folder for point in points if point.folder})
    about = f"history of {(points[0].commit or '')[:10]}, {days}, {shortlist(hardware, MAX_NAMED)}"
    return DiffSide(name=name, about=about, cases=cases)


def side_of_revision(name: str, root: Path) -> DiffSide | None:
    """What a revision of git has stored, of all hardware; ``None`` if git does not know the revision, or it has nothing.

    Raises:
        UsageError: If a baseline of it cannot be read; of another schema, for example.
    """
    with revision_files(root, name) as found:
        if found is None:
            return None
        try:
            baselines = _read(found.folder, "*")
        except CorruptBaselineError as error:
            file = f"{found.commit[:10]}:{error.path.relative_to(found.folder)}"
            raise UsageError(f"{name}: {file}: {error.reason.partition(', which')[0]}") from None
    about = f"{plural(len(baselines), 'baseline')} of {found.commit[:10]} of {found.date}"
    return DiffSide(name=name, about=about, cases=_cases(baselines)) if baselines else None


def _read(root: Path, folder: str) -> list[Baseline]:
    found, unreadable = read_all(root, folder)
    if unreadable:
        raise unreadable[0]
    return list(found.values())


def _cases(baselines: Iterable[Baseline]) -> dict[str, tuple[HistoryPoint, ...]]:
    return _grouped(
        HistoryPoint(
            run="",
            moment=baseline.provenance.date,
            case=baseline.case,
            folder=baseline.folder,
            figures=figures_of_baseline(baseline),
            program=baseline.fingerprints.program,
            environment=baseline.environment,
        )
        for baseline in baselines
    )


def _grouped(found: Iterable[HistoryPoint]) -> dict[str, tuple[HistoryPoint, ...]]:
    """By case; one without facts is left out, as it has nothing that could differ."""
    cases: dict[str, tuple[HistoryPoint, ...]] = {}
    for one in found:
        if FACT_NAMES & one.figures.keys():
            cases[one.case] = (*cases.get(one.case, ()), one)
    return cases


def _as_numbers(line: str) -> tuple[int, ...]:
    return tuple(map(int, line.split(".")))


def _about_run(run: RunRecord) -> str:
    """When, of which commit, with which jax, on which hardware."""
    jax = Counter(case.figures.environment.get("jax", "?") for case in run.cases if case.figures is not None)
    hardware = sorted({case.hardware for case in run.cases if case.hardware})
    commit = f" at {run.commit[:10]}" if run.commit else ""
    ends = "green" if run.green else "not green"
    return f"run of {when(run.moment) or 'a day that is not known'}{commit}, jax {', '.join(jax)}, {shortlist(hardware, MAX_NAMED)}, {ends}"


def is_results(path: Path) -> bool:
    """Whether a path is a file, or a folder that a run left."""
    return path.is_file() or (path.is_dir() and os.path.lexists(path / RESULTS))
