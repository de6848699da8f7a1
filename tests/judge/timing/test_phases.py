"""Phases: figures of another day gate with wide limits, on the hardware that recorded them, and not by one process."""

from dataclasses import replace

import pytest
from support.factories import (
    CASE,
    ENVIRONMENT,
    FINGERPRINTS,
    HARDWARE,
    OTHER_CPU,
    PHASES,
    launched_program,
    measurement,
    record,
)

from jaxgate.judge.difference import Difference
from jaxgate.judge.order import waits_for_confirmation
from jaxgate.judge.timing.phases import compare_phases, settle_phases
from jaxgate.judge.verdict import judge
from jaxgate.model.decision import Status
from jaxgate.model.machine import CORES, HardwareKey
from jaxgate.model.numbers import Phases
from jaxgate.model.verdict import Finding

ONCE = ("trace_ns", "lower_ns", "compile_ns", "first_call_ns")
SECOND = 1_000_000_000
QUICK = Phases(
    trace_wait_ns=0, host_ns=1_000_000, dispatch_ns=100_000, yardstick_ns=2_000_000, **dict.fromkeys(ONCE, SECOND)
)
LIMITS = dict.fromkeys(ONCE, 1_850_000_000) | {
    "trace_wait_ns": 1_750_000_000,  # 1 s, and 75 % of a second of tracing
    "host_ns": 2_100_000,
    "dispatch_ns": 250_000,
}  # + 75 % + 100 ms; twice + 100 µs or 50 µs
CHANGED = replace(FINGERPRINTS, program="p1", source="s1")


def compared(now=None, before=QUICK, *, borrowed=False, hardware=HARDWARE, **changes):
    """The findings by name, of a changed program; ``now`` replaces single phases of the baseline's."""
    today = measurement(phases=replace(QUICK, **(now or {})), **({"fingerprints": CHANGED} | changes))
    known = record(phases=before, hardware=hardware, borrowed=borrowed)
    found = list(compare_phases(Difference(today, known.baseline), known))
    assert {finding.kind for finding in found} <= {"phase"}
    return {finding.name: finding for finding in found}


# The limits


def test_a_phase_like_the_baselines_is_the_same():
    """Every phase that both have, each with the limit; the yardstick is no phase."""
    found = compared()
    assert {name: finding.allowed for name, finding in found.items()} == LIMITS
    assert {finding.status for finding in found.values()} == {Status.SAME}
    assert {(finding.now, finding.against) for name, finding in found.items() if name in ONCE} == {(SECOND, SECOND)}


@pytest.mark.parametrize("name", LIMITS)
def test_just_beyond_the_limit_is_a_regression(name):
    """One nanosecond more than is allowed is red, at the limit it is not; no other phase moves."""
    at_limit, beyond = compared({name: LIMITS[name]}), compared({name: LIMITS[name] + 1})
    assert {finding.status for finding in at_limit.values()} == {Status.SAME}
    assert [other for other, finding in beyond.items() if finding.status is Status.REGRESSED] == [name]
    assert {finding.status for other, finding in beyond.items() if other != name} == {Status.SAME}


