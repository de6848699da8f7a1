"""The end of a run: what it leaves behind, and what it finds wrong beside its cases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from jaxgate.engine.run.exit_status import ExitStatus, exit_status
from jaxgate.engine.run.orphans import Orphans, find_idle_entries, find_orphans
from jaxgate.engine.run.renames import add_renames
from jaxgate.judge import worst_accepted
from jaxgate.keep import (
    LOG_FOLDER,
    CorruptBaselineError,
    adopt_revision,
    append_log,
    collect,
    ignored,
    uncommitted,
)
from jaxgate.model import Collection, Energy, Review, Status, StoreChanges, Verdict
from jaxgate.report import accepted_figure, describe_finding, whole_energy

if TYPE_CHECKING:
    from jaxgate.engine.run.session import GateSession

_LOST = (Status.REGRESSED, Status.SLOWER)
IGNORED = "ignored by git: git add --force"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What the end of a run found and did.

    Attributes:
        status: How it ends.
        changes: What it leaves in the folder of the baselines.
        adopted: What became of baselines of another revision, by hardware.
        review: What came of asking about each case that moved.
        orphans: Baselines without a test; ``None`` if they were not looked for.
        idle_entries: Waivers and accepted drifts that nobody needs any more, each with the reason.
    """

    status: ExitStatus
    changes: StoreChanges = field(default_factory=StoreChanges)
    adopted: Mapping[str, str] = field(default_factory=dict)
    review: Review | None = None
    orphans: Orphans | None = None
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
    """Look for what is wrong beside the cases, and decide how the run ends.

    Args:
        session: The run.
        ending: Its end so far.
        collection: What pytest collected.
        tests_failed: How many tests failed.
        wrong: Whether something is wrong already: nothing was judged, where that fails.
    """
    settings, result = session.settings, session.result
    orphans = find_orphans(session, collection)
    result.verdicts[:] = add_renames(result.verdicts, orphans.renamed)
    idle = find_idle_entries(session, collection)
    wrong = wrong or bool(orphans.unreadable or result.clashes)
    wrong = wrong or (settings.strict and bool(orphans) and not settings.against)
    missing = settings.demands_all and bool(result.not_judged(collection.selected))
    status = exit_status(ending.status.code, session, tests_failed=tests_failed, wrong=wrong, missing=missing)
    return replace(ending, status=status, orphans=orphans, idle_entries=tuple(idle))


def tidy(session: GateSession) -> StoreChanges:
    """Remove the programs that refreshed baselines no longer name, and find what is to be committed.

    At the end, and in the one process that knows all verdicts: while several workers record, a program that nothing
    names yet may be one whose baseline is being written.
    """
    if session.settings.other_side or session.settings.elsewhere:
        return StoreChanges()
    removed: tuple[tuple[Path, int], ...] = ()
    why_kept = ""
    replaced = {one for verdict in session.result.verdicts if verdict.recorded for one in verdict.replaced}
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
    recorded = [verdict for verdict in session.result.verdicts if verdict.recorded and verdict.hardware]
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
    recorded = [verdict for verdict in session.result.verdicts if verdict.recorded]
    for folder in session.folders(recorded):
        here = [one for one in recorded if one.hardware and session.store.folder(one.hardware) == folder]
        append_log(
            session.settings.baselines,
            created=[verdict.case for verdict in here if verdict.recorded == "created"],
            refreshed=[verdict.case for verdict in here if verdict.recorded == "refreshed"],
            folder=folder,
            why=session.settings.why,
            worse={
                verdict.case: describe_finding(worst) if worst.status in _LOST else accepted_figure(worst)
                for verdict in here
                if verdict.recorded == "refreshed" and (worst := worst_accepted(verdict)) is not None
            },
            energy={
                verdict.case: whole_energy(verdict.energy) for verdict in here if isinstance(verdict.energy, Energy)
            },
        )


def recorded_worse(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Those whose baseline was replaced by one that is worse."""
    return [one for one in verdicts if one.recorded == "refreshed" and one.status in _LOST]


def adopt_baselines(session: GateSession) -> dict[str, str]:
    """Keep what the other revision recorded, where this hardware and jax have none yet: ready to be committed.

    A case that takes other arguments today is left out: its baseline would be stale as soon as it is committed.

    Returns:
        By folder of hardware and release line, what became of it.
    """
    settings = session.settings
    if not settings.against:
        return {}
    from jaxgate.observe.program import serves_as  # noqa: PLC0415 - imports JAX, which a run without gates does without

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
