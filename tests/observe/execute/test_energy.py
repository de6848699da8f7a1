"""Energy of a case end to end: measured where a counter is there, at no call where none is."""

import jax
import jax.numpy as jnp
import pytest
from support.clocks import Ticking
from support.energy import WorkingWorld, no_meters
from support.measured import observed

from jaxgate.ext.energy.model import EnergyRun, NoEnergy, energy_of
from jaxgate.observe.trace.clocks import Clocks

X = jnp.ones((8, 4))


def measure(subject=None, *args, meters, sampling=True, **computation):
    """Observe a computation on a machine with these counters; ``None`` asks for no energy."""
    tools = {"sampling": sampling, "clocks": Clocks(wall=Ticking(10_000_000)), "meters": meters}
    return observed(subject or (lambda x: x * 2 + 1), *(args or (X,)), tools=tools, **computation)


@pytest.mark.parametrize("eager", [False, True], ids=["jitted", "plain Python"])
def test_a_case_is_measured_where_there_is_a_counter(eager):
    """120 W of which 20 W are idle; the observation keeps the meter for a duel."""
    world = WorkingWorld()
    subject = (lambda x: jnp.sin(x) + 1) if eager else None
    found = measure(subject, meters=world.meters, eager=eager)
    counted = found.measurement.energy
    assert isinstance(counted, EnergyRun)
    assert len(counted.halves) == 2
    assert energy_of(counted).call_uj == pytest.approx(1_000_000, rel=0.03)  # 2 calls in 20 ms at 100 W
    assert found.meter.counter is world


def test_state_is_threaded_and_donated_as_in_the_samples():
    """A donating step survives thousands of calls: its arguments are copied once for each burst."""
    step = jax.jit(lambda state, batch: state + batch.sum(), donate_argnums=0)
    counted = measure(step, jnp.ones((4,)), X, meters=WorkingWorld().meters, carry=0).measurement.energy
    assert isinstance(counted, EnergyRun)
    assert all(half.calls > 1 for half in counted.halves)


def test_without_a_counter_nothing_is_called_for_it():
    """The reason is kept, and there is no meter for a duel."""
    calls = []

    def subject(x):
        calls.append(1)
        return jnp.sin(x)

    found = measure(subject, meters=no_meters(), eager=True)
    assert found.measurement.energy == NoEnergy(why="no counter of energy")
    assert found.meter is None
    with_meters = len(calls)
    calls.clear()
    assert measure(subject, meters=None, eager=True).measurement.energy is None
    assert len(calls) == with_meters


@pytest.mark.parametrize("asked", [{"sampling": False}, {"args": (jax.ShapeDtypeStruct((8, 4), jnp.float32),)}])
def test_where_nothing_is_timed_the_counter_is_not_looked_at(asked):
    """The clock is switched off (``--benchmark-disable``), or the case is for shapes."""
    world, options = WorkingWorld(), dict(asked)
    assert measure(None, *options.pop("args", ()), meters=world.meters, **options).measurement.energy is None
    assert world.reads == 0


def test_calls_that_trace_again_have_no_energy():
    world = WorkingWorld()
    growing = iter(range(10**6))

    def step(x):
        return jax.jit(lambda y: y + next(growing))(x)

    found = measure(step, meters=world.meters, eager=True, expected_traces=1).measurement.energy
    assert found == NoEnergy(why="its calls trace or compile", counter="FAKE")
    assert world.reads == 0