@pytest.mark.parametrize(
    ("name", "before", "now", "status"),
    [
        # neither ten times of nothing nor a fifth of much gates: share and time must both be large
        *[(name, {name: 10_000_000}, 100_000_000, Status.SAME) for name in ONCE],  # ten times, and 90 ms
        *[(name, {name: 10 * SECOND}, 12 * SECOND, Status.SAME) for name in ONCE],  # 2 s, and 20 %
        *[(name, {name: 400_000_000}, 900_000_000, Status.REGRESSED) for name in ONCE],  # 2.25 times, and 500 ms
        ("compile_ns", {}, SECOND // 10, Status.IMPROVED),
        # Python's part of a call has limits of its own: twice, and 100 µs or 50 µs
        ("host_ns", {"host_ns": 10_000}, 100_000, Status.SAME),
        ("host_ns", {"host_ns": 10_000_000}, 19_000_000, Status.SAME),
        ("host_ns", {"host_ns": 100_000}, 400_000, Status.REGRESSED),
        ("dispatch_ns", {"dispatch_ns": 0}, 50_000, Status.SAME),
        ("dispatch_ns", {"dispatch_ns": 0}, 50_001, Status.REGRESSED),
        # waiting is held against all of the tracing, run and waited for: more than a second, and more than 75 % of it
        ("trace_wait_ns", {}, 1_750_000_000, Status.SAME),
        ("trace_wait_ns", {"trace_ns": 60 * SECOND}, 46 * SECOND, Status.SAME),  # beside a busy neighbour it waits long
        ("trace_wait_ns", {"trace_ns": 60 * SECOND}, 46 * SECOND + 1, Status.REGRESSED),
        ("trace_wait_ns", {"trace_ns": 10_000_000}, 4 * SECOND, Status.REGRESSED),
        ("trace_wait_ns", {"trace_ns": 10_000_000, "trace_wait_ns": 4 * SECOND}, 7 * SECOND, Status.SAME),  # as before
        ("trace_wait_ns", {"trace_ns": 10_000_000, "trace_wait_ns": 4 * SECOND}, 9 * SECOND, Status.REGRESSED),
        ("trace_wait_ns", {"trace_ns": None}, SECOND, Status.SAME),
    ],
)
def test_how_much_longer_a_phase_may_take(name, before, now, status):
    """Fresh processes are held against the same limit: the same time again confirms what is red, and nothing else."""
    then = replace(QUICK, **before)
    found = compared({name: now}, then)[name]
    assert found.status is status
    (again,) = settle_phases([replace(found, status=Status.REGRESSED)], then, [Phases(**{name: now})], wanted=1)
    assert again.status is (Status.REGRESSED if status is Status.REGRESSED else Status.UNDECIDED)


# What cannot be judged


@pytest.mark.parametrize("side", ["now", "then"])
@pytest.mark.parametrize("name", LIMITS)
def test_what_one_side_does_not_know_is_not_judged(name, side):
    """A phase that came out of a cache is neither quick nor slow."""
    found = compared({name: None}) if side == "now" else compared(None, replace(QUICK, **{name: None}))
    assert set(found) == set(LIMITS) - {name}


SLOW = dict.fromkeys(LIMITS, 100 * SECOND)


@pytest.mark.parametrize(
    "hardware",
    [OTHER_CPU, HardwareKey(platform="cpu", device_kind="AMD EPYC", devices=2)],
    ids=["another processor", "another number of devices"],
)
def test_other_hardware_is_not_judged(hardware):
    assert compared(SLOW, hardware=hardware, borrowed=True) == {}
    assert compared(SLOW, hardware=hardware) == {}
    assert compared(SLOW, borrowed=True) == {}


def test_fewer_cores_are_another_machine():
    """Nothing of it is judged by a clock: what runs beside a call took the other core."""
    assert compared(SLOW, environment=ENVIRONMENT | {CORES: "1 of 2"}) == {}


def test_of_an_identical_program_only_what_python_does_is_judged():
    """The compiler gets the same text in the same environment: what it takes longer is not the project's doing."""
    found = compared(SLOW, fingerprints=FINGERPRINTS)
    assert {name: finding.status for name, finding in found.items()} == {
        "trace_ns": Status.REGRESSED,
        "trace_wait_ns": Status.REGRESSED,
        "dispatch_ns": Status.REGRESSED,
    }


@pytest.mark.parametrize(
    "changes",
    [
        {"fingerprints": CHANGED},
        {"fingerprints": replace(FINGERPRINTS, options="xla_cpu_enable_fast_math=True")},
        {"fingerprints": replace(FINGERPRINTS, options=None)},
        {"environment": ENVIRONMENT | {"flax": "0.12.0"}},
        {"facts": {"host_callbacks": 1}},
        {"eager": True},
    ],
    ids=["program", "options", "unknown options", "environment", "calls Python", "plain Python"],
)
def test_what_is_not_identical_is_judged_in_every_phase(changes):
    """Another compiler or a program that no fingerprint covers may take longer; that is worth a red case."""
    found = compared(SLOW, **({"fingerprints": FINGERPRINTS} | changes))
    assert {name for name, finding in found.items() if finding.status is Status.REGRESSED} == set(LIMITS)


@pytest.mark.parametrize(
    ("source", "judged"), [("s0", set()), ("s1", {"host_ns", "first_call_ns"}), (None, {"host_ns", "first_call_ns"})]
)
@pytest.mark.parametrize(("first_call_ns", "beyond"), [(4_900_000_000, True), (4_800_000_000, False)])
def test_around_identical_programs_python_of_another_source_is_judged_as_a_whole(source, judged, first_call_ns, beyond):
    """Its first call may take 3 s more, as it imports what no test before it has imported."""
    before = replace(QUICK, lower_ns=None)
    plain = {"eager": True, "launched_programs": (launched_program(),)}
    slow = replace(before, host_ns=SECOND, first_call_ns=first_call_ns)
    now = measurement(phases=slow, fingerprints=replace(FINGERPRINTS, source=source), **plain)
    known = record(phases=before, **plain)
    difference = Difference(now, known.baseline)
    assert difference.why_not_identical == ""
    found = {one.name for one in compare_phases(difference, known) if one.status is Status.REGRESSED}
    assert found == (judged if beyond else judged - {"first_call_ns"})


@pytest.mark.parametrize("name", ["jax", "jaxlib", "python"])
def test_dispatch_is_not_compared_between_releases(name):
    """How JAX gets from a call to its executable is its own affair; the other phases are judged."""
    found = compared(SLOW, environment=ENVIRONMENT | {name: "9.9"})
    assert set(found) == set(LIMITS) - {"dispatch_ns"}


# The yardstick


def test_a_slower_machine_is_allowed_more():
    """Where plain Python takes twice as long, everything may; it says so."""
    found = compared({"yardstick_ns": 4_000_000, "compile_ns": 3_700_000_000, "trace_ns": 3_700_000_001})
    assert (found["compile_ns"].status, found["compile_ns"].allowed) == (Status.SAME, 3_700_000_000)
    assert (found["trace_ns"].status, found["trace_ns"].allowed) == (Status.REGRESSED, 3_700_000_000)
    assert {finding.detail for finding in found.values()} == {
        "this machine runs Python 2.00 × slower than when it was recorded"
    }


@pytest.mark.parametrize(
    ("now", "then"),
    [(1_000_000, 2_000_000), (2_000_000, 2_000_000), (None, 2_000_000), (9_000_000, None), (None, None), (9, 0)],
    ids=["a quicker machine", "an equal one", "unknown now", "unknown then", "unknown", "a broken clock"],
)
def test_nothing_but_a_slower_machine_moves_a_limit(now, then):
    """A quicker one does not tighten it: a trace need not gain as much; what is unknown does not loosen it."""
    assert Phases(yardstick_ns=now).slower_than(Phases(yardstick_ns=then)) == 1.0
    found = compared({"yardstick_ns": now}, replace(QUICK, yardstick_ns=then))
    assert {name: finding.allowed for name, finding in found.items()} == LIMITS
    assert {finding.detail for finding in found.values()} == {""}


# The verdict


def test_a_red_phase_fails_the_case_and_waits():
    """Only the clock of one process says so: fresh ones are asked before it counts."""
    now = measurement(phases=replace(PHASES, trace_ns=SECOND))
    verdict = judge(CASE, (), now, record(), strict=True)
    assert (verdict.status, verdict.fails, verdict.worst.name) == (Status.REGRESSED, True, "trace_ns")
    assert waits_for_confirmation(verdict)
    beside = judge(CASE, (), replace(now, facts=replace(now.facts, traces=2)), record(), strict=True)
    assert not waits_for_confirmation(beside)
    assert beside.worst.name == "traces"


def test_a_missing_baseline_says_nothing_about_phases():
    verdict = judge(CASE, (), measurement(phases=replace(PHASES, trace_ns=SECOND)), None, strict=True)
    assert "phase" not in {finding.kind for finding in verdict.findings}


# Fresh processes

AGAIN = replace(QUICK, compile_ns=1_850_000_001)
RED = Finding(
    kind="phase", name="compile_ns", status=Status.REGRESSED, now=2 * SECOND, against=SECOND, allowed=1_850_000_000
)
OTHERS = (
    Finding(kind="phase", name="trace_ns", status=Status.SAME, now=SECOND, against=SECOND),
    Finding(kind="fact", name="traces", status=Status.SAME, now=1, against=1),
)


def settled(*launches, wanted=2):
    """The red finding, after fresh processes."""
    found = settle_phases((RED, *OTHERS), QUICK, launches, wanted=wanted)
    assert set(OTHERS) <= set(found)
    (own,) = [finding for finding in found if finding.name == "compile_ns"]
    assert found[0] == own  # whatever it became, nothing of the others is worse
    return own


LOST = "it could not be confirmed: "
NOT_SEEN = "it was not confirmed by fresh process {} of 2"
BUSY = replace(AGAIN, yardstick_ns=4_000_000)


@pytest.mark.parametrize(
    ("launches", "status", "detail"),
    [
        ((AGAIN, AGAIN), Status.REGRESSED, "confirmed in 2 fresh processes"),
        # one that is within the limit is enough; at the limit it did not come again, one nanosecond beyond it did
        ((QUICK,), Status.UNDECIDED, NOT_SEEN.format(1)),
        ((QUICK, AGAIN), Status.UNDECIDED, NOT_SEEN.format(1)),
        ((AGAIN, QUICK), Status.UNDECIDED, NOT_SEEN.format(2)),
        ((AGAIN, replace(AGAIN, compile_ns=1_850_000_000)), Status.UNDECIDED, NOT_SEEN.format(2)),
        # the machine may be busy only while a fresh process runs: it has its own yardstick
        ((AGAIN, BUSY), Status.UNDECIDED, NOT_SEEN.format(2)),
        ((AGAIN, replace(BUSY, compile_ns=3_700_000_001)), Status.REGRESSED, "confirmed in 2 fresh processes"),
        # what cannot be confirmed is neither green nor an accusation
        (("a fresh process failed: killed",), Status.INVALID, f"{LOST}a fresh process failed: killed"),
        ((AGAIN, "a fresh process recorded nothing"), Status.INVALID, f"{LOST}a fresh process recorded nothing"),
        ((replace(AGAIN, compile_ns=None),), Status.INVALID, f"{LOST}it came out of a cache"),
        ((AGAIN,), Status.INVALID, f"{LOST}no fresh process says anything"),
        ((), Status.INVALID, f"{LOST}no fresh process says anything"),
    ],
)
def test_what_fresh_processes_make_of_a_red_phase(launches, status, detail):
    assert settled(*launches) == replace(RED, status=status, detail=detail)


def test_only_red_phases_are_settled():
    """A red fact needs no second process, and is not taken back by one."""
    fact = Finding(kind="fact", name="temp_bytes", status=Status.REGRESSED, now=2, against=1)
    improved = Finding(kind="phase", name="trace_ns", status=Status.IMPROVED, now=1, against=SECOND)
    found = settle_phases((fact, RED, improved), QUICK, (QUICK,), wanted=2)
    assert found[0] == fact
    assert improved in found
    assert [finding.status for finding in found] == [Status.REGRESSED, Status.UNDECIDED, Status.IMPROVED]


def test_each_phase_is_settled_for_itself():
    both = (RED, replace(RED, name="trace_ns"))
    found = {f.name: f.status for f in settle_phases(both, QUICK, (AGAIN, AGAIN), wanted=2)}
    assert found == {"compile_ns": Status.REGRESSED, "trace_ns": Status.UNDECIDED}
