"""The end of a run: what it leaves behind, and what it finds wrong beside its cases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from jaxgate.engine.exit_status import ExitStatus, exit_status
from jaxgate.engine.idle_waivers import find_idle_waivers
from jaxgate.engine.orphans import Orphans, find_orphans
from jaxgate.engine.session import GateSession
from jaxgate.engine.store_cleanup import adopt_baselines, tidy, write_log
from jaxgate.model import Collection, Review, StoreChanges, Waiver


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What the end of a run found and did.

    Attributes:
        status: How it ends.
        changes: What it leaves in the folder of the baselines.
        adopted: What became of baselines of another revision, by hardware.
        review: What came of asking about each case that moved.
        orphans: Baselines without a test; ``None`` if they were not looked for.
        idle_waivers: Waivers that nobody needs any more, each with the reason.
    """

    status: ExitStatus
    changes: StoreChanges = field(default_factory=StoreChanges)
    adopted: Mapping[str, str] = field(default_factory=dict)
    review: Review | None = None
    orphans: Orphans | None = None
    idle_waivers: tuple[tuple[Waiver, str], ...] = ()


def end_unfinished(session: GateSession, code: int) -> Ending:
    """End a run that something outside its tests ends: what it recorded is logged, nothing is looked for."""
    write_log(session)
    return Ending(status=ExitStatus(code=code), changes=tidy(session))


def end_session(session: GateSession, code: int, *, review: Review | None) -> Ending:
    """Leave what the run found: its log, its baselines, its history.

    Args:
        session: The run, its last case judged.
        code: How it would end.
        review: What came of asking about each case that moved.
    """
    write_log(session)
    changes = tidy(session)
    adopted = adopt_baselines(session)
    session.evidence.finish()
    session.result.calibrated.finish(session.project, session.floors)
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
    idle = find_idle_waivers(session, collection) if session.waivers else []
    wrong = wrong or bool(orphans.unreadable or result.clashes)
    wrong = wrong or (settings.strict and bool(orphans) and not settings.against)
    status = exit_status(ending.status.code, session, tests_failed=tests_failed, wrong=wrong)
    return replace(ending, status=status, orphans=orphans, idle_waivers=tuple(idle))
