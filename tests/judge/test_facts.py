"""Facts: identical work does not differ, and a planted change beyond its tolerance is seen."""

from __future__ import annotations

from dataclasses import asdict, fields

import pytest
from support.factories import FACTS, baseline, measurement

from jaxgate.judge import POLICIES, compare_facts
from jaxgate.model import ARRIVAL_FACTS, EACH_TURN, Facts, Status, Tolerance

LIMITS = {  # name: (baseline, best that is the same, worst that is the same)
    "traces": (1, 1, 1),
    "lowerings": (2, 2, 2),
    "compiles": (2, 2, 2),
    "sampled_traces": (3, 3, 3),
    "sampled_compiles": (3, 3, 3),
    "donated_bytes": (16384, 16384, 16384),
    "collectives": (4, 4, 4),
    "collective_bytes": (10_000, 9_836, 10_164),  # ± 1 % ± 64
    "lost_bytes": (512, 512, 512),
    "aliased_bytes": (16384, 16384, 16384),
    "constant_bytes": (5000, 3976, 6024),  # ± 1024
    "host_callbacks": (2, 2, 2),
    "launches": (3, 3, 3),
    "host_transfers": (1, 1, 1),
    "matmul_flops": (1_000_000, 1_000_000, 1_000_000),
    "widened_bytes": (5000, 3976, 6024),  # ± 1024
    "stablehlo_ops": (1000, 480, 1520),  # ± 50 % ± 20
    "argument_bytes": (10_000, 9_900, 10_100),  # ± 1 %
    "output_bytes": (10_000, 9_836, 10_164),  # ± 1 % ± 64
    "temp_bytes": (100_000, 90_904, 109_096),  # ± 5 % ± 4096
    "code_bytes": (1_000_000, 684_464, 1_315_536),  # ± 25 % ± 64 KiB
    "xla_flops": (10_000, 9_836, 10_164),  # ± 1 % ± 64
    "xla_bytes": (100_000, 85_904, 114_096),  # ± 10 % ± 4096
    "largest_batch": (1000, 1050, 950),  # ± 5 %
}
HIGHER_IS_BETTER = {"donated_bytes", "aliased_bytes", "largest_batch"}


def worse(name):
    """The step that makes a fact worse."""
    return -1 if name in HIGHER_IS_BETTER else 1


def compared(now, before, **changes):
    """The findings by name; ``changes`` go to today's measurement."""
    findings = list(compare_facts(measurement(facts=now, **changes), baseline(facts=before)))
    by_name = {finding.name: finding for finding in findings}
    assert len(by_name) == len(findings)
    return by_name


def one(name, now, before):
    """The finding of the fact that was planted; no other fact may have moved."""
    findings = compared({name: now}, {name: before})
    assert {other: f.status for other, f in findings.items() if other != name} == dict.fromkeys(
        {*LIMITS, *ARRIVAL_FACTS} - {name}, Status.SAME
    )
    return findings[name]


def test_the_limits_cover_every_fact():
    """Each fact has one policy and hand-written limits here; a new fact cannot be forgotten."""
    assert set(LIMITS) == {field.name for field in fields(Facts)}
    assert sorted(LIMITS) == sorted(policy.name for policy in POLICIES)
    assert {policy.name for policy in POLICIES if policy.better == "higher"} == HIGHER_IS_BETTER


def test_an_identical_measurement_does_not_differ():
    """The first question: what was recorded is the same as itself, in every fact."""
    findings = list(compare_facts(measurement(), baseline()))
    assert {f.name: (f.now, f.against) for f in findings} == {
        **{name: (n, n) for name, n in asdict(FACTS).items()},
        **dict.fromkeys(ARRIVAL_FACTS, (0, 0)),
    }
    assert {(f.kind, f.status, f.detail) for f in findings} == {("fact", Status.SAME, "")}


