"""What the clock is held against: a whole output tree, the calls that were made, nothing but calls."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import pytest
from support.measured import sample_of

from jaxgate.model.computation import Computation
from jaxgate.model.duel import DUEL_BURST_NS
from jaxgate.observe.arguments.feeder import Feeder
from jaxgate.observe.duel.duel import Contender, prepare, run_duel
from jaxgate.observe.execute.steps import STEPS, take_steps
from jaxgate.observe.execute.subjects import JittedSubject
from jaxgate.observe.measure import observe
from jaxgate.observe.tools import Tools
from jaxgate.observe.trace.clocks import Clocks
from jaxgate.observe.trace.compile_events import record
from jaxgate.observe.trace.lowering import lower

CALL_NS = 1_000_000
X = jnp.ones(4)


class Machine:
    """A clock and an asynchronous device: calls return at once; each result has a time at which it is ready.

    Attributes:
        calls: Calls made so far.
        readings: For every reading of the clock, the calls made before it.
    """

    def __init__(self, ready_ns=(CALL_NS,), *, alone_ns=0):
        self.ready_ns, self.alone_ns = ready_ns, alone_ns
        self.now = self.free_at = self.calls = 0
        self.readings = []

    def clock(self):
        self.readings.append(self.calls)
        return self.now

    def call(self, *_):
        self.calls += 1
        begin = max(self.now, self.free_at)
        self.free_at = begin + max(self.ready_ns)
        return tuple(Pending(self, begin + ready_ns) for ready_ns in self.ready_ns)

    def calls_in_bursts(self, count):
        """Calls between the two readings of each of the last bursts."""
        ends = self.readings[-2 * count :]
        return [after - before for before, after in zip(ends[0::2], ends[1::2], strict=True)]


class Pending:
    """A result that is not there yet; waiting for it costs ``alone_ns`` besides."""

    def __init__(self, machine, ready_at):
        self.machine, self.ready_at = machine, ready_at

    def block_until_ready(self):
        self.machine.now = max(self.machine.now, self.ready_at + self.machine.alone_ns)
        return self


def subject(machine, feeder):
    """A lowered function whose calls go to a machine."""
    lowered = lower(lambda x: x * 2, (X,), {}, role="subject", clock=machine.clock)
    return JittedSubject(replace(lowered, called=machine.call), feeder)


FEEDS = {
    "kept": (Feeder(((X,), {}), donates=False), None, None),
    "threaded": (Feeder(((X,), {}), donates=True), lambda output, _: (output[0],), (0,)),
    "consumed": (Feeder(((X,), {}), donates=True), None, None),
}
ORDERS = {"first leaf last": (CALL_NS, 10), "last leaf last": (10, CALL_NS), "middle": (10, CALL_NS, 20)}


# Not blocking on the result


@pytest.mark.parametrize("ready_ns", ORDERS.values(), ids=ORDERS)
def test_a_step_waits_for_every_leaf(ready_ns):
    """First call and last step take as long as the slowest part of the result."""
    machine = Machine(ready_ns)
    stepped = take_steps(subject(machine, FEEDS["kept"][0]), None, clock=machine.clock)
    assert (stepped.first_call_ns, stepped.call_ns, machine.now) == (CALL_NS, CALL_NS, STEPS * CALL_NS)


@pytest.mark.parametrize("ready_ns", ORDERS.values(), ids=ORDERS)
@pytest.mark.parametrize("apart", [False, True], ids=["in a row", "apart"])
@pytest.mark.parametrize("feed", FEEDS)
def test_samples_wait_for_every_leaf(feed, apart, ready_ns):
    """A burst ends when the whole output of its last call is there, whichever leaf comes last."""
    machine = Machine(ready_ns)
    feeder, next_args, _ = FEEDS[feed]
    sampled = sample_of(subject(machine, feeder), next_args, call_ns=CALL_NS, apart=apart, clock=machine.clock)
    assert set(sampled.samples.bursts_ns) == {sampled.samples.calls_per_burst * CALL_NS}


@pytest.mark.parametrize("ready_ns", ORDERS.values(), ids=ORDERS)
@pytest.mark.parametrize("feed", FEEDS)
def test_a_duel_waits_for_every_leaf(feed, ready_ns):
    machine = Machine(ready_ns)
    feeder, _, feeds = FEEDS[feed]
    side = Contender(function=machine.call, feeder=feeder, feeds=feeds)
    assert [side.burst(calls, machine.clock) for calls in (1, 5)] == [CALL_NS, 5 * CALL_NS]


class Overlapping(Machine):
    """A device that runs all calls at once: only waiting for each tells what one takes."""

    def call(self, *_):
        self.calls += 1
        return (Pending(self, self.now + CALL_NS),)


def test_a_blocked_duel_waits_for_every_call():
    """A latency case: five calls that could overlap take five times one, and the duel says what its times mean."""
    machine = Overlapping()
    feeder = FEEDS["kept"][0]
    sides = {name: Contender(machine.call, feeder, None, contract=name) for name in ("throughput", "latency")}
    taken = {name: side.burst(5, machine.clock) for name, side in sides.items()}
    assert taken == {"throughput": CALL_NS, "latency": 5 * CALL_NS}
    for name, side in sides.items():
        duel = run_duel(side, side, settled=lambda _: False, max_pairs=2, platform="cpu", clock=machine.clock)
        assert duel.contract == name


# Dividing 41 steps' time by 52


@pytest.mark.parametrize("call_ns", [CALL_NS, 150_000], ids=["2 calls", "14 calls"])
@pytest.mark.parametrize("feed", FEEDS)
def test_a_sample_is_divided_by_the_calls_it_made(feed, call_ns):
    """Calls between two readings of the clock are the calls that the time is divided by."""
    machine = Machine((call_ns,))
    feeder, next_args, _ = FEEDS[feed]
    samples = sample_of(subject(machine, feeder), next_args, call_ns=call_ns, clock=machine.clock).samples
    expected = 1 if feed == "consumed" else -(-2_000_000 // call_ns)
    assert set(machine.calls_in_bursts(len(samples.bursts_ns))) == {samples.calls_per_burst} == {expected}
    assert samples.run_ns == call_ns


@pytest.mark.parametrize("feed", FEEDS)
def test_a_duel_is_divided_by_the_calls_it_made(feed):
    """In every burst of either side; a call's time comes out as it is, so the floor of 500 ns is that of a call."""
    machine = Machine((100_000,))
    feeder, _, feeds = FEEDS[feed]
    side = Contender(function=machine.call, feeder=feeder, feeds=feeds)
    duel = run_duel(side, side, settled=lambda _: False, max_pairs=4, platform="cpu", clock=machine.clock)
    bursts = sum(map(len, duel.now_ns + duel.baseline_ns))
    expected = 1 if feed == "consumed" else 50
    assert set(machine.calls_in_bursts(bursts)) == {duel.calls_per_burst} == {expected}
    assert duel.call_ns(duel.now_ns) == duel.call_ns(duel.baseline_ns) == 100_000


