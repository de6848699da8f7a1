"""Stored programs that run again with the subject's numbers, facts and donation; the order and the clock of a duel."""

from __future__ import annotations

import gc
import tracemalloc
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxgate.observe.arguments.feeder import Feeder, on_device
from jaxgate.observe.arguments.signature import to_host
from jaxgate.observe.duel.duel import Contender, agree, prepare, run_duel
from jaxgate.observe.execute.correctness import Closeness
from jaxgate.observe.program.export import NotReplayableError, export_program, split_call
from jaxgate.observe.trace.clocks import CLOCKS
from jaxgate.observe.trace.lowering import lower
from jaxgate.observe.trace.stages import compile_program, compiled_facts

W = jnp.arange(12.0).reshape(3, 4) / 10
S = W.T @ W + jnp.eye(4)
B = W.astype(jnp.bfloat16)
KEY = jax.random.key(7)
WEAK = jnp.asarray(3.0)
OPTIMISER = optax.adamw(1e-3)


class State(NamedTuple):
    """A tree that is a tuple."""

    w: Any
    n: Any


@jax.tree_util.register_dataclass
@dataclass
class Record:
    """A tree that is a dataclass."""

    w: Any
    n: Any


def adamw(params, state, batch):
    """A train step with an optimiser's state."""
    grads = jax.grad(lambda p: jnp.mean((batch @ p["w"] + p["b"]) ** 2))(params)
    updates, state = OPTIMISER.update(grads, state, params)
    return optax.apply_updates(params, updates), state


PARAMS = {"w": W.T + 0, "b": jnp.zeros(3)}
PROGRAMS = {
    "named-tuple": (lambda s: State(s.w + 1, s.n + 1), (State(W, jnp.int32(3)),), {}),
    "dataclass": (lambda s: Record(s.w + 1, s.n + 1), (Record(W, jnp.int32(3)),), {}),
    "integer-keys": (lambda s: {2: s[10] * 2, 10: s[2]}, ({10: W, 2: W + 1},), {}),
    "adamw": (jax.jit(adamw, donate_argnums=(0, 1)), (PARAMS, OPTIMISER.init(PARAMS), jnp.ones((5, 4))), {}),
    "keywords": (lambda a, *, c, b: a @ b.T - c, (W,), {"c": W[:, :3], "b": W}),
    "static-position": (jax.jit(lambda x, n: x * n, static_argnums=1), (W, 3), {}),
    "static-keyword": (jax.jit(lambda x, n: x * n, static_argnames="n"), (W,), {"n": 3}),
    "python-numbers": (lambda x, n, m, k, z: (x * n + z, m, k), (W, 3.0, 4, True, 1j), {}),
    "numpy-number": (lambda x, n: x * n, (W, np.float32(3)), {}),
    "weak": (lambda x, n, v: x * n + v, (B, WEAK, jnp.broadcast_to(WEAK, (3, 4))), {}),
    "key": (lambda k: (jax.random.split(k)[0], jax.random.normal(k, (4,))), (KEY,), {}),
    "donated-keys": (jax.jit(lambda k, x: (k[::-1], x + 1), donate_argnums=(0, 1)), (jax.random.split(KEY, 3), W), {}),
    "bfloat16": (lambda a: a @ a.T, (B,), {}),
    "int4": (lambda a: a.astype(jnp.float32) * 2, (W.astype(jnp.int4),), {}),
    "scan": (lambda a: jax.lax.scan(lambda c, x: (c @ S + x, c.sum()), a, jnp.ones((7, 4))), (W[0],), {}),
    "while": (lambda a: jax.lax.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, s[1] * 1.1), (0, a)), (W,), {}),
    "cond": (lambda a: jax.lax.cond(a[0, 1] > 0, lambda x: x + 1, lambda x: x * 2, a), (W,), {}),
    "sort": (lambda a: (jnp.sort(a), jnp.argsort(-a), jax.lax.top_k(a, 2)), (W,), {}),
    "linalg": (lambda a: (jnp.linalg.eigh(a), jnp.linalg.qr(a), jnp.linalg.cholesky(a)), (S,), {}),
    "solve": (lambda a: (jnp.linalg.solve(a, a[0]), jnp.linalg.svd(a)), (S,), {}),
    "fft": (jnp.fft.fft, (S,), {}),
    "conv": (lambda a, b: jax.lax.conv(a, b, (1, 1), "SAME"), (jnp.ones((1, 2, 5, 5)), jnp.ones((3, 2, 3, 3))), {}),
    "attention": (lambda q: jax.nn.dot_product_attention(q, q, q), (W.reshape(1, 3, 2, 2),), {}),
    "no-arguments": (lambda: jnp.arange(5.0) * 2, (), {}),
    "unused": (jax.jit(lambda a, b: b * 2, donate_argnums=1), (W + 0, W + 1), {}),
    "unused-donated": (jax.jit(lambda a, b, k: b * 2, donate_argnums=(0, 1)), (W + 0, W + 1, KEY), {}),
    "unused-all": (jax.jit(lambda a, k: jnp.arange(3)), (W, KEY), {}),
}


