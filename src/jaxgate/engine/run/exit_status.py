"""How a run ends: its exit status, and whether it was a gate at all though nothing in it failed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from jaxgate.model import Status

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
    """How a run ends.

    Attributes:
        code: Its exit code.
        undecided: Whether nothing failed, and too little was decided.
        only_machine: Whether tests failed for no other reason than that the machine is the suspect.
        uncounted: Failed cases of tests that pytest counts as passed or xfailed: their test is marked xfail, or catches the
            failure.
    """

    code: int
    undecided: bool = False
    only_machine: bool = False
    uncounted: tuple[str, ...] = ()


def exit_status(code: int, session: GateSession, *, tests_failed: int, wrong: bool, missing: bool) -> ExitStatus:
    """How a run ends that came to its end.

    Args:
        code: How pytest would end it.
        session: The gates of the run.
        tests_failed: How many tests failed.
        wrong: Whether something is wrong beside the tests: orphans under CI, a clash of names, nothing judged.
        missing: Whether a gate was not judged, where each must be.
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
