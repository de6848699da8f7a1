"""The end of a run: its exit status, what it leaves behind, and what it finds wrong beside its cases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING

from jaxgate.engine.run.orphans import Orphans, add_renames, find_idle_entries, find_orphans
from jaxgate.ext import parts
from jaxgate.ext.energy.model import Energy
from jaxgate.ext.energy.text import whole_energy
from jaxgate.ext.history.budget import worst_accepted
from jaxgate.ext.history.text import accepted_figure
from jaxgate.keep.git import ignored, uncommitted
from jaxgate.keep.inventory import adopt_revision
from jaxgate.keep.log import LOG_FOLDER, append_log
from jaxgate.keep.programs import collect
from jaxgate.keep.strict import CorruptBaselineError
from jaxgate.model.decision import Status
from jaxgate.model.inventory import StoreChanges
from jaxgate.model.outcome import Review
from jaxgate.model.verdict import Verdict
from jaxgate.model.workload import Collection
from jaxgate.report.text import describe_finding

if TYPE_CHECKING:
    from jaxgate.engine.run.session import GateSession


class Exit(IntEnum):
    """pytest's exit codes, as far as a run of gates ends with them."""

    OK = 0
    FAILED = 1
    INTERRUPTED = 2


UNFIT = Exit.INTERRUPTED
"""Nothing but the machine failed, or too little was decided for this to be a gate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExitStatus:
    """How a run ends."""

    code: int  # its exit code
    uncommitted: bool = False  # whether nothing is wrong but that the last commit lacks baselines
    undecided: bool = False  # whether nothing failed, and too little was decided
    only_machine: bool = False  # whether tests failed for no other reason than that the machine is the suspect
    # failed cases of tests that pytest counts as passed or xfailed: their test is marked xfail, or catches the failure
    uncounted: tuple[str, ...] = ()


def exit_status(
    code: int, session: GateSession, *, tests_failed: int, wrong: bool, missing: bool, uncommitted: bool = False
) -> ExitStatus:
    """The exit status of a run that came to its end; ``code`` is what pytest would give.

    ``wrong`` is something beside the tests: orphans under CI, a clash of names, nothing judged. ``missing`` means that
    a gate was not judged where each must be; ``uncommitted`` that it was judged by baselines that the last commit does
    not have.
    """
    if wrong:
        return ExitStatus(code=Exit.FAILED if code == Exit.OK else code)
    failed = tuple(verdict.case for verdict in session.result.verdicts if verdict.fails)
    if code == Exit.OK and session.settings.strict and failed:
        return ExitStatus(code=Exit.FAILED, uncounted=failed)
    if code == Exit.OK and missing:
        return ExitStatus(code=UNFIT)
    if code == Exit.OK and unfit(session):
        return ExitStatus(code=UNFIT, undecided=True)
    accused = session.result.accused
    if code == Exit.FAILED and accused and accused == tests_failed:
        return ExitStatus(code=UNFIT, only_machine=True)
    if code == Exit.OK and uncommitted:
        return ExitStatus(code=Exit.FAILED, uncommitted=True)
    return ExitStatus(code=code)


def unfit(session: GateSession) -> str:
    """Why a run did not gate; empty if it did."""
    settings, verdicts = session.settings, session.result.verdicts
    share, most = undecided_share(session), settings.max_undecided
    if share > most:
        what = "UNDECIDED or failed in the other revision" if lost(session) else "UNDECIDED"
        return f"{share:.0%} of the cases are {what}, {most:.0%} may be: this machine is unfit to gate"
    nothing = all(verdict.status in (Status.NO_BASELINE, Status.STALE_BASELINE) for verdict in verdicts)
    if settings.against and settings.strict and verdicts and nothing:
        return f"nothing could be compared: {settings.against[:10]} has none of these cases, or with other arguments"
    return ""


def undecided_share(session: GateSession) -> float:
    """Share of the cases that ended UNDECIDED, would have without a waiver, or failed in the other revision.

    Cases that no machine could decide are left out: they say nothing of this one.
    """
    failed_there = lost(session)
    left_open = [
        verdict.status is Status.UNDECIDED
        or verdict.case in failed_there
        or (session.settings.against and verdict.status is Status.STALE_BASELINE)
        or (
            verdict.status is Status.WAIVED
            and Status.UNDECIDED in {verdict.time.status, *(finding.status for finding in verdict.findings)}
        )
        for verdict in session.result.verdicts
        if not verdict.undecided_anywhere
    ]
    return sum(left_open) / max(1, len(left_open))


def lost(session: GateSession) -> dict[str, str]:
    """Cases that the other revision has too and could not record, with the reason: nothing compares them."""
    tests = session.result.tests
    return {
        verdict.case: session.failed_there[tests[verdict.case]]
        for verdict in session.result.verdicts
        if verdict.status is Status.NO_BASELINE and tests.get(verdict.case) in session.failed_there
    }


_LOST = (Status.REGRESSED, Status.SLOWER)
IGNORED = "ignored by git: git add --force"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What the end of a run found and did."""

    status: ExitStatus  # how it ends
    changes: StoreChanges = field(default_factory=StoreChanges)  # what it leaves in the folder of the baselines
    # what became of baselines of another revision, by hardware
    adopted: Mapping[str, str] = field(default_factory=dict)
    review: Review | None = None  # what came of asking about each case that moved
    orphans: Orphans = field(default_factory=Orphans)  # baselines without a test
    wrong: tuple[str, ...] = ()  # what the capabilities found wrong beside the cases
    # waivers and accepted drifts that nobody needs any more, each with the reason
    idle_entries: tuple[tuple[str, str], ...] = ()


