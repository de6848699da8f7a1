"""Two programs in alternation, in one process: the one timing primitive."""

from __future__ import annotations

import gc
import math
import random
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import jax
import numpy as np
from jax.sharding import Mesh

from jaxgate.model.duel import ACCELERATOR_BURST_NS, BURSTS, DUEL_BURST_NS, LONG_CALL_NS, Duel
from jaxgate.model.numbers import Contract
from jaxgate.model.program import StoredProgram
from jaxgate.observe.arguments.feeder import Feeder, Shards, place_of
from jaxgate.observe.arguments.lockstep import is_spread, whole
from jaxgate.observe.arguments.signature import to_host
from jaxgate.observe.execute.correctness import Closeness
from jaxgate.observe.program.export import NotReplayableError, compile_exported, load_program, spread
from jaxgate.observe.trace.clocks import Clock, uncollected
from jaxgate.observe.trace.compile_events import record
from jaxgate.observe.trace.stages import compiled_facts

LONGEST_BURST = 10
"""So many usual bursts one of the slower side may take: on CPU a duel with one fifty times slower took ten seconds with 40."""
LONG_BURST = 5
"""From so many usual bursts on, one of the slower side is steady by itself, and is not repeated."""
WARM_CALLS = 3
MAX_BURST_CALLS = 100_000
MAX_PLANS = 3
"""Bursts to plan with: where a call takes 1 µs and waiting for it 50 µs, the third is long enough."""

COMPARED_AT_ONCE = 100_000
"""Numbers of a result: as complex ones of double precision they take four times the memory of single precision, and more."""

GATHERED_BYTES = 2**28
"""Most bytes of a result that is spread over processes which are brought to each of them to be compared."""


class Side(Protocol):
    """What a duel asks of each side: its contract, whether a call eats what the next one needs, results and bursts."""

    @property
    def contract(self) -> Contract:
        """Whether the calls of a burst may overlap, or each is waited for before the next."""

    @property
    def consumed(self) -> bool:
        """Whether a burst can be of one call only."""

    def results(self) -> list[np.ndarray[Any, Any]] | None:
        """What a call gives, on the host; ``None`` where it is more than is handed over."""

    def burst(self, calls: int, clock: Clock) -> int:
        """Nanoseconds that some calls in a row take."""


@dataclass(frozen=True, slots=True)
class Contender:
    """One side of a duel in this process: a compiled program and the arguments to feed it."""

    function: jax.stages.Compiled  # the flattened program
    feeder: Feeder  # makes its arguments, never the ones that another burst still needs
    feeds: tuple[int | None, ...] | None  # how the state is threaded within a burst
    contract: Contract = "throughput"  # whether the calls of a burst may overlap, or each is waited for before the next

    @property
    def facts(self) -> dict[str, int | None]:
        """What this backend's compiler says of the program."""
        return compiled_facts(self.function)

    @property
    def consumed(self) -> bool:
        """Whether a call eats arguments that the one before cannot give back."""
        return self.feeder.copies and self.feeds is None

    def call(self, leaves: Sequence[Any]) -> tuple[Any, ...]:
        """Call once, without waiting."""
        output: tuple[Any, ...] = self.function(*leaves)
        return output

    def following(self, leaves: Sequence[Any], output: Sequence[Any]) -> Sequence[Any]:
        """The arguments of the next call."""
        if self.feeds is None:
            return leaves
        return [leaf if feed is None else output[feed] for leaf, feed in zip(leaves, self.feeds, strict=True)]

    def results(self, most_bytes: int | None = None) -> list[np.ndarray[Any, Any]] | None:
        """What a call gives, on the host; ``None`` if it is more than so many bytes, where there is a limit."""
        output = self.call(self.feeder.fresh()[0])
        if most_bytes is None and not all(leaf.is_fully_addressable for leaf in output):
            most_bytes = GATHERED_BYTES
        if most_bytes is not None and sum(leaf.nbytes for leaf in output) > most_bytes:
            return None
        return [to_host(whole(leaf)) for leaf in output]

    def burst(self, calls: int, clock: Clock) -> int:
        """Time some calls in a row; their first arguments are made outside the clock."""
        leaves: Sequence[Any] = self.feeder.fresh()[0]
        jax.block_until_ready(leaves)
        begin = clock()
        output = self.call(leaves)
        for _ in range(calls - 1):
            if self.contract == "latency":
                jax.block_until_ready(output)
            leaves = self.following(leaves, output)
            output = self.call(leaves)
        jax.block_until_ready(output)
        return clock() - begin


