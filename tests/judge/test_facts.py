"""Facts: identical work does not differ, and a planted change beyond its tolerance is seen."""

from dataclasses import asdict, replace
from math import floor
from operator import attrgetter

import pytest
from support.factories import ENVIRONMENT, FACTS, FINGERPRINTS, HARDWARE, OTHER_CPU, baseline, measurement

from jaxgate.judge.difference import Difference
from jaxgate.judge.facts import compare_facts
from jaxgate.judge.policy import POLICIES
from jaxgate.model.decision import Status
from jaxgate.model.machine import HardwareKey
from jaxgate.model.measurement import EACH_TURN
from jaxgate.model.numbers import ARRIVAL_FACTS
from jaxgate.model.workload import Tolerance

BEFORE = 1_000_000
EACH_FACT = pytest.mark.parametrize("policy", POLICIES, ids=attrgetter("name"))


def worse(policy):
    """The step that makes a fact worse."""
    return -1 if policy.better == "higher" else 1


def slack(policy, before=BEFORE):
    """The whole units by which a fact may move; docs/policy.md, held against the code by a test, has the numbers."""
    return floor(round(policy.relative * before + policy.absolute, 6))


def compared(now, before, **changes):
    """The findings by name; ``changes`` go to today's measurement."""
    findings = list(compare_facts(Difference(measurement(facts=now, **changes), baseline(facts=before))))
    by_name = {finding.name: finding for finding in findings}
    assert len(by_name) == len(findings)
    return by_name


def one(name, now, before):
    """The finding of the fact that was planted in another program; no other fact may have moved."""
    findings = compared({name: now}, {name: before}, fingerprints=replace(FINGERPRINTS, program="p1"))
    others = {*(policy.name for policy in POLICIES), *ARRIVAL_FACTS} - {name}
    assert {other: f.status for other, f in findings.items() if other != name} == dict.fromkeys(others, Status.SAME)
    return findings[name]


def test_an_identical_measurement_does_not_differ():
    """The first question: what was recorded is the same as itself, in every fact."""
    findings = list(compare_facts(Difference(measurement(), baseline())))
    assert {f.name: (f.now, f.against) for f in findings} == {
        **{name: (n, n) for name, n in asdict(FACTS).items()},
        **dict.fromkeys(ARRIVAL_FACTS, (0, 0)),
    }
    assert {(f.kind, f.status, f.detail) for f in findings} == {("fact", Status.SAME, "")}


@EACH_FACT
@pytest.mark.parametrize("before", [BEFORE, 0])
def test_the_tolerance_of_a_fact(policy, before):
    """The second question: one unit worse than allowed is red, one better is a gain, all between is the same.

    Zero is not "unknown": growth from nothing gates, by the absolute tolerance alone.
    """
    name, step, may = policy.name, worse(policy), slack(policy, before)
    found = one(name, before + step * (may + 1), before)
    assert (found.status, found.now, found.against) == (Status.REGRESSED, before + step * (may + 1), before)
    assert found.allowed == pytest.approx(before + step * (policy.relative * before + policy.absolute))
    assert one(name, before + step * may, before).status is Status.SAME
    assert one(name, before - step * may, before).status is Status.SAME
    assert one(name, before - step * (may + 1), before).status is Status.IMPROVED


@pytest.mark.parametrize(
    ("now", "inputs", "status"),
    [(111, "i0", Status.SAME), (112, "i0", Status.REGRESSED), (201, "i1", Status.SAME), (202, "i1", Status.REGRESSED)],
)
def test_other_values_may_double_the_turns_of_a_loop(now, inputs, status):
    """Two draws of random numbers may need so many; the same values may not, and a tolerance of the case's own holds."""
    today = measurement(facts={"loop_turns": now}, fingerprints=replace(FINGERPRINTS, inputs=inputs))
    difference = Difference(today, baseline(facts={"loop_turns": 100}))
    own = [Tolerance(fact="loop_turns", why="its own")]
    for tolerances, expected in (([], status), (own, Status.REGRESSED)):
        (found,) = (one for one in compare_facts(difference, tolerances) if one.name == "loop_turns")
        assert found.status is expected


@EACH_FACT
def test_a_fact_that_one_side_lacks(policy):
    """One that the baseline has and today lacks never passes; one that only today has is not passed over in silence."""
    vanished = one(policy.name, None, BEFORE)
    assert (vanished.status, vanished.now, vanished.against) == (Status.INVALID, None, BEFORE)
    assert "the baseline has it, today's measurement does not" in vanished.detail
    new = one(policy.name, BEFORE, None)
    assert (new.status, new.now, new.against) == (Status.SAME, BEFORE, None)
    assert "the baseline does not have it" in new.detail


def test_a_fact_that_nobody_knows_is_not_judged():
    """Where neither side tells, there is nothing to compare."""
    assert "temp_bytes" not in compared({"temp_bytes": None}, {"temp_bytes": None})


