"""Waivers: which findings they cover today, and which of them nobody needs any more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import date

from jaxgate.judge.order import conclude
from jaxgate.model.decision import Decision, Status
from jaxgate.model.verdict import Finding, Verdict
from jaxgate.model.waiver import TIME, Waiver

WAIVABLE = {"fact": Status.REGRESSED, "claim": Status.REGRESSED, "time": Status.SLOWER}
"""Kinds of finding, and the one outcome of each that a waiver can cover. INVALID and the state of a baseline are
never covered, nor is memory that ran out: nobody can accept what was not measured."""

_FINE = (Status.SAME, Status.FASTER, Status.IMPROVED, Status.EXPECTED)


def apply_waivers(verdict: Verdict, waivers: Iterable[Waiver], *, today: date, strict: bool) -> Verdict:
    """Judge a case again with what is accepted for a while.

    A waiver applies up to and on its last day (UTC); those of other cases are passed over.

    Returns:
        The verdict. A finding that a waiver covers is WAIVED; one whose waiver expired or is exceeded keeps its
        status and says so.
    """
    ours = {waiver.quantity: waiver for waiver in waivers if waiver.case == verdict.case}
    findings = [
        _waived(finding, ours[name], verdict.time.decision, today)
        if (name := _quantity(finding)) in ours and finding.status is WAIVABLE[finding.kind]
        else finding
        for finding in verdict.findings
    ]
    if tuple(findings) == verdict.findings:
        return verdict
    time = verdict.time
    if any(finding.kind == "time" and finding.status is Status.WAIVED for finding in findings):
        time = replace(time, status=Status.WAIVED)
    return conclude(verdict, findings, time, strict=strict)


def unneeded(verdict: Verdict, waivers: Iterable[Waiver]) -> Iterator[tuple[Waiver, str]]:
    """Name the waivers of a case that nothing needs any more, each with the reason."""
    if any(finding.kind == "case" for finding in verdict.findings):
        return  # not judged
    here = f"not needed on {verdict.hardware.slug}" if verdict.hardware else "not needed"
    compared = not any(finding.kind == "baseline" for finding in verdict.findings)
    for waiver in waivers:
        if waiver.case != verdict.case:
            continue
        found = [finding for finding in verdict.findings if _quantity(finding) == waiver.quantity]
        if verdict.baseline.recorded and not waiver.is_claim:
            yield waiver, f"{here}, the baseline that was recorded now holds the loss"
        elif waiver.quantity == TIME:
            if verdict.time.status in _FINE:
                yield waiver, f"{here}, {verdict.time.reason}"
        elif not found and (waiver.is_claim or compared):
            yield waiver, "nothing of this name is checked"
        elif found and all(finding.status in _FINE and finding.against is not None for finding in found):
            yield waiver, f"{here}, it is no worse than allowed"


def _quantity(finding: Finding) -> str:
    """What a waiver of this finding would name; empty where there can be none."""
    if finding.kind == "time":
        return TIME
    return finding.name if finding.kind in WAIVABLE else ""


def _waived(finding: Finding, waiver: Waiver, decision: Decision | None, today: date) -> Finding:
    if today > waiver.expires:
        return replace(finding, waiver=waiver, not_waived="expired")
    if not _within(finding, waiver, decision):
        return replace(finding, waiver=waiver, not_waived="exceeded")
    return replace(finding, status=Status.WAIVED, waiver=waiver)


def _within(finding: Finding, waiver: Waiver, decision: Decision | None) -> bool:
    """Whether a finding that fails is no worse than accepted.

    It lies beyond ``allowed``; the side says which way is worse, by a fact's policy or a claim's relation. Of a
    duel the upper bound is taken: only a slow-down that has been shown to be within the waiver is covered.
    """
    if finding.kind == "time":
        return decision is not None and decision.high <= waiver.up_to
    if finding.decision is not None:  # a claim about run time: subject / reference, by the bound that is worse
        upper = finding.decision.status is Status.SLOWER
        return finding.decision.high <= waiver.up_to if upper else finding.decision.low >= waiver.up_to
    if finding.now is None or finding.allowed is None:
        return False
    return finding.now <= waiver.up_to if finding.now > finding.allowed else finding.now >= waiver.up_to