def prepare(
    program: StoredProgram,
    leaves: Sequence[Any],
    contract: Contract = "throughput",
    *,
    extend: Callable[[Callable[..., Any]], Callable[..., Any]] = lambda call: call,
    extra: Sequence[Any] = (),
) -> Contender:
    """Compile a stored program for these arguments; each time anew, into an executable of its own.

    What ``extend`` adds to the program before it is compiled comes last, in arguments (``extra``) and results, so that
    donation and threading stay right.

    Raises:
        NotReplayableError: If it cannot be read, compiled or called with them.
    """
    exported = load_program(program)
    placed = [*_place(exported, leaves), *extra]
    about = program.record
    compiled = compile_exported(exported, placed, donated=about.donated, options=about.options, extend=extend)
    feeder = Feeder((tuple(placed), {}), donates=bool(about.donated), only=about.donated)
    feeds = about.feeds
    kept = None if feeds is None else (*feeds, *(None for _ in extra))
    return Contender(function=compiled, feeder=feeder, feeds=kept, contract=contract)


def _place(exported: Any, leaves: Sequence[Any]) -> list[Any]:
    """Put the arguments where a program for several devices wants them; those that lie right share their buffers."""
    if exported.nr_devices == 1:
        return list(leaves)
    shardings = spread(exported, _devices(leaves, exported.nr_devices))
    return [_put(leaf, sharding) for leaf, sharding in zip(leaves, shardings, strict=True)]


def _put(leaf: Any, sharding: Any) -> Any:
    if not isinstance(leaf, jax.ShapeDtypeStruct):
        return jax.device_put(leaf, sharding) if sharding.is_fully_addressable else _put_parts(leaf, sharding)
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding, weak_type=leaf.weak_type)


def _put_parts(leaf: Any, sharding: Any) -> Any:
    """Put an array on devices of several processes, each of which has the parts that it needs, or all of it."""
    if is_spread(leaf):
        return jax.device_put(leaf, sharding)
    values, key = leaf, ""
    if isinstance(leaf, Shards):
        key = leaf.key
    else:
        values = to_host(leaf)
        if isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            key = str(jax.random.key_impl(leaf))

    def part(index: tuple[slice, ...]) -> Any:
        if not isinstance(values, Shards):
            return values[index]
        place = place_of(index, values.shape)
        if place not in values.parts:
            raise NotReplayableError(f"this process does not hold the part {place} of an argument")
        return values.parts[place]

    placed = jax.make_array_from_callback(values.shape, sharding, part)
    return jax.random.wrap_key_data(placed, impl=key) if key else placed


def _devices(leaves: Sequence[Any], count: int) -> np.ndarray[Any, Any]:
    """The devices that the arguments lie on, in their mesh's order; the first ones where no argument says."""
    for leaf in leaves:
        if isinstance(leaf, Shards) and len(leaf.devices) == count:
            return np.array(jax.devices())[list(leaf.devices)]
        mesh = getattr(getattr(leaf, "sharding", None), "mesh", None)
        if isinstance(mesh, Mesh) and mesh.size == count:
            found: np.ndarray[Any, Any] = mesh.devices.flatten()
            return found
    return np.array(jax.devices()[:count])