def end_unfinished(session: GateSession, code: int) -> Ending:
    """End a run that something outside its tests ends: what it recorded is logged, nothing is looked for."""
    write_log(session)
    return Ending(status=ExitStatus(code=code), changes=tidy(session))


def end_session(session: GateSession, code: int, *, review: Review | None) -> Ending:
    """Leave what the run found: its log, its baselines, its history."""
    write_log(session)
    changes = tidy(session)
    adopted = adopt_baselines(session)
    session.evidence.finish()
    return Ending(status=ExitStatus(code=code), changes=changes, adopted=adopted, review=review)


def look_around(
    session: GateSession, ending: Ending, collection: Collection, *, tests_failed: int, wrong: bool
) -> Ending:
    """Look for what is wrong beside the cases, and decide how the run ends."""
    settings, result = session.settings, session.result
    orphans = find_orphans(session, collection)
    result.verdicts[:] = add_renames(result.verdicts, orphans.renamed)
    idle = find_idle_entries(session, collection)
    found = tuple(line for capability in parts("check") for line in capability.wrong_with(session))
    wrong = wrong or bool(orphans.unreadable or result.clashes or found)
    wrong = wrong or (settings.strict and bool(orphans) and not settings.against)
    missing = settings.demands_all and bool(result.not_judged(collection.selected))
    uncommitted = settings.demands_all and bool(ending.changes.needs_commit)
    status = exit_status(
        ending.status.code, session, tests_failed=tests_failed, wrong=wrong, missing=missing, uncommitted=uncommitted
    )
    return replace(ending, status=status, orphans=orphans, idle_entries=tuple(idle), wrong=found)


