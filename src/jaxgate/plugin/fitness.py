"""Whether a run, though nothing in it failed, was a gate at all."""

from __future__ import annotations

from jaxgate.model import Status
from jaxgate.plugin.run import Run


def unfit(run: Run) -> str:
    """Why a run did not gate; empty if it did."""
    share, most = undecided_share(run), run.settings.max_undecided
    if share > most:
        what = "UNDECIDED or failed in the other revision" if lost(run) else "UNDECIDED"
        return f"{share:.0%} of the cases are {what}, {most:.0%} may be: this machine is unfit to gate"
    nothing = all(verdict.status in (Status.NO_BASELINE, Status.STALE_BASELINE) for verdict in run.verdicts)
    if run.settings.against and run.settings.strict and run.verdicts and nothing:
        return (
            f"nothing could be compared: {run.settings.against[:10]} has none of these cases, or with other arguments"
        )
    return ""


def undecided_share(run: Run) -> float:
    """Share of the cases that ended UNDECIDED, would have without a waiver, or failed in the other revision."""
    failed_there = lost(run)
    left_open = [
        verdict.status is Status.UNDECIDED
        or verdict.case in failed_there
        or (run.settings.against and verdict.status is Status.STALE_BASELINE)
        or (
            verdict.status is Status.WAIVED
            and Status.UNDECIDED in {verdict.time.status, *(finding.status for finding in verdict.findings)}
        )
        for verdict in run.verdicts
    ]
    return sum(left_open) / max(1, len(left_open))


def lost(run: Run) -> dict[str, str]:
    """Cases that the other revision has too and could not record, with the reason: nothing compares them."""
    tests = run.tests_by_case
    return {
        verdict.case: run.failed_there[tests[verdict.case]]
        for verdict in run.verdicts
        if verdict.status is Status.NO_BASELINE and tests.get(verdict.case) in run.failed_there
    }
