"""What a step leaves behind: arrays that something holds, and reference cycles.

A list that grows, or a cache that nobody empties, holds arrays; cycles, and the arrays in them, live on until Python's
collector comes.
"""

from __future__ import annotations

import gc
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass
from types import CodeType, FrameType, FunctionType
from typing import Any
from weakref import ref

import jax

from jaxgate.model.measurement import MAX_NAMED
from jaxgate.model.words import shortlist
from jaxgate.observe.arguments.signature import short
from jaxgate.observe.source_lines import is_project_file, short_path

_CONTAINERS = (list, dict, set, deque)
_DEPTH = 4
"""Containers within one another that are looked through, and of each of them so many."""


@dataclass(slots=True)
class LeftBehind:
    """Looks at the live arrays of this process after some steps, before and after what is in reference cycles is freed.

    Counts are of each step, as far as all looks agree; ``None`` before there were two.
    """

    arrays: int | None = None  # what something holds
    cyclic_objects: int | None = None  # Python objects in reference cycles
    cyclic_arrays: int | None = None  # what only the collector frees
    described: str = ""  # the arrays that are held, and by what, for people
    cycles: str = ""  # what is in the cycles, for people
    _seen: set[int] | None = None
    _left: tuple[int, list[ref[jax.Array]]] = (1, [])  # what the look before counted, over so many steps

    @property
    def any(self) -> bool:
        """Whether each step left something behind, as far as was looked."""
        return bool(self.arrays or self.cyclic_objects or self.cyclic_arrays)

    def look(self, mine: Iterable[Any], *, steps: int = 1) -> None:
        """Count what is new since the last look: alive, not held by the caller now, and not alive before but for the caller.

        ``mine`` are arguments and results of the last step; ``steps`` were made since the look before, without a
        collection. What the look before counted and is gone by now was kept for a step and then replaced: it does not
        add up, and counts for no step.
        """
        before = len(jax.live_arrays())
        cycles = _collected(named=self._seen is not None)
        after, leaves = len(jax.live_arrays()), jax.tree.leaves(tuple(mine))
        held, parts = {id(leaf) for leaf in leaves}, _parts(leaves)
        live = jax.live_arrays()
        if parts:
            live = [array for array in live if not (_alone(array) and array.unsafe_buffer_pointer() in parts)]
        if self._seen is not None:
            left = [array for array in live if id(array) not in self._seen | held]
            over, before_left = self._left
            stayed = sum(one() is not None for one in before_left) // over
            each = len(left) // steps if self.arrays is None else min(len(left) // steps, stayed)
            self._left = steps, [ref(array) for array in left]
            if self.arrays is None or each < self.arrays:
                self.arrays = each
                self.described = _describe(left, steps, live) if each else ""
            if self.cyclic_objects is None or cycles.total() // steps < self.cyclic_objects:
                self.cyclic_objects = cycles.total() // steps
                self.cycles = _named(cycles, steps)
            freed = max(0, before - after) // steps
            self.cyclic_arrays = freed if self.cyclic_arrays is None else min(self.cyclic_arrays, freed)
        self._seen = {id(array) for array in live} - held


def _alone(array: jax.Array) -> bool:
    """Whether an array is all on one device, and still there."""
    return not array.is_deleted() and len(array.sharding.device_set) == 1


def _parts(leaves: Iterable[Any]) -> frozenset[int]:
    """Where the parts of arrays on several devices lie; such an array keeps one of each part that somebody has read."""
    spread = (leaf for leaf in leaves if isinstance(leaf, jax.Array) and not leaf.is_deleted() and not _alone(leaf))
    return frozenset(shard.data.unsafe_buffer_pointer() for leaf in spread for shard in leaf.addressable_shards)


def _collected(*, named: bool) -> Counter[str]:
    """Free what is in reference cycles, and say what it was."""
    if not named:
        gc.collect()
        return Counter()
    flags, before = gc.get_debug(), len(gc.garbage)
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        gc.collect()
    finally:
        gc.set_debug(flags)
    found = Counter(_kind(one) for one in gc.garbage[before:])
    if found:
        del gc.garbage[before:]
        gc.collect()
    return found


def _named(cycles: Counter[str], steps: int) -> str:
    """What each step made, the project's own first."""
    kinds = sorted(cycles, key=lambda kind: (" at " not in kind, -cycles[kind], kind))
    return shortlist([f"{cycles[kind] // steps} × {kind}" for kind in kinds if cycles[kind] >= steps], MAX_NAMED)


def _kind(thing: Any) -> str:
    """What an object is; of a function, a frame or an object of the project with its line."""
    code: CodeType | None
    if isinstance(thing, FrameType):
        name, code = f"frame of {thing.f_code.co_name}", thing.f_code
    elif isinstance(thing, FunctionType):
        name, code = f"function {thing.__name__}", thing.__code__
    else:
        name, code = type(thing).__name__, getattr(type(thing).__dict__.get("__init__"), "__code__", None)
    if code is None or not is_project_file(code.co_filename):
        return name
    return f"{name} at {short_path(code.co_filename)}:{code.co_firstlineno}"


def _describe(arrays: list[jax.Array], steps: int, live: list[jax.Array]) -> str:
    kinds = Counter(short(array) for array in arrays)
    named = shortlist([f"{count // steps} × {kind}" for kind, count in kinds.items() if count >= steps], MAX_NAMED)
    holder = _holder(arrays[-1], arrays, live)
    return f"{named}{f', held by {holder}' if holder else ''}"


def _holder(array: jax.Array, *beside: list[jax.Array]) -> str:
    """What holds an array beside these lists: the name of a module's variable, or the type of what it is in."""
    level: list[Any] = [array]
    nearest = ""
    for _ in range(_DEPTH):
        above: list[Any] = []
        for thing in level:
            for one in gc.get_referrers(thing):
                if not isinstance(one, _CONTAINERS) or any(one is mine for mine in (level, above, *beside)):
                    continue
                if isinstance(one, dict) and "__name__" in one:
                    return next((f"{one['__name__']}.{name}" for name, value in one.items() if value is thing), "")
                above.append(one)
        nearest = nearest or (f"a {type(above[0]).__name__}" if above else "")
        level = above[:_DEPTH]
    return nearest
