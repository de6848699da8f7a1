"""Clocks: what waits while tracing and what is kept from a core, and that no collection of garbage is timed."""

import gc
import importlib
import time

import jax
import jax.numpy as jnp
import pytest

from jaxgate.model.computation import Computation
from jaxgate.observe.measure import observe
from jaxgate.observe.tools import Tools
from jaxgate.observe.trace.clocks import Clocks, OwnTime, asleep_ns, kept_ns, queued_ns, uncollected
from jaxgate.observe.trace.lowering import lower

X = jnp.ones(3)


def ticking(*readings):
    left = iter(readings)
    return lambda: next(left)


def test_waiting_while_tracing_is_kept_beside_what_the_thread_has_run():
    """Both from the first reading to the second; lowering has the next two, and what is between belongs to neither."""
    clock, asleep = ticking(10, 15, 100, 125), ticking(1_000, 5_000)
    lowered = lower(jax.jit(lambda x: x * 2), (X,), {}, role="subject", clock=clock, asleep=asleep)
    assert (lowered.trace_ns, lowered.trace_wait_ns, lowered.lower_ns) == (5, 4_000, 25)


def test_what_is_imported_meanwhile_is_not_timed(monkeypatch, tmp_path):
    """The first case of a process that needs a library would pay for all that follow; each is timed without it."""
    (tmp_path / "needed_while_tracing.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    imported = []

    def needs(x):
        imported.append(importlib.import_module("needed_while_tracing"))
        return x * 4

    readings = ticking(0, 900_000, 0, 10, *(0, 3, 0, 4))
    lowered = lower(jax.jit(needs), (X,), {}, role="subject", clock=readings)
    assert (lowered.trace_ns, lowered.lower_ns, len(imported)) == (3, 4, 2)


def test_clocks_that_are_read_one_after_the_other_give_no_less_than_nothing():
    """A thread that ran between the readings has not slept for a negative time."""
    asleep = ticking(1_000, 990)
    lowered = lower(jax.jit(lambda x: x * 3), (X,), {}, role="subject", clock=lambda: 0, asleep=asleep)
    assert lowered.trace_wait_ns == 0


@pytest.mark.parametrize(("text", "queued"), [("700 300 2\n", 300), ("0 0 1\n", 0), ("", 0), ("some text\n", 0)])
def test_waiting_for_a_core_is_read_where_the_system_tells(tmp_path, text, queued):
    """The second number; a system that tells nothing leaves it within what is called waiting."""
    told = tmp_path / "schedstat"
    told.write_text(text)
    assert queued_ns(told) == queued
    assert queued_ns(tmp_path / "gone") == 0


@pytest.mark.parametrize(
    ("took", "ran", "kept", "own"),
    [
        (100, 60, 0, 100),  # a call on a machine that does nothing else
        (100, 60, 40, 60),
        (100, 10, 40, 60),  # it waited for something else than a core, too
        (100, 150, 190, 75),  # two threads that waited side by side
        (100, 300, 0, 100),
        (100, 60, -5, 100),  # a thread has ended, and its account with it
    ],
)
def test_what_keeps_threads_from_a_core_is_not_their_own_time(took, ran, kept, own):
    """Never less than what they ran on all cores, nor more than the wall says."""
    clocks = Clocks(wall=ticking(1_000, 1_000 + took), process=ticking(7, 7 + ran), kept=ticking(50, 50 + kept))
    watch = OwnTime(clocks, cores=2)
    watch.start()
    assert watch.read() == own


def test_waiting_for_a_core_is_summed_over_threads(tmp_path):
    for thread, text in {"1": "5 300 1\n", "2": "5 40 1\n", "3": ""}.items():
        (tmp_path / thread).mkdir()
        (tmp_path / thread / "schedstat").write_text(text)
    assert (kept_ns(tmp_path), kept_ns(tmp_path / "gone")) == (340, 0)


def test_a_sleep_is_seen_and_a_loop_is_not():
    """The clock is the wall's without what the thread has run."""
    slept = []
    for _ in range(5):  # one of its three readings may be kept from a core behind the others
        begin = asleep_ns()
        time.sleep(0.02)
        slept.append(asleep_ns() - begin)
    wall, thread, begin = time.perf_counter_ns(), time.thread_time_ns(), asleep_ns()
    while time.thread_time_ns() - thread < 5_000_000:
        pass
    ran = asleep_ns() - begin
    assert max(slept) >= 19_000_000
    assert ran <= time.perf_counter_ns() - wall - 5_000_000 + 1_000_000


@pytest.mark.parametrize("enabled", [True, False])
def test_garbage_is_collected_as_before(enabled):
    was = gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    try:
        with pytest.raises(ZeroDivisionError), uncollected():
            1 / gc.isenabled()
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if was else gc.disable)()


def test_no_collection_counts_as_time_of_a_program():
    """What the process did before decides when one comes: seen as 0.2 s of tracing in 7 of 246 unchanged cases."""
    seen = []

    def step(x):
        seen.append(("traced", gc.isenabled()))
        return x * 2

    computation = Computation(subject=jax.jit(step), args=(jnp.ones(8),))
    with pytest.MonkeyPatch.context() as patch:
        compile_now = jax.stages.Lowered.compile
        patch.setattr(
            jax.stages.Lowered,
            "compile",
            lambda *args, **how: seen.append(("compiled", gc.isenabled())) or compile_now(*args, **how),
        )
        observe(lambda: computation, Tools(store=None, sampling=False))
    assert set(seen) == {("traced", False), ("compiled", False)}
