"""Extra work on the device: it is in the program, changes no result, keeps donation and threading, and has a size."""

from itertools import count

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ci.calibrate.extra_work import MAX_STEPS, NotPlantableError, Planter, Work, measure_work, prepare_planter
from jaxgate.observe.arguments.feeder import Feeder, on_device
from jaxgate.observe.arguments.signature import to_host
from jaxgate.observe.duel.duel import Contender, prepare, run_duel
from jaxgate.observe.program.export import NotReplayableError, export_program, split_call
from jaxgate.observe.trace.lowering import lower

W = jnp.arange(12.0).reshape(3, 4) / 10
KEY = jax.random.key(7)
PROGRAMS = {
    "floats": (lambda x: (x @ x.T, x.sum()), (W,)),
    "integers only": (lambda x: x * 2, (jnp.arange(5),)),
    "booleans": (lambda x: x > 1, (W,)),
    "complex": (lambda x: jnp.fft.fft(x), (W,)),
    "bfloat16": (lambda x: x.astype(jnp.bfloat16) * 2, (W,)),
    "scalars": (lambda x: x.sum(), (W,)),
    "a random key beside a number": (lambda k: (jax.random.split(k)[0], jax.random.normal(k)), (KEY,)),
    "an empty output beside a number": (lambda x: (x[:0], x[0]), (W,)),
    "an unused argument": (lambda x, y: y + 1, (W, W)),
}


def stored(subject, args, feeds=None):
    """A subject's program and its arguments."""
    call = on_device(args, {})
    lowered = lower(subject, *call, role="subject", clock=lambda: 0)
    program = export_program(lowered, call, feeds, 0)
    assert program.record.why_not == ""
    return program, split_call(lowered, call)[0]


def outputs(side, steps=None):
    """What a side gives, on the host."""
    contender = side if steps is None else side.with_steps(steps)
    return [to_host(leaf) for leaf in contender.call(contender.feeder.fresh()[0])]


def whiles(contender):
    """Loops in the optimised program."""
    text = contender.function.as_text()
    return sum(" while(" in line for line in text.splitlines())


@pytest.mark.parametrize(("subject", "args"), PROGRAMS.values(), ids=PROGRAMS)
def test_results_are_those_of_the_program(subject, args):
    """Bit for bit, whatever the length; the last output is the loop's, and depends on every step."""
    program, leaves = stored(subject, args)
    plain, planter = prepare(program, leaves), prepare_planter(program, leaves)
    expected = outputs(plain)
    words = set()
    for steps in (0, 1, 1000):
        *found, word = outputs(planter, steps)
        assert len(found) == len(expected)
        for ours, theirs in zip(found, expected, strict=True):
            assert ours.dtype == theirs.dtype
            np.testing.assert_array_equal(ours, theirs)
        assert (word.dtype, word.shape) == (np.uint32, ())
        words.add(int(word))
    assert len(words) == 3


@pytest.mark.parametrize("name", ["floats", "integers only", "a random key beside a number"])
def test_the_work_is_in_the_compiled_program(name):
    """One loop more after optimisation, whose length is an argument: nothing that could be unrolled or folded."""
    program, leaves = stored(*PROGRAMS[name])
    plain, planter = prepare(program, leaves), prepare_planter(program, leaves)
    assert whiles(planter.contender) == whiles(plain) + 1
    assert planter.with_steps(5).function is planter.with_steps(7).function


def test_the_work_waits_for_every_output():
    """Each output changes the start of the loop, so that none may come after it or beside it."""
    program, leaves = stored(lambda x, y, z: (x * 2, y @ y.T, z.sum()), (W, W, W))
    planter = prepare_planter(program, leaves)
    first = outputs(planter, 3)[-1]
    for place in range(3):
        changed = list(leaves)
        changed[place] = leaves[place] + 1
        assert outputs(Planter(planter.contender, tuple(changed), ()), 3)[-1] != first


def test_donation_and_threading_stay_right():
    """State is donated and fed back within a burst, the caller's arrays are kept, the memory is the program's."""
    step = jax.jit(lambda state, batch: (state + batch.sum(), state.mean()), donate_argnums=0)
    program, leaves = stored(step, (jnp.zeros(256), jnp.ones(4)), feeds=(0, None))
    plain, planter = prepare(program, leaves), prepare_planter(program, leaves)
    side = planter.with_steps(3)
    assert (side.feeds, side.consumed) == ((0, None, None), False)
    assert prepare_planter(program, leaves, "latency").with_steps(3).contract == "latency" != side.contract
    assert side.facts["aliased_bytes"] == plain.facts["aliased_bytes"] == 1024
    duel = run_duel(side, plain, settled=lambda _: False, seed=0, max_pairs=2, platform="cpu")
    assert duel.traces == 0
    assert not any(leaf.is_deleted() for leaf in leaves)
    arguments = side.feeder.fresh()[0]
    following = side.following(arguments, side.call(arguments))
    assert arguments[0].is_deleted()
    assert [float(following[0][0]), float(following[1][0]), int(following[2])] == [4.0, 1.0, 3]


