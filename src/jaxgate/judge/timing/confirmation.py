"""What fresh processes make of a slow-down, or of a broken claim about run time. Pure.

Two processes of one program have been seen to differ by 30 % on a shared machine, with a tight interval in
each: the process is the unit of noise. The number of repeats is fixed; nobody runs again until it is green.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jaxgate.judge.claims import breaks
from jaxgate.judge.order import conclude
from jaxgate.model.claim import Claim
from jaxgate.model.decision import ALWAYS_FAIL, Status
from jaxgate.model.duel import RepeatOutcome
from jaxgate.model.verdict import Finding, TimeVerdict, Verdict

PROCESSES = 2
"""Fresh processes that must agree before a clock fails a test."""
MANY = 5
MANY_SHARE = 0.20
"""More slow-downs than this many, and than this share of the cases, may be the machine's doing."""
PROBES = 3
"""So many of the largest are repeated with their controls, before the machine is accused or the cases."""


def too_many(suspects: int, cases: int) -> bool:
    """Whether so many clocks fired at once that the machine may be the suspect."""
    return suspects > max(MANY, MANY_SHARE * cases)


def blames_machine(probed: Sequence[Verdict]) -> bool:
    """Whether the machine made many cases slower at once: a control differed, or none of ``PROBES`` came again.

    ``probed`` are the largest of them, after fresh processes repeated them with their controls.
    """
    came_again = [verdict for verdict in probed if verdict.status in (Status.SLOWER, Status.REGRESSED)]
    return any(verdict.accuses_machine for verdict in probed) or (len(probed) >= PROBES and not came_again)


def accuses(verdict: Verdict, claim: Claim | None) -> bool:
    """Whether a clock made a case red: by a claim, or (``None``) by its time beside the baseline's."""
    return any(_is_about(finding, claim) and finding.status in ALWAYS_FAIL for finding in verdict.findings)


def comes_again(outcome: RepeatOutcome, claim: Claim | None) -> bool:
    """Whether a fresh process found again what made the case red."""
    return outcome.case is not None and outcome.case.status is (Status.SLOWER if claim is None else breaks(claim))


def settle_time(
    verdict: Verdict,
    outcomes: Sequence[RepeatOutcome],
    *,
    machine: bool,
    claim: Claim | None = None,
    strict: bool = False,
    wanted: int = PROCESSES,
) -> Verdict:
    """Judge a case after what one clock found was repeated.

    ``outcomes`` is empty if no fresh process was started; ``claim`` is ``None`` for a slow-down against the baseline's
    program.

    Returns:
        SLOWER if every process agrees, REGRESSED for a claim; UNDECIDED if one does not; INVALID if the machine
        is the suspect, identical programs differed, or a process could not be run: none of these is green.
    """
    ratios = tuple(found.case.ratio for found in outcomes if found.case is not None)
    controls = {found.control.status for found in outcomes if found.control is not None}
    lost = next((found for found in outcomes if found.problem), None)
    first = _first_reason(verdict, claim)
    by_machine = False
    if machine:
        status, ratios, by_machine = Status.INVALID, (), True
        reason = "too many cases got slower at once: the machine is the suspect"
    elif lost is not None:
        status, ratios, by_machine = Status.INVALID, (), lost.blames_machine
        reason = f"it could not be confirmed: {lost.problem}"
    elif controls & {Status.SLOWER, Status.FASTER}:
        status, by_machine = Status.INVALID, True
        word = "slower" if Status.SLOWER in controls else "faster"
        reason = f"a program was {word} than itself in a fresh process: the machine is the suspect"
    elif not outcomes or any(map(_says_nothing, outcomes)):
        status, reason = Status.INVALID, "it could not be confirmed: no fresh process says anything"
    elif len(outcomes) == wanted and all(comes_again(found, claim) for found in outcomes):
        status, reason = Status.SLOWER if claim is None else Status.REGRESSED, first
    else:
        status = Status.UNDECIDED
        reason = f"{first}, but it was not confirmed by fresh process {len(outcomes)} of {wanted}"
    time = verdict.time
    if claim is None:
        time = TimeVerdict(status=status, reason=reason, decision=time.decision, confirmed=ratios)
    findings = [
        _settled(finding, status, ratios, reason, by_machine=by_machine) if _is_about(finding, claim) else finding
        for finding in verdict.findings
    ]
    return conclude(verdict, findings, time, strict=strict)


def _settled(finding: Finding, status: Status, ratios: tuple[float, ...], reason: str, *, by_machine: bool) -> Finding:
    if finding.decision is None:
        return replace(finding, status=status, detail=reason, blames_machine=by_machine)
    decision = replace(finding.decision, reason=reason)
    return replace(finding, status=status, decision=decision, confirmed=ratios, blames_machine=by_machine)


def _says_nothing(found: RepeatOutcome) -> bool:
    return found.case is None or (found.has_control and found.control is None)


def _is_about(finding: Finding, claim: Claim | None) -> bool:
    if claim is None:
        return finding.kind == "time"
    return finding.decision is not None and finding.name == str(claim)


def _first_reason(verdict: Verdict, claim: Claim | None) -> str:
    if claim is None:
        return verdict.time.reason
    return next(f.decision.reason for f in verdict.findings if f.decision is not None and f.name == str(claim))