def stored(subject, args, kwargs, feeds=None):
    """A compiled subject, its program, and its dynamic arguments."""
    call = on_device(args, kwargs)
    lowered = lower(subject, *call, role="subject", clock=lambda: 0)
    program = export_program(lowered, call, feeds, 0)
    assert program.record.why_not == ""
    return lowered, call, program, split_call(lowered, call)[0]


def values(outputs):
    """Numbers on the host, with their types."""
    return [to_host(leaf) for leaf in jax.tree.leaves(outputs)]


@pytest.mark.parametrize(("subject", "args", "kwargs"), PROGRAMS.values(), ids=PROGRAMS)
def test_a_program_replays_its_subject(subject, args, kwargs):
    """The same numbers, types, memory and operations; the same arguments consumed; the caller's arrays untouched."""
    lowered, call, program, leaves = stored(subject, args, kwargs)
    side = prepare(program, leaves)
    compiled = compile_program(lowered, clocks=CLOCKS).executable
    assert side.facts == compiled_facts(compiled)
    eaten, feeder = side.feeder.fresh()[0], Feeder(call, donates=True)
    theirs = feeder.fresh()
    expected, got = values(lowered.function(*theirs[0], **theirs[1])), values(side.call(eaten))
    for ours, wanted in zip(got, expected, strict=True):
        assert (ours.dtype, ours.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_allclose(ours.astype(np.complex128), wanted.astype(np.complex128), rtol=1e-6, atol=1e-7)
    dynamic = [leaf for leaf in jax.tree.leaves(theirs) if isinstance(leaf, jax.Array)]
    arrays = [leaf for leaf in eaten if isinstance(leaf, jax.Array)]
    assert [leaf.is_deleted() for leaf in arrays] == [leaf.is_deleted() for leaf in dynamic]
    assert not any(leaf.is_deleted() for leaf in leaves if isinstance(leaf, jax.Array))


def test_arguments_that_do_not_fit_are_refused_in_one_line():
    *_, program, _ = stored(lambda x: x + 1, (W,), {})
    for leaves in ([W[:2]], [W, W], []):
        with pytest.raises(NotReplayableError, match=r"^it does not compile here: ValueError: ") as caught:
            prepare(program, leaves)
        assert "\n" not in str(caught.value)


def ticks(step=1):
    """A clock that moves with each reading."""
    now = iter(range(0, 10**9, step))
    return lambda: next(now)


def test_a_burst_threads_the_state_and_reads_the_clock_twice():
    """Each call eats the output before it; the clock runs from the first call to the last output."""
    subject = jax.jit(lambda s, x: (x.sum(), s + x), donate_argnums=0)
    _, _, program, leaves = stored(subject, (jnp.zeros(4), W[1]), {}, feeds=(1, None))
    side = prepare(program, leaves)
    assert not side.consumed
    seen = []
    watched = replace(side, function=lambda *given: seen.append(given) or side.function(*given))
    assert watched.burst(3, ticks(10)) == 10
    assert [first.is_deleted() for first, _ in seen] == [True, True, True]
    assert all(second is leaves[1] or not second.is_deleted() for _, second in seen)
    assert not leaves[0].is_deleted()


def test_consumed_arguments_are_made_anew_for_every_burst():
    """A donated argument that nothing feeds allows one call."""
    _, _, program, leaves = stored(jax.jit(lambda s: s + 1, donate_argnums=0), (jnp.zeros(4),), {})
    side = prepare(program, leaves)
    assert side.consumed
    assert [side.burst(1, ticks()) for _ in range(3)] == [1, 1, 1]
    assert not leaves[0].is_deleted()
    duel = run_duel(
        side, prepare(program, leaves), settled=lambda _: False, seed=0, clock=ticks(), max_pairs=2, platform="cpu"
    )
    assert (duel.calls_per_burst, duel.traces, len(duel.now_ns)) == (1, 0, 2)
    assert not leaves[0].is_deleted()


def constant(*outputs):
    """A contender that always gives the same."""
    return Contender(function=lambda: outputs, feeder=Feeder(((), {}), donates=False), feeds=None)


NAN = W * jnp.nan
AGREE = {
    "equal": ((W, B), (W, B), True),
    "close": ((W,), (W * (1 + 1e-6),), True),
    "different": ((W,), (W * 1.01,), False),
    "one-of-two": ((W, W), (W, W + 1), False),
    "nan": ((NAN,), (NAN,), True),
    "nan-or-number": ((NAN,), (W,), False),
    "number-or-nan": ((W,), (NAN,), False),
    "infinite": ((W / 0,), (W / 0,), True),
    "sign-of-infinity": ((W[1] / 0,), (W[1] / -0.0,), False),
    "shapes": ((W,), (W[:1],), False),
    "broadcast": ((jnp.ones((1, 4)),), (jnp.ones(4),), False),
    "more": ((W,), (W, W), False),
    "none": ((), (), True),
    "types": ((jnp.ones(3),), (jnp.ones(3, "bfloat16"),), False),
    "token-ids": ((jnp.array([200_000]),), (jnp.array([200_001]),), False),
    "flags": ((W > 0,), (W >= 0,), False),
    "keys": ((KEY,), (KEY,), True),
    "other-keys": ((KEY,), (jax.random.key(8),), False),
    "small-types": ((W.astype(jnp.int4), W.astype(jnp.float8_e4m3fn)),) * 2 + (True,),
    "complex": ((W + 1j,), (W - 1j,), False),
}


@pytest.mark.parametrize(("now", "baseline", "expected"), AGREE.values(), ids=AGREE)
def test_agree(now, baseline, expected):
    """Number by number within the tolerance; NaN agrees with NaN alone."""
    assert agree(constant(*now), constant(*baseline), Closeness(1e-5, 1e-8)) is expected


def test_large_results_are_compared_piece_by_piece():
    """To the last number, and in less memory than one of them has."""
    ours, theirs = (np.zeros((5, 1_000_000), np.float32) for _ in range(2))
    theirs[-1, -1] = 1
    sides = [SimpleNamespace(results=lambda array=array: [array]) for array in (ours, theirs)]
    tracemalloc.start()
    try:
        assert agree(*sides, Closeness(0, 0.5)) is False
        assert agree(*sides, Closeness(0, 1)) is True
        assert tracemalloc.get_traced_memory()[1] < ours.nbytes
    finally:
        tracemalloc.stop()


def test_results_that_are_not_handed_over_are_not_compared():
    """One side's are enough, and then nobody asks for the other's."""
    few, many = constant(W), SimpleNamespace(results=lambda: None)
    assert agree(few, many, Closeness(0, 0)) is None
    assert agree(many, SimpleNamespace(), Closeness(0, 0)) is None
    assert few.results(most_bytes=W.nbytes - 1) is None
    assert len(few.results(most_bytes=W.nbytes)) == 1


class Side:
    """A contender that takes a fixed time for a call, and writes down what it was asked for."""

    contract = "throughput"

    def __init__(self, name, log, *, call_ns=1_000, consumed=False, hook=lambda count: None):
        self.name, self.log, self.call_ns, self.consumed, self.hook = name, log, call_ns, consumed, hook

    def burst(self, calls, clock):
        self.log.append((self.name, calls, gc.isenabled()))
        self.hook(len(self.log))
        return calls * self.call_ns


def duel_of(*, seed=1, pairs=20, settled=lambda _: False, platform="cpu", now=None, before=None):
    """A duel of two fakes: what came of it, and what was asked of the sides while it was timed."""
    log = []
    sides = [Side("A", log, **(now or {})), Side("B", log, **(before or {}))]
    duel = run_duel(*sides, settled=settled, seed=seed, clock=ticks(), max_pairs=pairs, platform=platform)
    timed = sum(map(len, duel.now_ns + duel.baseline_ns))
    before, log = log[:-timed], log[-timed:]
    assert [entry[:2] for entry in before[:6]] == [("A", 1)] * 3 + [("B", 1)] * 3
    assert len(before[6:]) <= 3  # bursts to plan with
    return duel, log


def blocks(log, bursts=3):
    """The order of half-rounds: one word for each block."""
    halves = [log[i : i + bursts] for i in range(0, len(log), bursts)]
    assert all(len({name for name, *_ in half}) == 1 for half in halves)
    names = "".join(half[0][0] for half in halves)
    return [names[i : i + 4] for i in range(0, len(names), 4)]


def test_the_order_is_drawn_from_the_seed():
    """Blocks are ABBA or BAAB; a seed gives one order, another seed another, and neither form is rare."""
    orders = {seed: blocks(duel_of(seed=seed)[1]) for seed in range(10)}
    assert blocks(duel_of(seed=3)[1]) == orders[3]
    assert {word for order in orders.values() for word in order} == {"ABBA", "BAAB"}
    assert {len(order) for order in orders.values()} == {10}
    assert len({tuple(order) for order in orders.values()}) == 10
    assert 30 < sum(word == "ABBA" for order in orders.values() for word in order) < 70
    assert duel_of(seed=3)[0].seed == 3


def test_times_are_kept_in_order():
    """Every burst is kept, in the pair it was taken for, under the side it was taken from."""
    taken = iter(range(1, 10_000))
    log = []

    class Counting(Side):
        def burst(self, calls, clock):
            self.log.append((self.name, next(taken)))
            return self.log[-1][1]

    duel = run_duel(
        Counting("A", log),
        Counting("B", log),
        settled=lambda _: False,
        seed=5,
        clock=ticks(),
        max_pairs=6,
        platform="cpu",
    )
    timed = log[-6 * 2 * 3 :]
    for name, times in (("A", duel.now_ns), ("B", duel.baseline_ns)):
        expected = [time for side, time in timed if side == name]
        assert [time for bursts in times for time in bursts] == expected
        assert [len(bursts) for bursts in times] == [3] * 6


LENGTHS = [
    (1_000, 3_000, "cpu", 5_000, 3),
    (3_000, 1_000, "cpu", 5_000, 3),
    (1_000, 3_000, "gpu", 20_000, 3),
    (1_000, 3_000, "tpu", 20_000, 3),
    (3_000_000, 4_000_000, "cpu", 2, 3),
    (1_000, 5_000, "cpu", 5_000, 3),
    (1_000, 5_100, "cpu", 5_000, 1),  # five usual bursts: long enough by itself
    (10_000_000, 10_000_000, "cpu", 1, 3),
    (1_000, 10_000_001, "cpu", 4, 1),  # the slower side takes 50 ms at most
    (10_000_001, 10_000_001, "cpu", 1, 1),
    (1, 1, "cpu", 100_000, 3),
    (0, 0, "cpu", 100_000, 3),
]


@pytest.mark.parametrize(("now_ns", "baseline_ns", "platform", "calls", "bursts"), LENGTHS)
def test_one_length_for_both_sides(now_ns, baseline_ns, platform, calls, bursts):
    """Enough calls of the faster side for a burst, at most 100,000; one burst where a call is over 10 ms."""
    duel, log = duel_of(pairs=4, platform=platform, now={"call_ns": now_ns}, before={"call_ns": baseline_ns})
    assert {asked for _, asked, _ in log} == {duel.calls_per_burst} == {calls}
    assert {len(half) for half in duel.now_ns + duel.baseline_ns} == {bursts}
    assert set(blocks(log, bursts)) <= {"ABBA", "BAAB"}


@pytest.mark.parametrize("eater", ["now", "before"])
def test_consumed_arguments_allow_one_call(eater):
    """On either side: both take one call for a burst."""
    duel, log = duel_of(pairs=4, **{eater: {"consumed": True}})
    assert {asked for _, asked, _ in log} == {duel.calls_per_burst} == {1}


def test_it_stops_when_settled_and_at_the_latest():
    asked = []
    duel, _ = duel_of(settled=lambda duel: asked.append(len(duel.now_ns)) or len(duel.baseline_ns) == 6)
    assert (asked, len(duel.now_ns), len(duel.baseline_ns)) == ([2, 4, 6], 6, 6)
    assert len(duel_of(pairs=60)[0].now_ns) == 60


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("fails", [True, False])
def test_garbage_collection_is_held_off_and_restored(enabled, fails):
    """Off while timing, and afterwards as it was, even after a failure."""

    def fail(count):
        if fails and count == 20:
            raise RuntimeError("device lost")

    was = gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    try:
        with pytest.raises(RuntimeError, match="device lost") if fails else pytest.MonkeyPatch.context():
            log = duel_of(now={"hook": fail}, before={"hook": fail})[1]
            assert {on for *_, on in log} == {False}
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if was else gc.disable)()


@pytest.mark.parametrize(("at", "traces"), [(3, 0), (20, 2)], ids=["warm", "timed"])
def test_a_trace_while_timing_is_counted(at, traces):
    """One trace and one compilation under the clock are seen; those of the warm calls are not meant."""

    def retrace(count):
        if count == at:
            jax.block_until_ready(jax.jit(lambda x: x - 1)(W))

    assert duel_of(now={"hook": retrace}, before={"hook": retrace})[0].traces == traces
