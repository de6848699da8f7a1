"""Waivers: what they cover, up to which day and which value, and everything that they never cover."""

from dataclasses import replace
from datetime import date

import pytest
from support.factories import CASE, FINGERPRINTS, changed_verdict, duel, measurement, record, reference

from jaxgate.judge.order import waits_for_confirmation
from jaxgate.judge.timing.duel import decide
from jaxgate.judge.verdict import judge, judge_invalid
from jaxgate.judge.waivers import apply_waivers, unneeded
from jaxgate.model.claim import claim
from jaxgate.model.decision import Status
from jaxgate.model.duel import ReferenceDuel
from jaxgate.model.measurement import ExhaustedError, InvalidCaseError
from jaxgate.model.waiver import Waiver
from jaxgate.report.summary import count, summary
from jaxgate.report.text import explain, in_short

TODAY = date(2026, 11, 21)
UNTIL = "waived until 2026-12-31 by perf-team: issue 12"
CHANGED = replace(FINGERPRINTS, program="p1")


def waiver(quantity="temp_bytes", up_to=42_000.0, **changes):
    """A waiver of the case that applies today."""
    known = {"case": CASE, "owner": "perf-team", "reason": "issue 12", "expires": date(2026, 12, 31)}
    return Waiver(quantity=quantity, up_to=up_to, **(known | changes))


def judged(facts=None, *, claims=(), known=None, strict=True, **changes):
    """The verdict without waivers."""
    return judge(CASE, claims, measurement(facts=facts, **changes), known or record(), strict=strict)


def waived(verdict, *waivers, today=TODAY, strict=True):
    """The verdict with them."""
    return apply_waivers(verdict, waivers, today=today, strict=strict)


def finding(verdict, name):
    """The finding of a name."""
    (found,) = [finding for finding in verdict.findings if finding.name == name]
    return found


# What is covered


def test_a_fact_within_its_waiver_passes_and_stays_visible():
    """WAIVED, green, with numbers, last day, owner and reason in the line, the text and the count."""
    red = judged({"temp_bytes": 40_000})
    assert (red.status, red.fails) == (Status.REGRESSED, True)
    verdict = waived(red, waiver())
    assert (verdict.status, verdict.fails) == (Status.WAIVED, False)
    assert (verdict.worst.name, verdict.worst.status, verdict.worst.now) == ("temp_bytes", Status.WAIVED, 40_000)
    assert in_short(verdict) == (f"{UNTIL} · temp_bytes 40 kB against 20 kB = 2.00 ×, allowed 25.1 kB · time SAME")
    assert f"  waiver    temp_bytes: {UNTIL}" in explain(verdict, test="t").splitlines()
    assert count([verdict]) == "1 case: 1 WAIVED"
    ((status, word, _),) = summary([verdict], width=None)
    assert (status, word) == (Status.WAIVED, "WAIVED")


@pytest.mark.parametrize(
    ("fact", "value", "up_to", "today", "status"),
    [
        ("temp_bytes", 42_000, 42_000, TODAY, Status.WAIVED),
        ("temp_bytes", 42_001, 42_000, TODAY, Status.REGRESSED),
        ("donated_bytes", 8_000, 8_000, TODAY, Status.WAIVED),  # where higher is better it is the least
        ("donated_bytes", 7_999, 8_000, TODAY, Status.REGRESSED),
        ("donated_bytes", 0, 1e9, TODAY, Status.REGRESSED),  # and a large number accepts nothing
        ("temp_bytes", 40_000, 42_000, date(2026, 12, 31), Status.WAIVED),
        ("temp_bytes", 40_000, 42_000, date(2027, 1, 1), Status.REGRESSED),
    ],
)
def test_what_is_accepted_up_to_which_day(fact, value, up_to, today, status):
    """The value itself is accepted, one unit more is not; it applies on its last day and not on the next."""
    verdict = waived(judged({fact: value}), waiver(fact, up_to), today=today)
    assert (finding(verdict, fact).status, verdict.fails) == (status, status is Status.REGRESSED)