@pytest.mark.parametrize(
    ("unknown", "why"),
    [({"launches": "another profile is open"}, "another profile is open"), ({}, "it cannot be compared")],
)
def test_a_fact_that_could_not_be_had_says_why(unknown, why):
    """The baseline has it, today has not: it is not compared, and the reason stands beside it."""
    found = compared({"launches": None}, {}, unknown=unknown)["launches"]
    assert found.status is Status.INVALID
    assert found.detail == f"the baseline has it, today's measurement does not: {why}"


@pytest.mark.parametrize(
    ("now", "here", "then", "status", "environment"),
    [
        (16_800_000, 13_600_000, 79_700_000, Status.UNDECIDED, False),
        (90_000_000, 13_600_000, 79_700_000, Status.REGRESSED, False),
        (16_800_000, 13_600_000, 12_000_000, Status.REGRESSED, True),
        (13_600_000, 13_600_000, 12_000_000, Status.SAME, True),
        (13_600_000, 13_600_000, 79_700_000, Status.SAME, False),
        (11_000_000, 13_600_000, 12_000_000, Status.IMPROVED, True),
        (13_600_000, 13_600_000, 13_500_000, Status.SAME, False),
    ],
    ids=["less than anybody had", "worse than both", "both are worse", "the compiler", "a gain", "made good", "noise"],
)
def test_what_another_compiler_made_of_it_is_not_the_codes(now, here, then, status, environment):
    """Red where today is worse than the baseline's program here and than what was recorded; neither alone is green."""
    today = measurement(facts={"temp_bytes": now}, environment=ENVIRONMENT | {"jaxlib": "0.12.0"})
    difference = Difference(today, baseline(facts={"temp_bytes": here}))
    found = list(compare_facts(difference, recorded=replace(baseline().facts, temp_bytes=then)))
    (fact,) = [finding for finding in found if (finding.kind, finding.name) == ("fact", "temp_bytes")]
    assert (fact.status, fact.now, fact.against, fact.recorded) == (status, now, here, then)
    own = [(f.name, f.status, f.now, f.against) for f in found if f.kind == "environment"]
    assert own == ([("temp_bytes", Status.UNDECIDED, here, then)] if environment else [])
    assert {finding.status for finding in found if finding.name != "temp_bytes"} == {Status.SAME}


def test_a_workloads_own_tolerance_holds_for_both_sides():
    """It says how far the fact may move, whoever moves it."""
    own = Tolerance(fact="temp_bytes", relative=1.0, why="it is rewritten this week")
    recorded = replace(baseline().facts, temp_bytes=100_000)
    now, here = measurement(facts={"temp_bytes": 190_000}), baseline(facts={"temp_bytes": 150_000})
    found = list(compare_facts(Difference(now, here), [own], recorded=recorded))
    assert {finding.status for finding in found} == {Status.SAME}


def tolerated(fact, now, before, **tolerance):
    """The finding of one fact under the workload's own tolerance."""
    own = Tolerance(fact=fact, why="it is rewritten this week", **tolerance)
    findings = compare_facts(Difference(measurement(facts={fact: now}), baseline(facts={fact: before})), [own])
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
    found = {f.name: f for f in compare_facts(Difference(today, then)) if f.name in facts}
    assert {f.status for f in found.values()} == {Status.IMPROVED if comparable else Status.INVALID}
    assert comparable or all("a loop of unknown length" in f.detail for f in found.values())


GPU = HardwareKey(platform="gpu", device_kind="NVIDIA H200", devices=1)
BETTER = {name: 1 if name == "aliased_bytes" else -1 for name in (
    "argument_bytes", "output_bytes", "aliased_bytes", "temp_bytes", "xla_flops", "xla_bytes")}  # fmt: skip
"""What the compiler makes of a program, and which way is better."""


def beyond(name):
    """A stored value against which today's is better than any tolerance explains: slack for the next change."""
    return getattr(FACTS, name) * (3 if BETTER[name] < 0 else 1) // (1 if BETTER[name] < 0 else 3)


def statuses(*, on=None, **changes):
    """The status of each compiled fact, all of them edited in the baseline."""
    where = {"hardware": on} if on else {}
    prints = replace(FINGERPRINTS, executable="e0", devices="0 1")
    stored = baseline(facts={name: beyond(name) for name in BETTER}, fingerprints=prints, **where)
    found = {f.name: f for f in compare_facts(Difference(measurement(**{**where, **changes}), stored))}
    return {name: found[name].status for name in BETTER}


def test_a_baseline_that_its_own_program_contradicts_was_edited():
    """The same program, options, environment and hardware: the compiler cannot have made anything else of it."""
    assert statuses() == dict.fromkeys(BETTER, Status.INVALID)
    found = compared({}, {})["temp_bytes"], compared({"temp_bytes": 10**6}, {})["temp_bytes"]
    assert [f.status for f in found] == [Status.SAME, Status.REGRESSED]  # what is worse keeps its name
    stored = baseline(facts={"temp_bytes": 999_999_999})
    (edited,) = (f for f in compare_facts(Difference(measurement(), stored)) if f.name == "temp_bytes")
    assert "edited by hand? Restore its file with git, or record it again" in edited.detail


