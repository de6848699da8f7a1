"""Threaded steps and the bounded sample: what is counted, what is refused, and what a fake clock makes of it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.clocks import Ticking
from support.measured import ready, sample_of

from jaxgate.model.measurement import InvalidCaseError
from jaxgate.observe.execute.correctness import refuse_nan
from jaxgate.observe.execute.samples import launch_time
from jaxgate.observe.execute.steps import STEPS, take_steps
from jaxgate.observe.execute.subjects import JittedSubject
from jaxgate.observe.trace.clocks import Clocks, OwnTime
from jaxgate.observe.trace.lowering import lower


def steps(function, args, next_args=None, *, clock=None):
    """What threaded steps show."""
    return take_steps(ready(function, args), next_args, clock=clock or Ticking())


def first_output(output, args):
    """Thread a result that is the state."""
    return (output, *args[1:])


ADD = jax.jit(lambda s, b: s + b, donate_argnums=0)
CLEAN = {
    "arrays": (ADD, (jnp.ones(3), jnp.ones(3)), first_output),
    "random-keys": (
        lambda k, s: (jax.random.split(k)[0], s + 1),
        (jax.random.key(0), jnp.ones(2)),
        lambda output, _: output,
    ),
    # traces of eager helpers between the steps are not the subject's
    "a-helper": (lambda s: s + 1, (jnp.ones(4),), lambda output, _: (jax.jit(lambda v: v * 3)(output),)),
}


@pytest.mark.parametrize(("function", "args", "next_args"), CLEAN.values(), ids=CLEAN)
def test_a_clean_step_neither_traces_nor_compiles(function, args, next_args):
    """The steps hit the executable that was compiled before them; nothing is reported."""
    stepped = steps(function, args, next_args)
    assert (stepped.traces, stepped.compiles, stepped.retraces) == (0, 0, [])
    assert stepped.next_args is next_args


def test_a_first_call_is_timed_without_what_kept_it_from_a_core():
    """The wall says 7 also of the first step; 3 of these were other processes."""
    clocks = Clocks(wall=Ticking(7), process=Ticking(0), kept=Ticking(3))
    function = jax.jit(lambda s: s * 2)
    stepped = take_steps(ready(function, (jnp.ones(3),)), None, clock=Ticking(7), own=OwnTime(clocks, cores=1))
    assert (stepped.first_call_ns, stepped.call_ns) == (4, 7)


def test_times_are_the_clocks():
    """First call and last step are one tick each; the clock is read twice a step."""
    clock = Ticking(7)
    stepped = steps(lambda s: s * 2, (jnp.ones(3),), clock=clock)
    assert (stepped.first_call_ns, stepped.call_ns) == (7, 7)
    assert clock.now == 2 * STEPS * 7


def test_the_first_output_is_kept_and_the_state_is_threaded():
    """The output of step 1 stays on the host; step n starts from the result of step n - 1."""
    given = []

    def thread(output, args):
        given.append((float(args[0]), float(output)))
        return (output,)

    stepped = steps(jax.jit(lambda s: s * 2, donate_argnums=0), (jnp.float32(3),), lambda output, _: (output,))
    assert isinstance(stepped.first_output, np.ndarray)
    assert stepped.first_output == 6
    steps(jax.jit(lambda s: s * 2), (jnp.float32(3),), thread)
    assert given == [(3, 6), (6, 12)]


def test_growing_state_retraces_at_every_step():
    """A shape that never settles costs a trace and a compilation a step."""
    stepped = steps(lambda s: jnp.concatenate([s, s[:1]]), (jnp.ones(4),), first_output)
    assert (stepped.traces, stepped.compiles) == (2, 2)
    assert stepped.retraces == [
        "step 2 retraced: s: float32[4] → float32[5]",
        "step 3 retraced: s: float32[5] → float32[6]",
    ]


def test_without_threading_every_step_starts_anew():
    """Without ``next_args``, or when it answers ``None``, donated arguments are fresh copies of the caller's."""
    state = jnp.ones(3)
    double = jax.jit(lambda s: s * 2, donate_argnums=0)
    for next_args in (None, lambda *_: None):
        stepped = steps(double, (state,), next_args)
        assert (stepped.traces, stepped.compiles, stepped.next_args) == (0, 0, None)
        assert stepped.first_output.tolist() == [2, 2, 2]
    assert not state.is_deleted()


def test_failing_threads_are_refused():
    """An error in ``next_args`` says what was being done."""
    with pytest.raises(InvalidCaseError, match="threading the state into the next step: KeyError: 'w'"):
        steps(lambda s: s, (jnp.ones(3),), lambda *_: {}["w"])