CLAIMS = {
    "at most, within": (claim("temp_bytes <= 0.5 * reference"), 15_000, 16_000, Status.WAIVED),
    "at most, beyond": (claim("temp_bytes <= 0.5 * reference"), 15_000, 14_999, Status.REGRESSED),
    "at least, within": (claim("output_bytes >= 2 * reference"), 16_388, 16_000, Status.WAIVED),
    "at least, beyond": (claim("output_bytes >= 2 * reference"), 16_388, 16_389, Status.REGRESSED),
    "equal, more, within": (claim("stablehlo_ops == 39"), 40, 41, Status.WAIVED),
    "equal, more, beyond": (claim("stablehlo_ops == 38"), 40, 39, Status.REGRESSED),
    "equal, fewer, within": (claim("stablehlo_ops == 41"), 40, 39, Status.WAIVED),
    "equal, fewer, the wrong way": (claim("stablehlo_ops == 41"), 40, 43, Status.REGRESSED),
}


@pytest.mark.parametrize("what", CLAIMS)
def test_a_claim_is_waived_by_its_formula(what):
    """By the relation, up to the value; the fact of the same name keeps its own say."""
    claim, value, up_to, status = CLAIMS[what]
    facts = {claim.quantity: value}
    other = {"facts": {claim.quantity: value if claim.relation == ">=" else 20_000}}
    red = judged(facts, claims=[claim], known=record(facts=facts), reference=reference(**other))
    assert finding(red, str(claim)).status is Status.REGRESSED
    verdict = waived(red, waiver(str(claim), float(up_to)))
    assert finding(verdict, str(claim)).status is status


def test_a_fact_and_its_claim_are_waived_apart():
    """A second trace breaks a fact and a claim: a waiver of one leaves the other red."""
    red = judged({"traces": 2})
    assert waived(red, waiver("traces", 2.0)).status is Status.REGRESSED
    assert waived(red, waiver("traces = 1", 2.0)).status is Status.REGRESSED
    assert waived(red, waiver("traces", 2.0), waiver("traces = 1", 2.0)).status is Status.WAIVED


def test_a_waiver_holds_for_its_case_alone():
    """Another case of the same quantity, and another quantity of the case, cover nothing."""
    red = judged({"temp_bytes": 40_000})
    assert waived(red, waiver(case="scan/other"), waiver("xla_bytes")) == red


def test_an_expired_waiver_says_so():
    """In the red text and in the summary, with the day and the owner; an exceeded one with what it accepts."""
    verdict = waived(judged({"temp_bytes": 40_000}), waiver(expires=date(2026, 11, 20)))
    assert (verdict.status, verdict.fails) == (Status.REGRESSED, True)
    note = "its waiver expired on 2026-11-20 (perf-team: issue 12)"
    assert f"  waiver    temp_bytes: {note}" in explain(verdict, test="t").splitlines()
    assert in_short(verdict).endswith(f"allowed 25.1 kB · {note}")
    verdict = waived(judged({"temp_bytes": 42_001}), waiver())
    note = "beyond its waiver, which accepts up to 42,000 B (perf-team: issue 12)"
    assert note in explain(verdict, test="t")
    assert in_short(verdict).endswith(note)
    fewer = waived(judged({"donated_bytes": 0}), waiver("donated_bytes", 8_000.0))
    assert "which accepts down to 8,000 B" in in_short(fewer)


# What is never covered


STATED, SMALL = claim("temp_bytes <= 0.5 * reference"), claim("temp_bytes <= 1000")
OTHER = (replace(measurement().signature[0], aval="float32[8]"), measurement().signature[1])
EVERYTHING = (waiver(up_to=1e12), waiver("time", 9.0), waiver(str(STATED), 1e12))


