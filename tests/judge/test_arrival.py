"""How arguments arrive: what each call sends or moves for them, against the baseline's."""

from dataclasses import replace
from datetime import date

import pytest
from support.factories import CASE, SIGNATURE, argument, baseline, decision, measurement, record

from jaxgate.judge.difference import Difference
from jaxgate.judge.facts import compare_facts
from jaxgate.judge.verdict import judge
from jaxgate.judge.waivers import apply_waivers
from jaxgate.model.decision import Status
from jaxgate.model.measurement import ELSEWHERE
from jaxgate.model.waiver import Waiver
from jaxgate.model.workload import Tolerance

MEGA = 1_000_000


def sending(*sizes, arrival="NumPy float32"):
    """Arguments that cost this much at each call."""
    return tuple(argument(f"x{place}", arrival=arrival, sent_bytes=size) for place, size in enumerate(sizes))


def found(name, now, before, tolerances=()):
    """The finding of a sum over arguments."""
    findings = compare_facts(Difference(measurement(signature=now), baseline(signature=before)), tolerances)
    return next((finding for finding in findings if finding.name == name), None)


def judged(now, before=SIGNATURE, **how):
    """The verdict on arguments that arrive in another way."""
    return judge(CASE, (), measurement(signature=now), record(signature=before), strict=True, **how)


THERE = f"device array{ELSEWHERE}"


def moving(number, arrival=THERE):
    """Arrays of four bytes on other devices, or of another arrival."""
    return sending(*[4] * number, arrival=arrival)


