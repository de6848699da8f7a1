"""Python's part of a call: a difference of two clocks that run in turn, and when nothing is known of it."""

import functools

import jax
import jax.numpy as jnp
import pytest

from jaxgate.observe import compat
from jaxgate.observe.execute.samples import MAX_PAIRS, MIN_PAIRS, dispatch_time
from jaxgate.observe.execute.subjects import JittedSubject
from jaxgate.observe.trace.clocks import CLOCKS
from jaxgate.observe.trace.lowering import lower
from jaxgate.observe.trace.stages import compile_program

X = jnp.ones(8)
QUICK = 10_000


class Turn:
    """A clock on which calls of the subject take as long as they are told to, and calls of the executable 10 µs.

    The subject is known by its static argument, which Python hashes at each of its calls and never at the other's.
    """

    def __init__(self, times):
        self.now, self.times, self.calls = 0, list(times), 0
        self.running = self.hashed = False

    def __call__(self):
        if self.running:
            self.now += self.times[self.calls % len(self.times)] if self.hashed else QUICK
            self.calls += self.hashed
        self.running, self.hashed = not self.running, False
        return self.now


class Static:
    """Tells the clock that it is hashed."""

    clock = None

    def __hash__(self):
        if self.clock is not None:
            self.clock.hashed = True
        return 7


@functools.partial(jax.jit, static_argnums=1)
def step(tree, _static):
    """A program of two arrays."""
    return {"sum": tree["a"] + tree["b"]}


def timed(function, call, clock, call_ns=QUICK):
    """Python's part of its calls."""
    lowered = lower(function, *call, role="subject", clock=CLOCKS.thread)
    subject = JittedSubject.of(lowered, call)
    subject.call(subject.fresh())
    return dispatch_time(subject, compile_program(lowered, clocks=CLOCKS), call_ns=call_ns, clock=clock)


def by(*times, call_ns=QUICK):
    """The same of calls that take these times on the clock."""
    static, clock = Static(), Turn(times)
    lowered_call = (({"a": X, "b": X}, static), {})
    static.clock = clock
    return timed(step, lowered_call, clock, call_ns), clock.calls


def test_it_is_what_a_call_takes_beyond_its_executable():
    """In turn, each side as often first; the median, and never below nothing."""
    assert by(310_000) == (300_000, MAX_PAIRS)
    assert by(QUICK) == (0, MAX_PAIRS)
    assert by(QUICK - 2_000) == (0, MAX_PAIRS)


def test_times_that_are_far_apart_say_nothing():
    """A machine that does something else: unknown, never a number; a few odd pairs move no median."""
    assert by(110_000, 510_000) == (None, MAX_PAIRS)
    assert by(*[310_000] * 9, 9_000_000) == (300_000, MAX_PAIRS)


def test_long_calls_are_few_or_none():
    assert by(8_000_000, call_ns=5_000_000)[1] == 7
    assert by(12_000_000, call_ns=5_000_000)[1] == MIN_PAIRS
    assert by(QUICK, call_ns=5_000_001) == (None, 0)


@pytest.mark.parametrize("broken", ["_executable", "_params"])
def test_a_release_that_keeps_its_parts_elsewhere_has_none(monkeypatch, broken):
    """What is read of JAX is private: without it nothing is known, and nothing fails."""
    compiled = jax.jit(lambda x: x * 2).lower(X).compile()
    assert compat.flat_executable(compiled)(X)[0].tolist() == [2.0] * 8
    monkeypatch.setattr(compiled, broken, None)
    assert compat.flat_executable(compiled) is None
    monkeypatch.setattr("jaxgate.observe.execute.samples.flat_executable", lambda _: abs)  # it takes other arguments
    assert by(QUICK) == (None, 0)


def test_donated_arguments_are_copied_outside_of_the_clock():
    """Both sides have arrays of their own, and the caller's stay."""
    donating = jax.jit(lambda tree: {"a": tree["a"] * 2, "b": tree["b"]}, donate_argnums=0)
    tree = {"a": jnp.ones(8), "b": jnp.zeros(8)}
    assert timed(donating, ((tree,), {}), lambda: 0) == 0
    assert not tree["a"].is_deleted()