@pytest.mark.parametrize("name", LIMITS)
def test_the_tolerance_of_a_fact(name):
    """The second question: one unit worse than allowed is red, one better is a gain, all between is the same."""
    before, best, limit = LIMITS[name]
    found = one(name, limit + worse(name), before)
    assert (found.status, found.now, found.against) == (Status.REGRESSED, limit + worse(name), before)
    assert found.allowed == pytest.approx(limit, abs=1e-6)
    assert one(name, limit, before).status is Status.SAME
    assert one(name, best, before).status is Status.SAME
    assert one(name, best - worse(name), before).status is Status.IMPROVED


@pytest.mark.parametrize(
    ("name", "now", "status"),
    [
        ("traces", 1, Status.REGRESSED),
        ("host_callbacks", 1, Status.REGRESSED),
        ("donated_bytes", 1, Status.IMPROVED),
        ("constant_bytes", 1024, Status.SAME),
        ("constant_bytes", 1025, Status.REGRESSED),
        ("temp_bytes", 4096, Status.SAME),
        ("temp_bytes", 4097, Status.REGRESSED),
        ("argument_bytes", 1, Status.REGRESSED),
        ("lost_bytes", 1, Status.REGRESSED),
        ("collectives", 1, Status.REGRESSED),
        ("collective_bytes", 64, Status.SAME),
        ("collective_bytes", 65, Status.REGRESSED),
        ("widened_bytes", 1024, Status.SAME),
        ("widened_bytes", 1025, Status.REGRESSED),
        ("lowerings", 1, Status.REGRESSED),
    ],
)
def test_a_baseline_of_zero_is_a_number(name, now, status):
    """Zero is not "unknown": growth from nothing gates, by the absolute tolerance alone."""
    assert one(name, now, 0).status is status


@pytest.mark.parametrize("name", LIMITS)
def test_a_fact_that_vanished_is_invalid(name):
    """A metric that the baseline has and today lacks never passes."""
    found = one(name, None, LIMITS[name][0])
    assert (found.status, found.now, found.against) == (Status.INVALID, None, LIMITS[name][0])
    assert "the baseline has it, today's measurement does not" in found.detail


@pytest.mark.parametrize("name", LIMITS)
def test_a_fact_that_the_baseline_lacks_is_said(name):
    """A metric that only today has cannot be judged, and is not passed over in silence."""
    findings = compared({name: LIMITS[name][0]}, {name: None})
    assert name in findings
    assert findings[name].status is Status.SAME
    assert (findings[name].now, findings[name].against) == (LIMITS[name][0], None)
    assert "baseline" in findings[name].detail


def test_a_fact_that_nobody_knows_is_not_judged():
    """Where neither side tells, there is nothing to compare."""
    assert "temp_bytes" not in compared({"temp_bytes": None}, {"temp_bytes": None})


def test_a_fact_that_could_not_be_had_says_why():
    """The baseline has it, today has not: it is not compared, and the reason stands beside it."""
    now = measurement(facts={"launches": None}, unknown={"launches": "another profile is open"})
    (found,) = [f for f in compare_facts(now, baseline()) if f.name == "launches"]
    assert found.status is Status.INVALID
    assert found.detail == "the baseline has it, today's measurement does not: another profile is open"
    (found,) = [f for f in compare_facts(measurement(facts={"launches": None}), baseline()) if f.name == "launches"]
    assert found.detail.endswith("does not: it cannot be compared")


def tolerated(fact, now, before, **tolerance):
    """The finding of one fact under the workload's own tolerance."""
    own = Tolerance(fact=fact, why="it is rewritten this week", **tolerance)
    findings = compare_facts(measurement(facts={fact: now}), baseline(facts={fact: before}), [own])
    by_name = {finding.name: finding for finding in findings}
    assert {f.status for name, f in by_name.items() if name != fact} == {Status.SAME}
    assert {f.detail for name, f in by_name.items() if name != fact} == {""}
    return by_name[fact]


