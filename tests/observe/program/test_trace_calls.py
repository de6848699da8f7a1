"""What Python calls while it traces: the same in any order, more where more is called, and unknown with the reason."""

import cProfile
import itertools
import sys
import threading
import time
from dataclasses import replace

import jax
import jax.numpy as jnp
import pytest
from support.factories import PROGRAM, PROVENANCE, baseline

from jaxgate.keep.cache import ReferenceCache
from jaxgate.model.baseline import Baseline
from jaxgate.model.computation import Computation
from jaxgate.observe.measure import observe
from jaxgate.observe.program import trace_calls
from jaxgate.observe.program.trace_calls import accepted_trace_calls, count_trace_calls
from jaxgate.observe.tools import Tools
from jaxgate.observe.trace.clocks import Clocks
from jaxgate.observe.trace.compile_events import record
from jaxgate.observe.trace.lowering import lower

X = jnp.ones((4, 4))


def helper(number):
    return number + 1


def step(x, times=1):
    """Call the helper so often, and leave no equation of it."""
    for number in range(times):
        helper(number)
    return jnp.tanh(x @ x)


def counted(function, *args):
    return count_trace_calls(lower(function, args, {}, role="subject", clock=time.perf_counter_ns))


def test_what_was_traced_before_does_not_matter():
    """Helpers of JAX that another function has traced are known to its caches, or not: the count is the same."""
    jax.clear_caches()
    first = counted(jax.jit(step), X)
    jax.jit(lambda x: jnp.linalg.norm(jnp.tanh(x @ x)))(X)
    second = counted(jax.jit(step), X)
    assert first.count == second.count
    assert first.functions == second.functions


@pytest.mark.parametrize("wrap", [jax.jit, lambda function: function], ids=["jitted", "plain"])
def test_what_is_called_more_is_counted_and_named(wrap):
    """By as many calls; with the line of what the project has."""
    few, many = (counted(wrap(lambda x, times=times: step(x, times)), X) for times in (1, 501))
    assert many.count - few.count == 500
    assert (few.functions["helper"], many.functions["helper"]) == (1, 501)
    assert many.lines["helper"].startswith("tests/observe/program/test_trace_calls.py:")
    assert not any(name.startswith("jax") for name in many.lines)


def test_what_is_compiled_stays_so():
    """The function's next call neither traces nor compiles."""
    function = jax.jit(step)
    lowered = lower(function, (X,), {}, role="subject", clock=time.perf_counter_ns)
    function(X)
    count_trace_calls(lowered)
    with record() as events:
        function(X)
    assert (events.traces_of("step"), events.compiles) == (0, [])


TRACED = []


def only_once(x):
    """Refuse to be traced again."""
    TRACED.append(x.shape)
    if len(TRACED) > 1:
        raise ValueError("only once")
    return x


def test_what_can_be_traced_only_once_is_unknown():
    TRACED.clear()
    found = counted(jax.jit(only_once), X)
    assert found.count is None
    assert found.unknown["trace_calls"].startswith("tracing it once more failed: ValueError: only once (at tests/")


@pytest.mark.parametrize("calls", [0, 500])
def test_other_threads_are_not_listened_to(calls):
    """A loader, a worker's connection: what they call while the function is traced is none of its calls."""
    asked, done = threading.Lock(), threading.Lock()
    asked.acquire()
    done.acquire()

    def beside():
        while asked.acquire() and calls >= 0:
            for number in range(calls):
                helper(number)
            done.release()

    def waits(x):
        asked.release()
        done.acquire()
        return step(x)

    threading.Thread(target=beside, daemon=True).start()
    found = counted(jax.jit(waits), X)
    assert found.functions["helper"] == 1


def test_where_another_profiler_is_at_work_it_is_unknown_or_counted():
    """The profiler keeps its place; cProfile has none of its own since 3.12, and the calls are counted beside it."""
    with cProfile.Profile() as profile:
        found = counted(jax.jit(step), X)
    assert found.count or found.why_not == "another profiler is at work"
    assert any("lower" in str(entry.code) for entry in profile.getstats())
    sys.setprofile(lambda *_: None)
    try:
        assert counted(jax.jit(step), X).why_not == "another profiler is at work"
    finally:
        sys.setprofile(None)