@pytest.mark.parametrize(("platform", "burst_ns"), [("cpu", 5_000_000), ("gpu", 20_000_000)])
def test_a_burst_is_as_long_as_promised(platform, burst_ns):
    """Waiting for a lone call costs five times the call; a burst planned on that would be a fifth of what it should."""
    machine = Machine((10_000,), alone_ns=50_000)
    side = Contender(function=machine.call, feeder=FEEDS["kept"][0], feeds=None)
    duel = run_duel(side, side, settled=lambda _: False, max_pairs=2, platform=platform, clock=machine.clock)
    shortest = min(min(bursts) for bursts in duel.now_ns + duel.baseline_ns)
    assert 0.99 * burst_ns <= shortest < 1.1 * burst_ns


def test_one_interrupted_warm_call_does_not_plan_the_duel():
    """The last of three warm calls took 20 ms, the others 0.1 ms: bursts are planned on 0.1 ms all the same."""
    machine = Machine((100_000,))

    def call(*_):
        if machine.calls in (2, 5):
            machine.now += 20_000_000
        return machine.call()

    side = Contender(function=call, feeder=FEEDS["kept"][0], feeds=None)
    duel = run_duel(side, side, settled=lambda _: False, max_pairs=2, platform="cpu", clock=machine.clock)
    assert (duel.calls_per_burst, {len(half) for half in duel.now_ns}) == (DUEL_BURST_NS["cpu"] // 100_000, {3})


# Timing the compile


class Compiles:
    """A clock that moves by one tick a reading, and by 10 s for whatever was compiled since."""

    def __init__(self, events, tick=1_000):
        self.events, self.tick, self.ticks = events, tick, 0

    def __call__(self):
        self.ticks += self.tick
        return self.ticks + 10_000_000_000 * len(self.events.compiles)


def donated_step():
    """A function that is new, so that its first call has to compile."""
    return jax.jit(lambda state, x: (state * 0.9 + x, state.sum()), donate_argnums=0)


@pytest.mark.parametrize("make", [lambda: lambda s, x: s + x, donated_step], ids=["kept", "donated"])
def test_a_compile_is_in_no_sample(make):
    """Compiling takes 10 s and is a phase; samples and first call are one tick each."""
    with record() as events:
        seen = observe(
            lambda: Computation(subject=make(), args=(X, X + 1)),
            Tools(store=None, clocks=Clocks(wall=Compiles(events), process=Compiles(events))),
        ).measurement
    assert seen.phases.compile_ns >= 10_000_000_000
    assert seen.phases.first_call_ns == 1_000
    assert set(seen.samples.bursts_ns) == {1_000}


@pytest.mark.parametrize("make", [lambda: lambda s, x: s + x, donated_step], ids=["kept", "donated"])
def test_a_compile_is_in_no_burst_of_a_duel(make):
    """Neither that of the two programs, nor that of the helper which copies donated arguments."""
    observed = observe(lambda: Computation(subject=make(), args=(X, X + 1)), Tools(store=None))
    jax.clear_caches()
    with record() as events:
        sides = [prepare(observed.export(), observed.leaves()) for _ in range(2)]
        clock = Compiles(events, tick=5_000_000)
        duel = run_duel(*sides, settled=lambda _: False, max_pairs=2, platform="cpu", clock=clock)
    assert len(events.compiles) >= 2
    assert {burst for half in duel.now_ns + duel.baseline_ns for burst in half} == {5_000_000}
    assert duel.traces == 0


# An input pipeline between the calls


def test_the_time_of_a_pipeline_is_in_no_sample():
    """Making a batch takes 1 s; the calls take what they take."""
    machine = Machine((200_000,))

    def next_args(output, _):
        machine.now += 1_000_000_000
        return (output[0],)

    sampled = sample_of(subject(machine, FEEDS["kept"][0]), next_args, call_ns=200_000, apart=True, clock=machine.clock)
    assert (sampled.samples.calls_per_burst, sampled.samples.run_ns) == (10, 200_000)