def tidy(session: GateSession) -> StoreChanges:
    """Remove the programs that refreshed baselines no longer name, and find what is to be committed.

    At the end, and in the one process that knows all verdicts: while several workers record, a program that nothing
    names yet may be one whose baseline is being written.
    """
    if session.settings.other_side or session.settings.elsewhere:
        return StoreChanges()
    removed: tuple[tuple[Path, int], ...] = ()
    why_kept = ""
    replaced = {
        one for verdict in session.result.verdicts if verdict.baseline.recorded for one in verdict.baseline.replaced
    }
    if replaced:
        try:
            removed = tuple(collect(session.settings.baselines, replaced))
        except CorruptBaselineError as error:
            why_kept = f"{session.short(error.path)} {error.reason}"
        except OSError as error:
            why_kept = str(error)
    return StoreChanges(removed=removed, why_kept=why_kept, needs_commit=needs_commit(session))


def needs_commit(session: GateSession) -> tuple[str, ...]:
    """The files under the baselines that the last commit does not have as they are; empty if none matters here.

    A run that recorded is told in any case. Under CI one that only judged is, too: what an earlier step recorded may
    be all that makes it green.
    """
    folder = session.settings.baselines
    recorded = [verdict for verdict in session.result.verdicts if verdict.baseline.recorded and verdict.hardware]
    if not recorded and not session.settings.strict:
        return ()
    changed = [folder / name for name in uncommitted(folder) or ()]
    known = tuple(session.short(path) + ("" if path.exists() else " (removed)") for path in changed)
    hidden = tuple(f"{session.short(folder / name)} ({IGNORED})" for name in ignored(folder))
    if known or hidden:
        return *known, *hidden
    if not recorded:
        return ()
    written = {session.short(session.store.path(v.hardware, v.case)) for v in recorded if v.hardware}
    return tuple(sorted({*written, session.short(folder / LOG_FOLDER)}))


def write_log(session: GateSession) -> None:
    """Add an entry to the log for what this run recorded, one for each hardware."""
    recorded = [verdict for verdict in session.result.verdicts if verdict.baseline.recorded]
    for folder in session.folders(recorded):
        here = [one for one in recorded if one.hardware and session.store.folder(one.hardware) == folder]
        append_log(
            session.settings.baselines,
            created=[verdict.case for verdict in here if verdict.baseline.recorded == "created"],
            refreshed=[verdict.case for verdict in here if verdict.baseline.recorded == "refreshed"],
            folder=folder,
            why=session.settings.why,
            worse={
                verdict.case: describe_finding(worst) if worst.status in _LOST else accepted_figure(worst)
                for verdict in here
                if verdict.baseline.recorded == "refreshed" and (worst := worst_accepted(verdict)) is not None
            },
            energy={
                verdict.case: whole_energy(verdict.cost.energy)
                for verdict in here
                if isinstance(verdict.cost.energy, Energy)
            },
        )


def recorded_worse(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """The verdicts whose baseline was replaced by one that is worse."""
    return [one for one in verdicts if one.baseline.recorded == "refreshed" and one.status in _LOST]


def adopt_baselines(session: GateSession) -> dict[str, str]:
    """Keep what the other revision recorded, where this hardware and jax have none yet: ready to be committed.

    A case that takes other arguments today is left out: its baseline would be stale as soon as it is committed.

    Returns:
        What became of it, by folder of hardware and release line.
    """
    settings = session.settings
    if not settings.against:
        return {}
    from jaxgate.observe.program.export import serves_as  # noqa: PLC0415 - imports JAX, which a run without gates does without

    adopted = {}
    stale = {
        verdict.case
        for verdict in session.result.verdicts
        if any(finding.status is Status.STALE_BASELINE for finding in verdict.findings)  # it may be red besides
    }
    for folder in session.folders(session.result.verdicts):
        why = f"recorded from {settings.against[:10]}, this hardware had none with this jax"
        try:
            names = adopt_revision(
                settings.baselines, settings.stored, folder, without=stale, serves=serves_as, why=why
            )
        except OSError as error:  # the comparison was made all the same
            adopted[folder] = f"its baselines could not be written: {error}"
            continue
        if names:
            where = session.short(settings.stored / folder)
            adopted[folder] = f"it had no baselines; {len(names)} of that revision are in {where} now: commit them"
    return adopted