def test_many_events_are_counted_in_parts(monkeypatch):
    """None is lost between them: functions of Python and of C."""
    monkeypatch.setattr(trace_calls, "_AT_ONCE", 7)
    called, in_c = trace_calls._listened(lambda: [abs(helper(number)) for number in range(100)], ())
    assert called[helper.__code__] == 100
    assert in_c == 101  # and `sys.setprofile`


KNOWN = baseline(facts={"trace_calls": 7}, traced={"helper": 3})


def accepted(known=KNOWN, side=KNOWN, **now):
    """What a baseline's count is worth, if what is given is otherwise now."""
    names = ("fingerprints", "libraries", "environment", "phases")
    return accepted_trace_calls(known, **{**{name: getattr(side, name) for name in names}, **now})


def timed(factor):
    return replace(KNOWN.phases, trace_ns=int(factor * KNOWN.phases.trace_ns))


def test_the_count_of_a_baseline_holds_while_nothing_changed():
    found = accepted(phases=timed(1.39))
    assert (found.count, found.functions, found.unknown) == (7, {"helper": 3}, {})
    assert accepted() == found


UNTIMED = replace(KNOWN.phases, trace_ns=None)
NOT_SOURCE = replace(KNOWN.fingerprints, source=None)


@pytest.mark.parametrize(
    "now",
    [
        {"fingerprints": replace(KNOWN.fingerprints, source="another")},
        {"fingerprints": NOT_SOURCE},
        {"fingerprints": replace(KNOWN.fingerprints, program="another")},
        {"libraries": {"flax": "0.0.1"}},
        {"environment": {**KNOWN.environment, "python": "2.7"}},
        {"phases": timed(1.41)},
        {"phases": UNTIMED},
        # A baseline that does not say it settles nothing.
        {"known": None},
        {"known": baseline(facts={"trace_calls": None})},
        {"known": replace(KNOWN, phases=UNTIMED)},
        {"known": (unread := replace(KNOWN, fingerprints=NOT_SOURCE)), "side": unread},
    ],
)
def test_what_may_have_changed_the_count_has_it_taken_anew(now):
    assert accepted(**now) is None


def test_an_unchanged_case_is_traced_no_more_than_it_must_be():
    """Not once beyond what its phases need; when it is recorded, or when its clock says so, it is counted."""
    traced, ticks = [], {"step": 1_000}
    clock = itertools.accumulate(itertools.repeat(None), lambda now, _: now + ticks["step"], initial=0)

    def watched(x):
        traced.append(1)
        return jnp.tanh(x @ x)

    def look(known=None, **options):
        traced.clear()
        jax.clear_caches()
        found = observe(
            lambda: Computation(subject=jax.jit(lambda x: watched(x)), args=(X,)),
            Tools(
                store=ReferenceCache(None),
                sampling=False,
                accepted=lambda _: known,
                clocks=Clocks(wall=time.perf_counter_ns, thread=clock.__next__),
                **options,
            ),
        ).measurement
        return found, len(traced)

    first, times = look()
    known = Baseline.of(first, case="a/b", test="test_a.py::test_b", provenance=PROVENANCE, program=PROGRAM)
    known = replace(known, facts=replace(known.facts, trace_calls=first.facts.trace_calls + 1))
    phases = replace(known.phases, yardstick_ns=None)  # is taken by the wall's clock
    known = replace(known, phases=phases)
    assert [
        (found.facts.trace_calls - first.facts.trace_calls, took - times)
        for found, took in (look(known), look(known, recording=True))
    ] == [(1, -2), (0, 0)]
    ticks["step"] = 1_500
    found, took = look(known)
    assert (found.facts.trace_calls, took) == (first.facts.trace_calls, times)
