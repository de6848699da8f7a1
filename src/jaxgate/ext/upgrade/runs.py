"""What ``jaxgate upgrade`` runs: the suite once in each environment without a clock, then launches of what differs.

Facts need one process of each side. Where a call may spend something else there, or a phase looks longer, launches follow,
in pairs: one of each side, in random order. A case that is not slower in one pair is never slower in all of them, so that
it is not launched again; what stays is launched until chance alone explains it once in 12,870 (``WORSE_LAUNCHES``).
"""

from __future__ import annotations

import random
import secrets
import signal
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from jaxgate.ext.upgrade.environment import EnvironmentSpec
from jaxgate.ext.upgrade.environment_runs import Name, both_sides, refuse_lost_settings
from jaxgate.ext.upgrade.judge import Both, asks_for_launches, find_both
from jaxgate.ext.upgrade.launches import may_be_faster, may_be_slower
from jaxgate.ext.upgrade.model import SideNotes, SideRecord, TestNote
from jaxgate.ext.upgrade.notes import read_notes
from jaxgate.keep.baselines import read_all
from jaxgate.model.baseline import Baseline, Launches
from jaxgate.model.outcome import UsageError
from jaxgate.model.words import plural
from jaxgate.processes.pytest_child import BrokenRecordingError, RecordSelection, Selection, Side, record_selection
from jaxgate.settings import NOTES_INTO

WHAT = "jaxgate upgrade"
WORSE_LAUNCHES = 8
"""Of each side, for what is slower: chance alone separates them once in 12,870, as a suite asks hundreds of times."""
MAX_DEATHS = 5
"""Processes of a side that may die before it is given up."""
_FACTS = ("--benchmark-disable", "--continue-on-collection-errors")


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeRecord:
    """All that was recorded."""

    here: SideRecord  # what this environment recorded
    there: SideRecord  # what the other one did
    launches: Mapping[str, Launches]  # of the cases that were timed, the other environment's as `here`


def record_upgrade(
    project: Path,
    asked: EnvironmentSpec,
    chosen: Selection,
    tests: Collection[str],
    *,
    launches: int,
    into: Path,
    cache: Path,
    progress: Callable[[str], None],
    here: Mapping[str, str],
    record: RecordSelection = record_selection,
    seed: int | None = None,
) -> UpgradeRecord:
    """Record the suite in both environments, and launch what differs.

    ``launches`` are of each side, for what is faster; what is slower there is launched eight times; 0 compares facts only.
    ``cache`` keeps environments made for requirements, and what both sides remember of references. ``seed`` draws the order
    of launches.

    Raises:
        UsageError: If the other environment cannot be made, or one of them records nothing.
    """
    progress("making the other environment ready")
    sides = both_sides(project, asked, WHAT, here=here, made=cache, caches=(cache / "references",) * 2)
    found: dict[Name, SideRecord] = {}
    for name in sides:
        progress(f"recording the facts of {plural(len(tests), 'test')} {name}")
        found[name] = record_facts(sides[name], chosen, tests, into / f"facts-{name}", record)
        failed = (note for note in found[name].notes.tests.values() if note.outcome == "failed")
        reason = next((f": {note.test}: {note.why}" for note in failed), "")
        if not found[name].baselines and (name == "here" or not reason):  # what cannot run there is an answer
            raise UsageError(f"no case was recorded {name}{reason or ': no test gates'}")
    if found["there"].baselines:
        refuse_lost_settings(asked, [into / "facts-there"])
    both = find_both(found["here"], found["there"])
    taken = _launch(sides, both, launches, into, progress=progress, record=record, seed=seed)
    return UpgradeRecord(here=found["here"], there=found["there"], launches=taken)


