"""What threads of the subject made ahead, while nobody asked for it, is used up before anything is timed."""

import threading
from dataclasses import replace

import jax.numpy as jnp
import pytest

from jaxgate.keep.cache import ReferenceCache
from jaxgate.observe.execute.samples import sample
from jaxgate.observe.execute.steps import take_steps
from jaxgate.observe.execute.subjects import EagerSubject
from jaxgate.observe.machine.process import has_own_threads
from jaxgate.observe.tools import Tools
from jaxgate.observe.trace.clocks import CLOCKS

AHEAD, QUICK_NS, SLOW_NS = 90, 1_000_000, 50_000_000


def sampled():
    """The median call of a step that waits for its loader once what lies ready is used up; time is what the step says."""
    now, ready = [0], [AHEAD]

    def step(x):
        now[0] += QUICK_NS if ready[0] > 0 else SLOW_NS
        ready[0] -= 1
        return x + 1

    subject = EagerSubject(step, ((jnp.ones(3),), {}), "subject")

    def wall():
        return now[0]

    stepped = take_steps(subject, None, clock=wall)
    tools = Tools(store=ReferenceCache(None), clocks=replace(CLOCKS, wall=wall))
    return sample(subject, stepped, tools, apart=False, contract="throughput").samples.run_ns


@pytest.mark.parametrize(("threads", "seen"), [(True, SLOW_NS), (False, QUICK_NS)], ids=["a loader", "no thread"])
def test_a_full_buffer_hides_no_slow_loader(monkeypatch, threads, seen):
    """More lies ready than a sample takes; without threads nothing is made ahead, and no time is spent on it."""
    monkeypatch.setattr("jaxgate.observe.execute.samples.has_own_threads", lambda: threads)
    assert sampled() == seen


def test_threads_of_the_project_are_told_from_jaxgates():
    done = threading.Event()
    loader = threading.Thread(target=done.wait, daemon=True)
    loader.start()
    try:
        assert has_own_threads()
    finally:
        done.set()
        loader.join()
