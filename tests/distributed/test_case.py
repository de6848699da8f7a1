"""What ranks do together in one case: a duel in which the slowest counts, and what follows when one of them cannot go on."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from support.factories import CASE, measurement, record
from support.ranks import NAMES, error_of

from jaxgate.ext.ranks import case as case_module
from jaxgate.ext.ranks.barrier import LeftError, first
from jaxgate.ext.ranks.case import FEWEST, RankedCase, RankedSide, verdict_of
from jaxgate.ext.ranks.merge import blame, straggler
from jaxgate.judge.verdict import judge
from jaxgate.model.decision import Status
from jaxgate.model.measurement import InvalidCaseError
from jaxgate.model.verdict import Cause, TimeVerdict


class Planned:
    """A side whose bursts take what was planned, on the wall clock and on the processor's."""

    contract, consumed = "throughput", False

    def __init__(self, clock, walls, works):
        self.clock, self.walls, self.works = clock, list(walls), list(works)

    def results(self):
        """Nothing."""

    def burst(self, calls, clock):
        """The next of them; what it makes before it reads the clock is not timed."""
        self.clock.now += 1000
        clock()
        self.clock.now += calls * self.works.pop(0)
        clock()
        return calls * self.walls.pop(0)


@pytest.mark.parametrize(
    ("sharing", "expected"), [(0, 2 * 90), (2, 2 * 60)], ids=["devices of their own", "shared cores"]
)
def test_the_least_burst_of_the_slowest_rank_counts(ranks, monkeypatch, sharing, expected):
    """Wall time where each rank has a device, the time of its processors where they share cores; each rank's least burst."""
    clock = SimpleNamespace(now=0, process_time_ns=lambda: clock.now)
    monkeypatch.setattr(case_module, "time", clock)
    job = ranks(2)
    plans = [([80, 70, 95], [60, 50, 50]), ([90, 99, 98], [70, 60, 80])]
    found = []
    for rank, (walls, works) in enumerate(plans):
        planned = Planned(clock, walls, works)
        side = RankedSide(
            planned, lambda mine: found.append(mine) or [[140, 100], [180, 120]], shares=bool(sharing), fewest=FEWEST
        )
        assert side.burst(2, lambda: 0) == (180 if not sharing else 120)
        assert side.own_ns == ([] if not sharing else [[50, 60]])
        assert found[rank] == [2 * min(walls), 2 * min(works)]
        assert not planned.walls
    assert max(found[0][sharing > 0], found[1][sharing > 0]) == expected
    assert job.lead.names == [NAMES[0], NAMES[1]]


@pytest.mark.parametrize(
    ("now", "before", "says"),
    [
        (
            [(10, 12), (10, 12)],
            [(10, 10), (10, 10)],
            "rank 1 (b, pid 11), which works 1.20 × as long for a call, the others 1.00 ×",
        ),
        ([(12, 12)], [(10, 10)], ""),
        ([(10.1, 10.2)], [(10, 10)], ""),
        (
            [(11, 13), (11, 13)],
            [(10, 10), (10, 10)],
            "rank 1 (b, pid 11), which works 1.30 × as long for a call, the others 1.10 ×",
        ),
    ],
    ids=["one of them", "both alike", "by chance", "one more than the other"],
)
def test_the_rank_that_has_more_to_do_is_named(now, before, says):
    """By what its own processors worked; where all of them have more to do, none is."""
    assert straggler(now, before, [NAMES[0], NAMES[1]]) == says


def test_a_rank_is_the_cause_unless_the_program_shows_one():
    """What was seen in the program leads; a guess does not."""
    verdict = judge(CASE, (), measurement(), record(), strict=True)
    assert blame(verdict, NAMES[1]) is verdict
    time = TimeVerdict(status=Status.SLOWER, reason="slow")
    seen, guessed = Cause(text="seen", explains=frozenset()), Cause(text="guessed", explains=frozenset(), sure=False)
    found = blame(replace(verdict, time=time, causes=(seen, guessed)), NAMES[1])
    assert [cause.text for cause in found.causes] == ["seen", NAMES[1], "guessed"]
    assert found.time.reason == f"slow; by {NAMES[1]}"


def _follow(case, fails):
    """What a follower does: wait for the verdict, do what it is called for, wait again."""
    told, error = case._station.meet(verdict_of("scan/rnn")), None
    try:
        with case.calling(told["do"]):
            case.each("a burst", 1)
            if fails:
                _ = 1 // 0
    except Exception as caught:  # noqa: BLE001 - of any kind
        error = caught
    return error, case._station.meet(verdict_of("scan/rnn"))


def _lead(case, fails):
    """What rank 0 does: call the others, and give them a verdict in any case."""
    try:
        with case.calling("a duel"):
            case.each("a burst", 0)
            if fails:
                raise InvalidCaseError("timing", "the clock went back")
    finally:
        case._station.meet(verdict_of("scan/rnn"), {"status": "SAME"}, first)


@pytest.mark.parametrize("fails", ["nobody", "rank 0", "rank 1"])
def test_a_rank_that_cannot_go_on_takes_all_to_the_verdict(ranks, fails):
    """No rank waits in a duel for one that left it; the others know why, and all are given the verdict."""
    job = ranks(2)
    lead, other = (RankedCase(station, "scan/rnn") for station in (job.lead, job.others[0]))
    led, followed = job.later(_lead, lead, fails == "rank 0"), job.later(_follow, other, fails == "rank 1")
    error, told = followed.result(timeout=60)
    assert told == {"status": "SAME"}
    if fails == "nobody":
        assert (error, led.result(timeout=60), job.lead.alone) == (None, None, False)
    elif fails == "rank 0":
        assert error_of(led, InvalidCaseError) == "the clock went back"
        assert error.reason == f"the clock went back (on {NAMES[0]})"
    else:
        reason = error_of(led, LeftError)
        assert "division" in reason
        assert reason.endswith(f"(on {NAMES[1]})")
        assert isinstance(error, ZeroDivisionError)