def test_copied_state_stays_copied():
    """Donated and not threaded: one call for a burst, from copies."""
    program, leaves = stored(jax.jit(lambda x: x * 2, donate_argnums=0), (jnp.ones(8),))
    side = prepare_planter(program, leaves).with_steps(2)
    assert side.consumed
    assert [side.burst(1, count().__next__) for _ in range(3)] == [1, 1, 1]
    assert not leaves[0].is_deleted()


UNSUITABLE = {
    "no output": (lambda x: (), (W,)),
    "empty outputs": (lambda x: x[:0], (W,)),
    "random keys only": (jax.random.split, (KEY,)),
}


@pytest.mark.parametrize(("subject", "args"), UNSUITABLE.values(), ids=UNSUITABLE)
def test_outputs_that_nothing_can_wait_for_are_refused(subject, args):
    """With the reason: work that depends on nothing would be done beside the program."""
    program, leaves = stored(subject, args)
    with pytest.raises(NotPlantableError, match="no output of numbers that extra work could wait for"):
        prepare_planter(program, leaves)


def test_a_program_that_was_not_stored_is_refused():
    call = on_device((W,), {})
    program = export_program(lower(lambda x: x + 1, *call, role="subject", clock=lambda: 0), call, None, 10**9)
    with pytest.raises(NotReplayableError, match="it was not stored"):
        prepare_planter(program, [W])


# The size


@pytest.mark.parametrize(
    ("at_rest", "per_step", "share", "steps"),
    [
        (0.0, 1e-5, 0.03, 3_000),
        (0.01, 1e-5, 0.03, 2_000),
        (0.0, 0.03, 0.03, 1),
        (0.0, 0.008, 0.03, 4),  # 3.2 % is near enough
        (0.0, 0.2, 0.2, 1),
    ],
)
def test_the_length_for_a_share(at_rest, per_step, share, steps):
    """What one more result takes counts as extra work, too."""
    assert Work(at_rest=at_rest, per_step=per_step).steps_for(share) == steps


@pytest.mark.parametrize(
    ("at_rest", "per_step", "share", "words"),
    [
        (0.04, 1e-5, 0.03, "too short: one more result alone takes 4.0% of it"),
        (0.03, 1e-5, 0.03, "too short: one more result alone takes 3.0% of it"),
        (0.0, 0.08, 0.03, "too short: one step of extra work takes 8.0% of it"),
        (0.0, 0.04, 0.03, "too short: one step of extra work takes 4.0% of it"),
        (0.0, 1e-11, 0.03, f"too long: it would take more than {MAX_STEPS:,} steps"),
    ],
)
def test_a_share_that_cannot_be_planted_says_why(at_rest, per_step, share, words):
    """Never the nearest that is possible under the name of what was wanted."""
    with pytest.raises(NotPlantableError, match=words):
        Work(at_rest=at_rest, per_step=per_step).steps_for(share)


class Machine:
    """A clock that only programs move: each call of one takes its time."""

    def __init__(self):
        self.now = 0

    def clock(self):
        return self.now

    def plain(self, call_ns):
        """A program of a known time."""
        return Contender(function=self._function(call_ns, 0), feeder=Feeder(((), {}), donates=False), feeds=None)

    def planter(self, call_ns, step_ns):
        """The same, and so much for each step."""
        contender = Contender(
            function=self._function(call_ns, step_ns), feeder=Feeder(((), {}), donates=False), feeds=None
        )
        return Planter(contender, (), ())

    def _function(self, call_ns, step_ns):
        def function(*steps):
            self.now += call_ns + sum(step_ns * int(number) for number in steps)
            return ()

        return function


@pytest.mark.parametrize(
    ("call_ns", "rest_ns", "step_ns"),
    [(67_000, 0, 2), (830_000, 8_300, 2), (20_000_000, 0, 3), (5_000_000, 0, 2_000), (10_000, 100, 50)],
)
def test_the_work_is_measured(call_ns, rest_ns, step_ns):
    """At rest and for each step, of short and long calls, on slow and fast devices: exact where the clock is."""
    machine = Machine()
    work = measure_work(
        machine.plain(call_ns), machine.planter(call_ns + rest_ns, step_ns), platform="cpu", clock=machine.clock, seed=0
    )
    assert work.at_rest == pytest.approx(rest_ns / call_ns)
    assert work.per_step == pytest.approx(step_ns / call_ns)
    planted = work.steps_for(0.05) * step_ns + rest_ns
    assert planted / call_ns == pytest.approx(0.05, rel=0.25)
    faster = machine.planter(call_ns * 97 // 100, step_ns)  # one more result makes nothing faster: that is noise
    work = measure_work(machine.plain(call_ns), faster, platform="cpu", clock=machine.clock, seed=0)
    assert work.at_rest == 0


def test_work_that_takes_no_time_is_refused():
    """A compiler that removed the loop would leave a planted slow-down of nothing."""
    machine = Machine()
    with pytest.raises(NotPlantableError, match="steps of extra work do not show in its times"):
        measure_work(
            machine.plain(1_000_000), machine.planter(1_000_000, 0), platform="cpu", clock=machine.clock, seed=0
        )
