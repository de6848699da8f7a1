"""Facts: identical work does not differ, a planted change beyond its tolerance is seen, and its cause is named."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from factories import FACTS, SIGNATURE, baseline, measurement

from jaxgate.judge.facts import compare_facts
from jaxgate.judge.policy import POLICIES
from jaxgate.model import Culprits, Facts, Leaf, Status

LIMITS = {  # name: (baseline, best that is the same, worst that is the same)
    "traces": (1, 1, 1),
    "compiles": (2, 2, 2),
    "sampled_traces": (3, 3, 3),
    "sampled_compiles": (3, 3, 3),
    "donated_bytes": (16384, 16384, 16384),
    "aliased_bytes": (16384, 16384, 16384),
    "constant_bytes": (5000, 3976, 6024),  # ± 1024
    "host_callbacks": (2, 2, 2),
    "launches": (3, 3, 3),
    "host_transfers": (1, 1, 1),
    "matmul_flops": (1_000_000, 1_000_000, 1_000_000),
    "stablehlo_ops": (1000, 480, 1520),  # ± 50 % ± 20
    "argument_bytes": (10_000, 9_900, 10_100),  # ± 1 %
    "output_bytes": (10_000, 9_836, 10_164),  # ± 1 % ± 64
    "temp_bytes": (100_000, 90_904, 109_096),  # ± 5 % ± 4096
    "xla_flops": (10_000, 9_836, 10_164),  # ± 1 % ± 64
    "xla_bytes": (100_000, 85_904, 114_096),  # ± 10 % ± 4096
}
HIGHER_IS_BETTER = {"donated_bytes", "aliased_bytes"}
EXACT = sorted(name for name, (same, best, worst) in LIMITS.items() if same == best == worst)


def worse(name, by=1):
    """The step that makes a fact worse."""
    return -by if name in HIGHER_IS_BETTER else by


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
        set(LIMITS) - {name}, Status.SAME
    )
    return findings[name]


def test_the_limits_cover_every_fact():
    """Each fact has one policy and hand-written limits here; a new fact cannot be forgotten."""
    assert set(LIMITS) == {field.name for field in fields(Facts)}
    assert sorted(LIMITS) == sorted(policy.name for policy in POLICIES)
    assert {policy.name for policy in POLICIES if policy.better == "higher"} == HIGHER_IS_BETTER


def test_an_identical_measurement_does_not_differ():
    """The first question: what was recorded is the same as itself, in all seventeen facts, with nobody to blame."""
    findings = list(compare_facts(measurement(), baseline()))
    assert [(f.name, f.now, f.against) for f in findings] == [
        ("traces", 1, 1),
        ("compiles", 1, 1),
        ("sampled_traces", 0, 0),
        ("sampled_compiles", 0, 0),
        ("donated_bytes", 16384, 16384),
        ("aliased_bytes", 16384, 16384),
        ("constant_bytes", 0, 0),
        ("host_callbacks", 0, 0),
        ("launches", 3, 3),
        ("host_transfers", 1, 1),
        ("matmul_flops", 1_000_000, 1_000_000),
        ("stablehlo_ops", 40, 40),
        ("argument_bytes", 18432, 18432),
        ("output_bytes", 16388, 16388),
        ("temp_bytes", 20_000, 20_000),
        ("xla_flops", 1_100_000, 1_100_000),
        ("xla_bytes", 100_000, 100_000),
    ]
    assert {(f.kind, f.status, f.culprit) for f in findings} == {("fact", Status.SAME, "")}


@pytest.mark.parametrize("name", LIMITS)
def test_just_beyond_the_tolerance_is_a_regression(name):
    """The second question: one unit worse than what is allowed is red, with both numbers and the limit."""
    before, _, limit = LIMITS[name]
    found = one(name, limit + worse(name), before)
    assert (found.status, found.now, found.against) == (Status.REGRESSED, limit + worse(name), before)
    assert found.allowed == pytest.approx(limit, abs=1e-6)


@pytest.mark.parametrize("name", LIMITS)
def test_just_within_the_tolerance_is_the_same(name):
    """The worst and the best allowed value are both no difference."""
    before, best, worst = LIMITS[name]
    assert one(name, worst, before).status is Status.SAME
    assert one(name, best, before).status is Status.SAME


@pytest.mark.parametrize("name", LIMITS)
def test_just_better_than_the_tolerance_is_an_improvement(name):
    """A gain is seen as exactly as a loss, and blamed on nobody."""
    before, best, _ = LIMITS[name]
    found = one(name, best - worse(name), before)
    assert (found.status, found.culprit) == (Status.IMPROVED, "")


@pytest.mark.parametrize("name", EXACT)
def test_swapping_the_sides_swaps_the_outcome(name):
    """What is a loss one way is a gain the other way: the sign of the comparison is right."""
    before, _, _ = LIMITS[name]
    after = before + worse(name)
    assert one(name, after, before).status is Status.REGRESSED
    assert one(name, before, after).status is Status.IMPROVED


def test_the_exact_facts():
    """Counts, donation and written work have no tolerance at all."""
    assert EXACT == [
        "aliased_bytes",
        "compiles",
        "donated_bytes",
        "host_callbacks",
        "host_transfers",
        "launches",
        "matmul_flops",
        "sampled_compiles",
        "sampled_traces",
        "traces",
    ]


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


def culprit(fact, value, before=None, **changes):
    """The culprit of a planted regression; ``before`` replaces fields of the baseline."""
    now = measurement(facts={fact: value}, **changes)
    (found,) = [f for f in compare_facts(now, baseline(**(before or {}))) if f.name == fact]
    assert found.status is Status.REGRESSED
    return found.culprit


@pytest.mark.parametrize("fact", ["traces", "compiles"])
def test_the_culprit_of_a_retrace_is_the_argument(fact):
    """The first retrace names the argument and how it differed."""
    line = "state['w']: float32[64,64] → bfloat16[64,64]"
    assert culprit(fact, 2, culprits=Culprits(retraces=(line, "a later one"))) == line
    assert culprit(fact, 2) == ""


@pytest.mark.parametrize(
    ("fact", "facts"),
    [("sampled_traces", {"sampled_compiles": 3}), ("sampled_compiles", {"sampled_traces": 2})],
)
def test_the_culprit_of_a_steady_state_that_traces(fact, facts):
    """Both counters of the steady state are named."""
    both = {"sampled_traces": 2, "sampled_compiles": 3} | facts
    found = compared(both, {})[fact]
    assert (found.status, found.culprit) == (Status.REGRESSED, "2 traces and 3 compiles while sampling")


def undonated(*leaves):
    """The leaves, none of them donated."""
    return tuple(replace(leaf, donated=False) for leaf in leaves)


@pytest.mark.parametrize("fact", ["donated_bytes", "aliased_bytes"])
def test_the_culprit_of_lost_donation_is_the_argument(fact):
    """The argument that was donated and no longer is, with its size."""
    expected = "no longer donated: state['w'] (16,384 bytes)"
    assert culprit(fact, 0, signature=undonated(*SIGNATURE)) == expected


def test_the_culprit_of_lost_donation_names_three_of_many():
    """Of many lost arguments three are named, the rest counted, the sizes of all added."""
    leaves = tuple(Leaf(path=f"state[{i}]", aval="float32[250]", nbytes=1000, donated=True) for i in range(5))
    kept = replace(leaves[0], path="opt")
    found = culprit("donated_bytes", 1000, signature=(kept, *undonated(*leaves)), before={"signature": (kept, *leaves)})
    assert found == "no longer donated: state[0], state[1], state[2] and 2 more (5,000 bytes)"


def test_the_culprit_of_donation_that_the_compiler_ignores():
    """Asked for and not reused is another fault than no longer asked for."""
    assert culprit("aliased_bytes", 0) == "donated but not all reused: state['w'] (16,384 bytes)"


def test_the_culprit_of_captured_constants():
    """The large constants are listed, three at most."""
    lines = tuple(f"64x64xf32 (16,384 bytes) used by stablehlo.add at model.py:{n}" for n in (7, 8, 9, 10))
    found = culprit("constant_bytes", 65536, culprits=Culprits(constants=lines))
    assert found == "; ".join(lines[:3])
    assert found.startswith("64x64xf32 (16,384 bytes) used by stablehlo.add at model.py:7; 64x64xf32 ")


def test_the_culprit_of_a_host_callback_is_its_line():
    """A callback is named as what it is in the program, with its line."""
    lines = Culprits(operation_lines={"stablehlo.custom_call": "model.py:12"})
    assert culprit("host_callbacks", 1, culprits=lines) == "stablehlo.custom_call at model.py:12"


DOT, WIDE = "float32[8,64] x float32[64,64]", "float32[8,64] x float32[64,256]"


@pytest.mark.parametrize("fact", ["matmul_flops", "temp_bytes", "xla_flops", "xla_bytes", "stablehlo_ops"])
def test_the_culprit_of_more_work_is_the_matmul_with_its_line(fact):
    """A multiplication that is done more often is named with both counts and its line, on every fact it moves."""
    found = culprit(fact, 10_000_000, matmuls={DOT: 6}, culprits=Culprits(matmul_lines={DOT: "model.py:40"}))
    assert found == f"{DOT} 3 → 6 at model.py:40"


def test_the_culprit_of_a_changed_matmul_names_old_and_new():
    """A multiplication of another shape is new, the old one is gone; no line is invented."""
    assert culprit("matmul_flops", 2_000_000, matmuls={WIDE: 3}) == f"{WIDE} 0 → 3; gone: {DOT}"


def test_the_culprit_names_the_three_that_grew_most():
    """The largest growth comes first, ties by name, what shrank is left out."""
    now = {"a": 2, "b": 9, "c": 4, "d": 4, "e": 0}
    found = culprit(
        "matmul_flops", 2_000_000, matmuls=now, before={"matmuls": {"a": 1, "b": 8, "c": 1, "d": 1, "e": 5}}
    )
    assert found == "c 1 → 4; d 1 → 4; a 1 → 2"


@pytest.mark.parametrize("fact", ["stablehlo_ops", "temp_bytes", "output_bytes", "argument_bytes", "xla_bytes"])
def test_the_culprit_of_more_operations_is_the_operation_with_its_line(fact):
    """Where no multiplication grew, the operation that grew most is named."""
    found = culprit(
        fact,
        10_000_000,
        operations={"stablehlo.dot_general": 3, "stablehlo.add": 137},
        culprits=Culprits(operation_lines={"stablehlo.add": "model.py:21"}),
    )
    assert found == "stablehlo.add 37 → 137 at model.py:21"


def test_what_is_gone_is_not_blamed():
    """A multiplication that is done no longer made nothing grow: the operation that grew is named."""
    grown = {"stablehlo.dot_general": 0, "stablehlo.add": 137}
    assert culprit("temp_bytes", 10_000_000, matmuls={}, operations=grown) == "stablehlo.add 37 → 137"
    assert culprit("temp_bytes", 10_000_000, matmuls={}) == ""


def test_no_culprit_is_invented():
    """A fact may grow while the program is the same: then nobody is named."""
    assert culprit("temp_bytes", FACTS.temp_bytes * 2) == ""
    assert culprit("matmul_flops", 2_000_000) == ""


def test_the_culprit_of_more_launches_is_the_program_with_its_line():
    """Programs that a call launches more often are named, the project's own with their lines."""
    lines = Culprits(launch_lines={"step": "train.py:7"})
    before = {"launched": {"step": 1, "multiply": 2}}
    now = measurement(facts={"launches": 8}, launched={"step": 2, "multiply": 2, "add": 4}, culprits=lines)
    (found,) = [f for f in compare_facts(now, baseline(**before)) if f.name == "launches"]
    assert (found.status, found.culprit) == (Status.REGRESSED, "add 0 → 4; step 1 → 2 at train.py:7")


def test_a_fact_that_could_not_be_had_says_why():
    """The baseline has it, today has not: it is not compared, and the reason is its culprit."""
    culprits = Culprits(unknown={"launches": "another profile is open"})
    now = measurement(facts={"launches": None}, culprits=culprits)
    (found,) = [f for f in compare_facts(now, baseline()) if f.name == "launches"]
    assert (found.status, found.culprit) == (Status.INVALID, "another profile is open")
