"""Input pipelines: what brings a batch to the device runs before the clock, never under it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.clocks import Ticking

from jaxgate.model.computation import Computation
from jaxgate.observe import measure_calls
from jaxgate.observe.duel.duel import prepare, run_duel
from jaxgate.observe.execute.steps import STEPS
from jaxgate.observe.measure import observe
from jaxgate.observe.tools import Tools
from jaxgate.observe.trace.clocks import Clocks

X = jnp.ones(4)


def watched(monkeypatch):
    """Refuse transfers to the device that nobody asked for, while stepping and while sampling."""

    def guarded(function):
        def call(*args, **kwargs):
            with jax.transfer_guard_host_to_device("disallow"):
                return function(*args, **kwargs)

        return call

    for name in ("take_steps", "sample"):
        monkeypatch.setattr(measure_calls, name, guarded(getattr(measure_calls, name)))


HOST = {"image": np.ones((2, 4), np.float32), "label": np.arange(2)}


def loss(state, batch, *, scale):
    """Something that needs every argument."""
    return state + scale * batch["image"].sum() + batch["label"].sum(), state.sum()


def test_no_array_is_moved_while_sampling(monkeypatch):
    """Host arrays anywhere among the arguments are on the device before the clock starts."""
    watched(monkeypatch)
    arguments = {"args": (np.ones(3, np.float32), HOST), "kwargs": {"scale": np.ones((), np.float32)}}
    seen = observe(
        lambda: Computation(subject=loss, **arguments), Tools(store=None, clocks=Clocks(wall=Ticking(500_000)))
    ).measurement
    assert seen.samples.calls_per_burst == 4
    with jax.transfer_guard("disallow"), pytest.raises(Exception, match="Disallowed host-to-device transfer"):
        jax.jit(loss)(*arguments["args"], **arguments["kwargs"])  # the guard has teeth


def test_no_array_is_moved_in_a_duel():
    """Nor in its bursts: both sides take the arguments that lie there."""
    observed = observe(
        lambda: Computation(
            subject=jax.jit(loss, donate_argnums=0), args=(np.ones(3, np.float32), HOST), kwargs={"scale": X[0]}
        ),
        Tools(store=None),
    )
    sides = [prepare(observed.export(), observed.leaves()) for _ in range(2)]
    with jax.transfer_guard_host_to_device("disallow"):
        duel = run_duel(*sides, settled=lambda _: False, max_pairs=2, platform="cpu")
    assert (len(duel.now_ns), duel.traces) == (2, 0)


def test_batches_that_a_pipeline_makes_are_moved_outside_the_clock(monkeypatch):
    """``next_args`` that brings a host batch for every call: the subject never sees it, nor does the clock."""
    watched(monkeypatch)
    calls = []

    def next_args(output, args):
        calls.append(output)
        return output[0], {name: value + 1 for name, value in HOST.items()}

    subject = jax.jit(lambda state, batch: loss(state, batch, scale=1.0), donate_argnums=0)
    seen = observe(
        lambda: Computation(subject=subject, args=(np.ones(3, np.float32), HOST), next_args=next_args),
        Tools(store=None, clocks=Clocks(wall=Ticking(500_000))),
    ).measurement
    assert seen.samples.calls_per_burst == 4
    assert len(calls) >= STEPS - 1 + 3 * len(seen.samples.bursts_ns)  # nothing is threaded after a burst's last call
    assert (seen.facts.traces, seen.facts.sampled_traces, seen.facts.sampled_compiles) == (1, 0, 0)


@pytest.mark.parametrize(
    ("next_args", "apart"),
    [
        (None, False),
        (lambda output, args: (output[0], args[1]), False),
        (lambda output, args: (output[0] + 0, args[1]), True),
    ],
    ids=["nothing", "moves", "computes"],
)
def test_threading_that_computes_is_kept_from_the_clock(monkeypatch, next_args, apart):
    """Only threading that moves arrays runs between the calls of a burst."""
    asked = []
    real = measure_calls.sample
    monkeypatch.setattr(measure_calls, "sample", lambda *a, **k: asked.append(k["apart"]) or real(*a, **k))
    observe(lambda: Computation(subject=lambda s, x: (s + x, s), args=(X, X), next_args=next_args), Tools(store=None))
    assert asked == [apart]
