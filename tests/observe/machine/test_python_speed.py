"""The yardstick: how fast plain Python runs here and now, whatever the case does."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest
from support.corpora import nightly

from jaxgate.model.computation import Computation
from jaxgate.observe.machine import load
from jaxgate.observe.machine.load import ROUNDS, read_yardstick
from jaxgate.observe.measure import observe
from jaxgate.observe.tools import Tools
from jaxgate.observe.trace.clocks import Clocks
from jaxgate.observe.trace.compile_events import record

SECOND = 1_000_000_000


class Clock:
    """One tick later at each reading, and by whatever was added to it."""

    def __init__(self):
        self.now, self.readings = 0, 0

    def __call__(self):
        self.now += 1_000
        self.readings += 1
        return self.now


@pytest.fixture
def clock():
    """A clock that has not been read."""
    return Clock()


def rounds(monkeypatch, clock, *taken):
    """Let the rounds of the fixed work take these times."""
    left = list(taken)

    def work():
        clock.now += left.pop(0)

    monkeypatch.setattr(load, "_work", work)
    return left


def test_one_disturbed_round_does_not_count(monkeypatch, clock):
    """The middle one of three is taken: neither an interruption nor a stroke of luck."""
    left = rounds(monkeypatch, clock, 2_000, 90_000, 3_000)
    assert (read_yardstick(clock), left) == (1_000 + 3_000, [])
    rounds(monkeypatch, clock, 90_000, 5_000, 0)
    assert read_yardstick(clock) == 1_000 + 5_000


def test_it_needs_no_jax():
    """A slower JAX must not hide in the measure that it is held against."""
    code = (
        "import runpy, sys, time\n"
        f"runpy.run_path({load.__file__!r})['read_yardstick'](time.perf_counter_ns)\n"
        "assert not [name for name in sys.modules if name.split('.')[0] in ('jax', 'jaxlib', 'numpy')]\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_it_traces_and_compiles_nothing(clock):
    """It is in no count of the case, makes the same of the same, and nothing between its rounds is in them."""
    with record() as events:
        assert read_yardstick(clock) == 1_000
    assert (events.traces, events.compiles, clock.readings) == ([], [], 2 * ROUNDS)
    assert load._work() == load._work() == 4_000


@pytest.mark.parametrize("sampling", [pytest.param(True, marks=nightly), False], ids=["sampled", "not sampled"])
@pytest.mark.parametrize("eager", [False, True], ids=["a program", "plain Python"])
def test_a_slow_case_is_not_in_it(clock, eager, sampling):
    """Building, tracing and running take as long as they take; the yardstick takes what it took, sampled or not."""
    x = jnp.ones(4)

    @jax.jit
    def subject(x):
        clock.now += 10 * SECOND  # while it is traced
        return jnp.sin(x)

    def build():
        clock.now += 100 * SECOND
        return Computation(subject=subject, args=(x,), eager=eager)

    clocks = Clocks(wall=clock, thread=clock, process=clock, kept=lambda: 0)
    phases = observe(build, Tools(store=None, sampling=sampling, clocks=clocks)).measurement.phases
    assert phases.yardstick_ns == 1_000
    slow = phases.first_call_ns if eager else phases.trace_ns
    assert slow is not None
    assert slow >= 10 * SECOND


@pytest.mark.parametrize(("wall", "busy", "took"), [(1000, 300, 300), (300, 900, 300)])
def test_a_busy_machine_does_not_make_a_compile_longer(monkeypatch, wall, busy, took):
    """On CPU no longer than its threads ran, and no longer than it took; elsewhere the compiler waits for the device."""
    import jax

    from jaxgate.observe.trace.lowering import lower
    from jaxgate.observe.trace.stages import compile_program

    def ticking(step):
        now = iter(range(0, 100 * step, step))
        return lambda: next(now)

    clocks = Clocks(wall=ticking(wall), process=ticking(busy))
    subject = lower(lambda x: jnp.tan(x) * wall, (jnp.ones(4),), {}, role="subject", clock=lambda: 0)
    assert compile_program(subject, clocks=clocks).compile_ns == took
    jax.clear_caches()
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    subject = lower(lambda x: jnp.tan(x) * wall, (jnp.ones(4),), {}, role="subject", clock=lambda: 0)
    assert compile_program(subject, clocks=clocks).compile_ns == wall