def test_a_gpu_compiler_may_choose_otherwise():
    """It tries programs out: only what goes in and out is certain there."""
    certain = {"argument_bytes", "output_bytes", "aliased_bytes"}
    found = statuses(on=GPU)
    assert found == {name: Status.INVALID if name in certain else Status.IMPROVED for name in BETTER}


TARGET = HardwareKey(platform="gpu", device_kind="h200:8", devices=8)


@pytest.mark.parametrize(
    ("hardware", "program", "status"),
    [
        (GPU, FINGERPRINTS, Status.UNDECIDED),
        (GPU, replace(FINGERPRINTS, program="p1"), Status.REGRESSED),
        (TARGET, FINGERPRINTS, Status.REGRESSED),
        (HARDWARE, FINGERPRINTS, Status.REGRESSED),
    ],
    ids=["same program", "changed program", "target", "cpu"],
)
def test_other_kernels_of_the_same_program_are_nobodys_fault(hardware, program, status):
    """A GPU's compiler times kernels, and may take one with a workspace today. What goes in and out is none of its choices."""
    worse = {"temp_bytes": 10**9, "kernels": 10**6, "argument_bytes": 10**9}
    now = measurement(hardware=hardware, facts=worse, fingerprints=program)
    found = {f.name: f for f in compare_facts(Difference(now, baseline(hardware=hardware, facts={"kernels": 1})))}
    assert {found[name].status for name in ("temp_bytes", "kernels")} == {status}
    assert found["argument_bytes"].status is Status.REGRESSED
    assert ("timed kernels" in found["temp_bytes"].detail) is (status is Status.UNDECIDED)


@pytest.mark.parametrize(
    "changes",
    [
        {"fingerprints": replace(FINGERPRINTS, program="p1")},
        {"fingerprints": replace(FINGERPRINTS, options="xla_x=1")},
        {"fingerprints": replace(FINGERPRINTS, options=None)},
        {"fingerprints": replace(FINGERPRINTS, executable="e1")},
        {"fingerprints": replace(FINGERPRINTS, devices="1 0")},
        {"environment": {**ENVIRONMENT, "jaxlib": "0.10.3"}},
        {"hardware": OTHER_CPU},
        {"eager": True},
    ],
    ids=["program", "options", "unknown options", "executable", "devices", "environment", "hardware", "host"],
)
def test_anything_else_that_differs_may_explain_a_gain(changes):
    assert statuses(**changes) == dict.fromkeys(BETTER, Status.IMPROVED)


def test_a_gain_within_a_tolerance_is_no_edit():
    """The fingerprint does not know the order of independent lines, which moves a compiler's figures a little."""
    before = FACTS.temp_bytes
    assert tolerated("temp_bytes", before - 1, before).status is Status.IMPROVED


@pytest.mark.parametrize("name", ["host_reads", "python_calls", "jax_calls"])
def test_what_differs_from_call_to_call_is_undecided(name):
    """A subject whose calls differ today has no count: neither green nor red, with the reason."""
    found = compared({name: None}, {}, unknown={name: "the Python calls of 3 warm calls differ"})[name]
    assert found.status is Status.UNDECIDED
    assert found.detail.endswith("the Python calls of 3 warm calls differ")


def test_what_jax_does_inside_itself_is_compared_within_its_release():
    """Another release, or another Python, does it otherwise; what the project calls is held against the old count."""
    now = {"python_calls": 1000, "jax_calls": 1000}
    for name in ("jax", "jaxlib", "python"):
        found = compared(now, {}, environment=ENVIRONMENT | {name: "0.12.0"})
        assert (found["jax_calls"].status, found["python_calls"].status) == (Status.SAME, Status.REGRESSED)
        assert found["jax_calls"].detail == f"not compared: {name} is another one than the baseline's"
    assert compared(now, {})["jax_calls"].status is Status.REGRESSED


@pytest.mark.parametrize(
    ("loops", "today", "status"),
    [
        ((1, 0), 20_000, Status.SAME),
        ((1, 0), 5_000, Status.IMPROVED),
        ((0, 1), 5_000, Status.SAME),
        ((0, 1), 20_000, Status.REGRESSED),
        ((1, 1), 20_000, Status.REGRESSED),
    ],
)
def test_work_that_leaves_a_loop_is_not_more_of_it(loops, today, status):
    """The compiler's cost model takes the body of a loop once: what it holds 32 times counts 32 times as much outside."""
    before, after = ({"stablehlo.while": count, "stablehlo.tanh 8xf32": 1} for count in loops)
    other = replace(FINGERPRINTS, program="1" * 32, executable="1" * 32)
    now = measurement(facts={"xla_flops": today}, operations=after, fingerprints=other)
    then = baseline(facts={"xla_flops": 10_000}, operations=before)
    (found,) = (one for one in compare_facts(Difference(now, then)) if one.name == "xla_flops")
    assert found.status is status
    if status is Status.SAME:
        assert found.detail.endswith(f"has 1 loop {'fewer' if loops[0] else 'more'}; its time decides")
        untimed = compare_facts(Difference(replace(now, samples=None), then))
        (found,) = (one for one in untimed if one.name == "xla_flops")
        assert found.status is not Status.SAME