def record_facts(
    side: Side, chosen: Selection, tests: Collection[str], into: Path, record: RecordSelection
) -> SideRecord:
    """Record the facts of the selected tests of one side. A test in which its process dies is noted, the rest goes on.

    Raises:
        UsageError: If the side cannot be collected, or its processes die again and again.
    """
    into.mkdir()
    notes = into / "notes.jsonl"
    variables = {**side.environment, NOTES_INTO: str(notes)}
    asked = replace(side, environment=variables, arguments=(*side.arguments, *_FACTS))
    died: dict[str, TestNote] = {}
    for _ in range(MAX_DEATHS + 1):
        try:
            record(asked, chosen, into)
            break
        except BrokenRecordingError as error:
            known = _read(notes)
            unfinished = [test for test in known.begun if test not in known.tests and test not in died]
            if not unfinished:
                raise
            test = unfinished[-1]
            died[test] = TestNote(test=test, outcome="failed", why=f"its process ended with {_how(error.status)}")
            # pytest refuses a test by its name where its file could not be imported: that is noted already
            over = {*known.begun, *(name for name, note in known.tests.items() if note.outcome == "failed")}
            left = [one for one in sorted(tests) if not {one, one.partition("::")[0]} & over]
            if not left:
                break
            chosen = Selection(tuple(left), "", "")
    else:
        raise UsageError(f"{MAX_DEATHS + 1} processes died, the last one in {test}")
    known = _read(notes)
    return SideRecord(baselines=_baselines(into), notes=replace(known, tests={**known.tests, **died}))


def _launch(
    sides: Mapping[Name, Side],
    both: Mapping[str, Both],
    count: int,
    into: Path,
    *,
    progress: Callable[[str], None],
    record: RecordSelection,
    seed: int | None,
) -> dict[str, Launches]:
    """Launch what may be slower or faster there, pair by pair, until nothing is open."""
    draw = random.Random(secrets.randbits(32) if seed is None else seed)  # noqa: S311 - an order, not a secret
    tests = {case: one.here.test for case, one in both.items() if asks_for_launches(one)}
    taken: dict[str, dict[Name, list[Baseline]]] = {case: {"here": [], "there": []} for case in tests}
    lost: dict[str, str] = {}
    still = set(tests)
    for number in range(max(WORSE_LAUNCHES, count) if count else 0):
        if not still:
            break
        order = list(sides)
        draw.shuffle(order)
        for name in order:
            progress(f"launch {number + 1} {name}, of {plural(len(still), 'case')} that may differ")
            folder = into / f"launch-{name}-{number}"
            folder.mkdir()
            asked = tuple(sorted({tests[case] for case in still}))
            failed: Mapping[str, str] = {}
            try:
                failed = record(sides[name], Selection(asked, "", ""), folder)
            except BrokenRecordingError as error:
                failed = dict.fromkeys(asked, f"its process ended with {_how(error.status)}")
            found = _baselines(folder)
            for case in still:
                if case in found and tests[case] not in failed:
                    taken[case][name].append(found[case])
                else:
                    why = failed.get(tests[case], "it recorded nothing, and nothing says why")
                    lost.setdefault(case, f"launch {number + 1} {name}: {why}")
        still = {case for case in still if case not in lost and _is_open(taken[case], number + 1, count)}
    return {case: _pairs(one, lost.get(case, "")) for case, one in taken.items()}


def _is_open(taken: Mapping[Name, Sequence[Baseline]], number: int, count: int) -> bool:
    """Whether another launch can still say something."""
    there, here = taken["there"], taken["here"]
    return may_be_slower(there, here) or (number < count and may_be_faster(there, here))


def _pairs(taken: Mapping[Name, Sequence[Baseline]], lost: str) -> Launches:
    """The launches of a case; none where one of them failed."""
    if lost:
        return Launches(here=(), there=(), why_not=lost)
    return Launches(here=tuple(taken["there"]), there=tuple(taken["here"]), why_not="")


def _baselines(folder: Path) -> dict[str, Baseline]:
    """What a folder holds, by case; a file that cannot be trusted counts as not recorded."""
    return {one.case: one for one in read_all(folder)[0].values()}


def _read(notes: Path) -> SideNotes:
    try:
        return read_notes(notes)
    except (OSError, ValueError) as error:
        raise UsageError(f"what a process noted cannot be read: {error}") from None


def _how(status: int) -> str:
    try:
        return f"the signal {signal.Signals(-status).name}" if status < 0 else f"exit code {status}"
    except ValueError:
        return f"the signal {-status}"