def agree(now: Side, baseline: Side, closeness: Closeness) -> bool | None:
    """Whether two programs give the same numbers, of the same types, for the same arguments.

    Integers and booleans must be equal: there is no tolerance between two token ids. ``None`` if they are more than a
    side hands over.
    """
    ours = now.results()
    theirs = None if ours is None else baseline.results()
    if ours is None or theirs is None:
        return None
    if [(array.shape, array.dtype) for array in ours] != [(array.shape, array.dtype) for array in theirs]:
        return False
    return all(_close(a, b, closeness) for a, b in zip(ours, theirs, strict=True))


def _close(ours: np.ndarray[Any, Any], theirs: np.ndarray[Any, Any], closeness: Closeness) -> bool:
    if ours.dtype.kind in "biu":
        return np.array_equal(ours, theirs)
    a, b = ours.reshape(-1), theirs.reshape(-1)
    allowed = {"rtol": closeness.relative, "atol": closeness.absolute_beside(b)}
    pieces = [slice(begin, begin + COMPARED_AT_ONCE) for begin in range(0, a.size, COMPARED_AT_ONCE)]
    return all(
        np.allclose(a[piece].astype(np.complex128), b[piece].astype(np.complex128), **allowed, equal_nan=True)
        for piece in pieces
    )


def run_duel(
    now: Side,
    baseline: Side,
    *,
    settled: Callable[[Duel], bool],
    max_pairs: int,
    platform: str,
    seed: int | None = None,
    clock: Clock = time.perf_counter_ns,
) -> Duel:
    """Time two programs in blocks of ABBA or BAAB until the outcome is settled.

    Both sides take one number of calls in a burst: separate numbers have been seen to bias by 1 %. Garbage collection
    is held off; it would hit one side or the other. The order is drawn from ``seed``, which is itself drawn, and
    recorded, by default.
    """
    seed = secrets.randbits(32) if seed is None else seed
    sides = (now, baseline)
    warm = [_warm(side, clock) for side in sides]
    burst_ns = DUEL_BURST_NS.get(platform, ACCELERATOR_BURST_NS)
    calls = _calls_in_a_burst(sides, warm, burst_ns, clock)
    long = max(warm) > LONG_CALL_NS or max(warm) * calls > LONG_BURST * burst_ns
    bursts = 1 if long else BURSTS
    order = random.Random(seed)  # noqa: S311 - an order, not a secret
    times: tuple[list[tuple[int, ...]], list[tuple[int, ...]]] = ([], [])
    duel = Duel(now_ns=(), baseline_ns=(), calls_per_burst=calls, seed=seed, contract=now.contract)
    gc.collect()
    with uncollected(), record(others=False) as events:
        while len(times[0]) < max_pairs:
            first = order.randrange(2)
            for side in (first, 1 - first, 1 - first, first):
                contender = sides[side]
                times[side].append(tuple(contender.burst(calls, clock) for _ in range(bursts)))
            duel = replace(
                duel, now_ns=tuple(times[0]), baseline_ns=tuple(times[1]), traces=len(events.traces + events.compiles)
            )
            if settled(duel):
                break
    return duel


def _warm(side: Side, clock: Clock) -> int:
    """Three warm calls; the time of the quickest, never zero: one that was interrupted must not plan the duel."""
    return max(1, min(side.burst(1, clock) for _ in range(WARM_CALLS)))


def _calls_in_a_burst(sides: Sequence[Side], warm: Sequence[int], burst_ns: int, clock: Clock) -> int:
    """One number of calls for both sides, which are warm, so that a burst of the quicker one takes ``burst_ns``."""
    most = min(MAX_BURST_CALLS, max(1, LONGEST_BURST * burst_ns // max(warm)))
    calls = min(most, math.ceil(burst_ns / min(warm)))
    if calls == 1 or any(side.consumed for side in sides):
        return 1
    # A call that is waited for alone takes longer than one of many in a row: look at what it comes to.
    quicker = sides[warm.index(min(warm))]
    for _ in range(MAX_PLANS):
        took_ns = max(1, quicker.burst(calls, clock))
        if took_ns >= burst_ns or calls == most:
            break
        calls = min(most, math.ceil(calls * burst_ns / took_ns))
    return calls