@pytest.mark.parametrize(
    ("fact", "now", "before", "tolerance", "status", "allowed"),
    [
        ("matmul_flops", 1_100_100, 1_000_000, {"relative": 0.1, "absolute": 100}, Status.SAME, 1_100_100),
        ("matmul_flops", 1_100_101, 1_000_000, {"relative": 0.1, "absolute": 100}, Status.REGRESSED, 1_100_100),
        ("matmul_flops", 899_900, 1_000_000, {"relative": 0.1, "absolute": 100}, Status.SAME, 1_100_100),
        ("matmul_flops", 899_899, 1_000_000, {"relative": 0.1, "absolute": 100}, Status.IMPROVED, 1_100_100),
        ("traces", 2, 1, {"absolute": 1}, Status.SAME, 2),
        ("aliased_bytes", 15_384, 16_384, {"absolute": 1000}, Status.SAME, 15_384),
        ("aliased_bytes", 15_383, 16_384, {"absolute": 1000}, Status.REGRESSED, 15_384),
        # tighter than the policy, which lets temp_bytes move by 5 % and 4096
        ("temp_bytes", 20_000, 20_000, {}, Status.SAME, 20_000),
        ("temp_bytes", 20_001, 20_000, {}, Status.REGRESSED, 20_000),
        ("temp_bytes", 20_010, 20_000, {"absolute": 10}, Status.SAME, 20_010),
        ("temp_bytes", 20_011, 20_000, {"absolute": 10}, Status.REGRESSED, 20_010),
    ],
)
def test_a_tolerance_takes_the_place_of_the_policy(fact, now, before, tolerance, status, allowed):
    """Wider or tighter, in the fact's own direction, for this fact alone; its reason stands beside the number."""
    found = tolerated(fact, now, before, **tolerance)
    assert found.status is status
    assert found.allowed == pytest.approx(allowed)
    assert found.detail == "by this workload's own tolerance: it is rewritten this week"


def test_a_tolerance_does_not_make_up_for_a_fact_that_vanished():
    """What may move must still be there."""
    assert tolerated("temp_bytes", None, 20_000, relative=10.0).status is Status.INVALID


PRODUCT = "float32[8,8] x float32[8,8]"


@pytest.mark.parametrize(
    ("now", "before", "comparable"),
    [
        ({PRODUCT + EACH_TURN: 1}, {PRODUCT: 8}, False),  # its length became an argument: eight turns read as one
        ({PRODUCT: 8}, {PRODUCT + EACH_TURN: 1}, False),
        ({PRODUCT + EACH_TURN: 4}, {PRODUCT: 3, PRODUCT + EACH_TURN: 1}, False),
        ({PRODUCT + EACH_TURN: 2}, {PRODUCT + EACH_TURN: 1}, True),
        ({PRODUCT: 8, PRODUCT + EACH_TURN: 1}, {PRODUCT: 8}, True),
        ({PRODUCT: 7}, {PRODUCT: 8}, True),
        ({}, {PRODUCT: 8, PRODUCT + EACH_TURN: 1}, True),
    ],
)
@pytest.mark.parametrize(
    ("histogram", "facts"),
    [
        ("matmuls", {"matmul_flops"}),
        ("collectives", {"collectives", "collective_bytes"}),
        ("widened", {"widened_bytes"}),
    ],
)
def test_a_loop_whose_length_is_not_known_any_more_is_no_gain(histogram, facts, now, before, comparable):
    """One turn against all turns cannot be compared: INVALID, with the way on, never IMPROVED and never REGRESSED."""
    few, many = dict.fromkeys(facts, 1000), dict.fromkeys(facts, 1_000_000)
    today, then = measurement(facts=few, **{histogram: now}), baseline(facts=many, **{histogram: before})
    found = {f.name: f for f in compare_facts(today, then) if f.name in facts}
    assert {f.status for f in found.values()} == {Status.IMPROVED if comparable else Status.INVALID}
    assert comparable or all("a loop of unknown length" in f.detail for f in found.values())