@pytest.mark.parametrize(
    ("fact", "now", "before", "status"),
    [
        # a tenth and a megabyte more may be sent: that takes as long as the machine is late anyway
        ("sent_bytes", sending(MEGA), sending(0), Status.SAME),
        ("sent_bytes", sending(MEGA + 1), sending(0), Status.REGRESSED),
        ("sent_bytes", sending(MEGA // 2, MEGA // 2 + 1), sending(0, 0), Status.REGRESSED),
        ("sent_bytes", sending(23 * MEGA), sending(20 * MEGA), Status.SAME),
        ("sent_bytes", sending(23 * MEGA + 1), sending(20 * MEGA), Status.REGRESSED),
        ("sent_bytes", sending(20 * MEGA), sending(20 * MEGA), Status.SAME),
        ("sent_bytes", sending(0), sending(20 * MEGA), Status.IMPROVED),
        # each array that is moved costs as much as a small program; a single number may, and what the host has is not moved
        ("moved_arrays", sending(0, 0, 0), sending(0, 0, 0), Status.SAME),
        ("moved_arrays", (*moving(1), *sending(0, 0)), sending(0, 0, 0), Status.SAME),
        ("moved_arrays", (*moving(2), *sending(0)), sending(0, 0, 0), Status.REGRESSED),
        ("moved_arrays", moving(3, "NumPy float32"), sending(0, 0, 0), Status.SAME),
        # each argument that is sent takes a while, however few its bytes: a tree of numbers that were arrays once
        ("sent_arguments", sending(*[8] * 16), sending(*[0] * 16), Status.SAME),
        ("sent_arguments", sending(*[8] * 17), sending(*[0] * 17), Status.REGRESSED),
        ("sent_arguments", sending(*[8] * 220), sending(*[8] * 200, *[0] * 20), Status.SAME),
        ("sent_arguments", (), sending(*[8] * 40), Status.IMPROVED),
        ("sent_arguments", moving(40), sending(*[0] * 40), Status.SAME),
    ],
)
def test_what_each_call_sends_and_moves(fact, now, before, status):
    assert found(fact, now, before).status is status


def test_a_baseline_that_does_not_know_is_not_judged():
    """One that was recorded before this was looked at says so, and nothing is red."""
    older = tuple(replace(leaf, arrival=None, sent_bytes=None) for leaf in sending(0))
    finding = found("sent_bytes", sending(20 * MEGA), older)
    assert (finding.status, finding.now, finding.against) == (Status.SAME, 20 * MEGA, None)
    assert "not judged until it is recorded again" in finding.detail
    verdict = judged(sending(20 * MEGA), older)
    assert (verdict.status, verdict.time.reason, verdict.causes) == (Status.SAME, "identical program", ())
    assert verdict.origin.differences == ()


def test_a_subject_on_the_host_has_no_arrivals():
    """What plain Python sends is counted in a profile of its call."""
    now, before = measurement(eager=True, signature=sending(0)), baseline(eager=True, signature=sending(0))
    assert not {"sent_bytes", "moved_arrays"} & {finding.name for finding in compare_facts(Difference(now, before))}


def test_an_argument_that_costs_more_is_named():
    """By its path, with what it was, what it is and its bytes; the program is the same, and a call is not."""
    large = argument(aval="float32[4096,4096]", arrival="NumPy float64", sent_bytes=134_217_728)
    before = (SIGNATURE[0], replace(large, arrival="device array", sent_bytes=0))
    verdict = judged((SIGNATURE[0], large), before)
    assert (verdict.status, verdict.fails, verdict.worst.name) == (Status.REGRESSED, True, "sent_bytes")
    assert str(verdict.causes[0]) == (
        "batch: device array then, NumPy float64 now: 134,217,728 bytes are converted and sent at every call"
    )
    assert (verdict.time.status, verdict.origin.place) == (
        Status.UNDECIDED,
        "options or values that the function's source does not have",
    )
    assert verdict.time.reason.startswith("identical program, but its arguments arrive otherwise")
    assert verdict.origin.differences == ("arrival of arguments changed",)


@pytest.mark.parametrize(
    ("arrival", "verb"),
    [
        ("NumPy float32", "sent"),
        ("NumPy float64", "converted and sent"),
        ("Python float", "converted and sent"),
        (f"uncommitted device array{ELSEWHERE}", "moved"),
        (f"pinned_host array{ELSEWHERE}", "moved"),
    ],
)
def test_what_a_call_does_with_an_argument(arrival, verb):
    """Host data is sent, and converted if JAX makes another type of it; a device array is moved."""
    verdict = judged(sending(20 * MEGA, 5, arrival=arrival), sending(0, 0, arrival="device array"))
    assert str(verdict.causes[0]) == (
        f"x0: device array then, {arrival} now: 20,000,000 bytes are {verb} at every call; and 1 more"
    )


def test_another_commitment_alone_is_no_loss():
    """It is said where something else is red, and takes nothing of identity."""
    verdict = judged(sending(0, arrival="device array"), sending(0, arrival="uncommitted device array"))
    assert (verdict.status, verdict.time.status, verdict.time.reason) == (Status.SAME, Status.SAME, "identical program")
    assert Difference(measurement(signature=SIGNATURE), baseline(signature=SIGNATURE)).origin.differences == ()


def test_what_was_duelled_keeps_its_word():
    """A duel times the changed program; the arguments are red beside it."""
    now = measurement(signature=sending(20 * MEGA), fingerprints=replace(measurement().fingerprints, program="p1"))
    told = decision(Status.FASTER)
    verdict = judge(CASE, (), now, record(signature=sending(0)), strict=True, decision=told)
    assert (verdict.status, verdict.time.status) == (Status.REGRESSED, Status.FASTER)


def test_a_tolerance_and_a_waiver_may_accept_it():
    """They go by the name of the fact, as for every other one."""
    own = Tolerance(fact="sent_bytes", absolute=30 * MEGA, why="the loader hands over NumPy")
    assert found("sent_bytes", sending(20 * MEGA), sending(0), [own]).status is Status.SAME
    verdict = judged(sending(20 * MEGA), sending(0), tolerances=[own])
    assert (verdict.status, verdict.time.reason) == (Status.SAME, "identical program")
    today = date(2026, 11, 22)
    waiver = Waiver(
        case=CASE, quantity="sent_bytes", up_to=30 * MEGA, owner="ann", reason="until the loader is new", expires=today
    )
    waived = apply_waivers(judged(sending(20 * MEGA), sending(0)), [waiver], today=today, strict=True)
    assert (waived.status, waived.fails) == (Status.WAIVED, False)