@pytest.mark.parametrize(
    ("red", "status"),
    [
        (judged({"temp_bytes": None}), Status.INVALID),  # a fact that vanished cannot be within anything
        (judged(claims=[STATED]), Status.INVALID),  # nor can a claim whose numbers are unknown
        # whatever the stage is called
        (judge_invalid(CASE, InvalidCaseError("temp_bytes", "it raised")), Status.INVALID),
        (judge_invalid(CASE, ExhaustedError("temp_bytes", "out of memory")), Status.RESOURCE_EXHAUSTED),
        (judged({"temp_bytes": 40_000}, signature=OTHER), Status.STALE_BASELINE),
    ],
    ids=["a fact", "a claim", "a crash", "memory", "a stale baseline"],
)
def test_what_was_not_measured_is_not_covered(red, status):
    """With every waiver there is; nobody can accept what was not measured."""
    verdict = waived(red, *EVERYTHING)
    assert (verdict.status, verdict.fails) == (status, True)
    assert all(one.waiver is None for one in verdict.findings if one.status is status)


@pytest.mark.parametrize("strict", [True, False])
def test_a_missing_baseline_is_not_covered(strict):
    """NO_BASELINE decides beside a waived claim; the waiver stays visible, and is counted."""
    red = judge(CASE, [SMALL], measurement(), None, strict=strict)
    verdict = waived(red, waiver(str(SMALL), 20_000.0), strict=strict)
    assert (verdict.status, verdict.fails) == (Status.NO_BASELINE, strict)
    assert in_short(verdict) == f"6 claims hold · no baseline on this hardware · claim temp_bytes ≤ 1000: {UNTIL}"
    assert count([verdict]) == "1 case: 1 NO_BASELINE (1 of them with something waived)"


def test_other_findings_keep_their_say():
    """One fact waived, one not: red by the other, and the waiver is still told."""
    verdict = waived(judged({"temp_bytes": 40_000, "matmul_flops": 2_000_000}), waiver())
    assert (verdict.status, verdict.fails) == (Status.REGRESSED, True)
    assert verdict.worst.name == "matmul_flops"
    assert f"temp_bytes: {UNTIL}" in in_short(verdict)
    assert f"temp_bytes: {UNTIL}" in explain(verdict, test="t")
    assert count([verdict]) == "1 case: 1 REGRESSED (1 of them with something waived)"


# Time