def not_a_number(dtype):
    """Four elements with two NaN."""
    return jnp.array([1, float("nan"), float("nan"), 2], dtype)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float8_e4m3fn", "complex64"])
def test_nan_is_refused_with_its_leaf(dtype):
    """A NaN in any floating dtype, anywhere in the result, is named and counted."""
    stage = "checking the subject's result at step 3"
    with pytest.raises(InvalidCaseError) as caught:
        steps(lambda s: {"loss": s[0], "aux": (s, 1)}, (not_a_number(dtype),))
    assert caught.value.stage == stage
    assert caught.value.reason == "expected numbers, found 2 NaN of 4 in result['aux'][0]"


def test_nan_that_comes_later_is_refused():
    """The last step is looked at: a state that diverges on the way is seen."""
    with pytest.raises(InvalidCaseError, match="found 1 NaN of 1 in result"):
        steps(lambda s: jnp.sqrt(s - 1), (jnp.float32(2.5),), first_output)


@pytest.mark.parametrize(
    "value",
    [
        np.array([1, 2]),
        np.array([True]),
        jnp.arange(3).astype("int4"),
        jnp.array([jnp.inf]),
        jax.random.key(0),
        jnp.zeros((0, 2)),
    ],
    ids=["integer", "bool", "int4", "infinity", "random-key", "empty"],
)
def test_what_cannot_be_nan_passes(value):
    """Integers, booleans, keys and empty arrays are no NaN; infinity is a number."""
    refuse_nan({"x": value}, "the result")


def sample(function, args, next_args=None, *, tick=1000, **how):
    """A sample under a fake clock."""
    return sample_of(ready(function, args), next_args, clock=Ticking(tick), **how)


@pytest.mark.parametrize(
    ("call_ns", "calls", "rounds"),
    [
        (1, 1000, 20),  # at most 1000 calls in a burst, 20 bursts
        (150_000, 14, 20),  # a burst of 2 ms: 13.3 calls, rounded up
        (2_000_000, 1, 20),
        (10_000_000, 1, 12),  # a budget of 120 ms
        (300_000_000, 1, 3),  # never less than three bursts
    ],
)
def test_bursts_fit_the_budget(call_ns, calls, rounds):
    """Bursts of 2 ms, 120 ms in all, and every burst is one tick of the clock."""
    sampled = sample(lambda s: s + 1, (jnp.ones(2),), call_ns=call_ns, tick=4000)
    assert sampled.samples.calls_per_burst == calls
    assert sampled.samples.bursts_ns == (4000,) * rounds
    assert sampled.samples.run_ns == 4000 / calls
    assert (sampled.traces, sampled.compiles) == (0, 0)


def test_donated_and_threaded_runs_in_bursts():
    """Within a burst the state is threaded; every burst starts from the same arguments."""
    starts = []

    def thread(output, _):
        starts.append(float(np.asarray(output)[0]))  # without an eager operation, which would be compiled
        return (output,)

    sampled = sample(jax.jit(lambda s: s * 2, donate_argnums=0), (jnp.ones(3),), thread, call_ns=700_000)
    assert sampled.samples.calls_per_burst == 3
    assert starts == [2, 4] * 20
    assert (sampled.traces, sampled.compiles) == (0, 0)


def test_a_latency_case_takes_single_calls():
    """Blocked: every burst is one call, a second's worth of them, 200 at most and never fewer than three."""
    for call_ns, rounds in ((1_000, 200), (10_000_000, 100), (900_000_000, 3)):
        sampled = sample(lambda s: s + 1, (jnp.ones(2),), call_ns=call_ns, contract="latency", tick=7)
        assert sampled.samples.bursts_ns == (7,) * rounds
        assert (sampled.samples.calls_per_burst, sampled.samples.contract) == (1, "latency")


def test_the_time_of_a_launch_is_taken_before_anybody_waits(monkeypatch):
    """On an accelerator: the median from call to return; the wait comes after the clock was read."""
    events = []
    ticks = iter(range(0, 10_000, 5))
    function = jax.jit(lambda s: s + 1)
    lowered = lower(function, (jnp.ones(2),), {}, role="subject", clock=lambda: 0)
    subject = JittedSubject.of(lowered, ((jnp.ones(2),), {}))

    def clock():
        events.append("clock")
        return next(ticks)

    monkeypatch.setattr(jax, "block_until_ready", lambda output: events.append("wait") or output)
    assert launch_time(subject, platform="gpu", clock=clock) == 5
    assert events == ["clock", "clock", "wait"] * 20
    assert launch_time(None, platform="cpu", clock=None) is None  # it may run inline there: no time of its own