def timed(ratio, pairs=20, spread=0.0):
    """A changed program, duelled: slower by a ratio, the upper bound further up by a spread."""
    low, high = round(10_000_000 * ratio), round(10_000_000 * (ratio + spread))
    now = [low] * (pairs * 8 // 10) + [high] * (pairs - pairs * 8 // 10)
    return judge(CASE, (), measurement(fingerprints=CHANGED), record(), strict=True, decision=decide(duel(now)))


def test_a_slow_down_within_its_waiver_needs_no_confirmation():
    """WAIVED at the first stage: nothing is left for fresh processes to confirm."""
    red = timed(1.15)
    assert red.status is Status.SLOWER
    verdict = waived(red, waiver("time", 1.2))
    assert (verdict.status, verdict.fails, verdict.time.status) == (Status.WAIVED, False, Status.WAIVED)
    assert in_short(verdict) == f"{UNTIL} · a call takes 11.5 ms against 10 ms = 1.15 ×, allowed 10.3 ms"
    assert "  time      WAIVED: 1.150 × [1.150, 1.150], n=20" in explain(verdict, test="t")


def test_the_upper_bound_is_what_must_be_within():
    """A median of 1.15 does not do where the interval reaches 1.25: it was not shown to be within 1.2."""
    red = timed(1.15, spread=0.1)
    assert red.time.decision is not None
    assert (red.time.decision.ratio, red.time.decision.high) == pytest.approx((1.15, 1.25))
    verdict = waived(red, waiver("time", 1.2))
    assert (verdict.status, verdict.fails) == (Status.SLOWER, True)
    assert "beyond its waiver, which accepts an upper bound of 1.2 × the baseline" in in_short(verdict)
    assert waived(red, waiver("time", 1.26)).status is Status.WAIVED


def test_a_waived_fact_leaves_the_slow_down_to_be_confirmed():
    red = replace(timed(1.3), findings=(*timed(1.3).findings, *judged({"temp_bytes": 40_000}).findings))
    verdict = waived(red, waiver())
    assert (verdict.status, verdict.fails) == (Status.SLOWER, True)


def claimed(claim, low, high):
    """A case whose claim about run time is broken: a duel with its reference between two ratios."""
    now = [round(10_000_000 * low)] * 16 + [round(10_000_000 * high)] * 4
    told = ReferenceDuel(duel=duel(now))
    return judge(CASE, [claim], measurement(reference=reference()), record(), strict=True, reference_duel=told)


LIMIT, LEAST = claim("run_ns <= 0.8 * reference"), claim("run_ns >= 2 * reference")
RUN_CLAIMS = {
    "the upper bound is within": (LIMIT, (1.1, 1.15), 1.16, Status.WAIVED, ""),
    "the upper bound is not": (LIMIT, (1.1, 1.2), 1.16, Status.REGRESSED, "an upper bound of 1.16 × the reference"),
    "the lower bound is within": (LEAST, (1.1, 1.15), 1.09, Status.WAIVED, ""),
    "the lower bound is not": (LEAST, (1.1, 1.2), 1.11, Status.REGRESSED, "a lower bound of 1.11 × the reference"),
}


@pytest.mark.parametrize("what", RUN_CLAIMS)
def test_a_claim_about_run_time_is_waived_by_its_ratio(what):
    """Subject to reference, by the bound that is worse; a waived one waits for no confirmation."""
    claim, (low, high), up_to, status, note = RUN_CLAIMS[what]
    red = claimed(claim, low, high)
    assert (red.status, waits_for_confirmation(red)) == (Status.REGRESSED, True)
    verdict = waived(red, waiver(str(claim), up_to))
    assert (verdict.status, finding(verdict, str(claim)).status) == (status, status)
    assert waits_for_confirmation(verdict) is (status is Status.REGRESSED)
    assert note in in_short(verdict)


# What nobody needs any more


def idle(verdict, *waivers):
    """Reasons of the waivers that should go."""
    return [(found.quantity, why) for found, why in unneeded(verdict, waivers)]


def test_a_waiver_of_what_is_fine_is_not_needed():
    """The case ran and the finding is fine: a fact, a claim, time; also where the waiver has expired."""
    verdict = judged()
    old = date(2020, 1, 1)
    found = idle(verdict, waiver(), waiver("traces = 1"), waiver("time", 1.2), waiver("xla_bytes", expires=old))
    assert found == [
        ("temp_bytes", "not needed on cpu-amd-epyc-1, it is no worse than allowed"),
        ("traces = 1", "not needed on cpu-amd-epyc-1, it is no worse than allowed"),
        ("time", "not needed on cpu-amd-epyc-1, identical program"),
        ("xla_bytes", "not needed on cpu-amd-epyc-1, it is no worse than allowed"),
    ]
    assert idle(verdict, waiver("traces ≤ 7")) == [("traces ≤ 7", "nothing of this name is checked")]


def test_a_waiver_that_works_is_needed():
    """So is one that is exceeded or has expired: the loss is still there."""
    red = judged({"temp_bytes": 40_000})
    for one in (waiver(), waiver(up_to=1.0), waiver(expires=date(2020, 1, 1))):
        assert idle(waived(red, one), one) == []


def test_nothing_is_said_of_what_was_not_compared():
    """No baseline, a stale one, a case that raised, time that is open, another case."""
    everything = (waiver(), waiver("time", 1.2), waiver(case="scan/other"))
    assert idle(judge(CASE, (), measurement(), None, strict=False), *everything) == []
    assert idle(judged(signature=()), *everything) == []
    assert idle(judge_invalid(CASE, InvalidCaseError("tracing", "it raised")), *everything) == []
    open_time = judged(fingerprints=CHANGED)
    assert open_time.time.status is Status.UNDECIDED
    assert idle(open_time, waiver("time", 1.2)) == []


def test_a_recording_ends_waivers_of_facts_and_time():
    """The baseline now holds the loss; a ratio to it would accept the loss twice."""
    verdict = changed_verdict(judged({"temp_bytes": 40_000}), recorded="refreshed")
    why = "not needed on cpu-amd-epyc-1, the baseline that was recorded now holds the loss"
    assert idle(verdict, waiver(), waiver("time", 1.2)) == [("temp_bytes", why), ("time", why)]
