"""Arrays that a step leaves behind: a list that grows, a cache that nobody empties."""

from __future__ import annotations

import gc
from collections import Counter, deque
from collections.abc import Iterable
from typing import Any

import jax

from jaxgate.model.measurement import MAX_NAMED
from jaxgate.model.words import shortlist
from jaxgate.observe.arguments.signature import short

_CONTAINERS = (list, dict, set, deque)


class KeptArrays:
    """Looks at the live arrays of this process after some steps; what is in reference cycles is collected before.

    Attributes:
        count: Arrays that each step has left behind, as far as all looks agree; ``None`` before there were two.
        described: What they are and what holds them, for people; empty if there are none.
    """

    def __init__(self) -> None:
        self.count: int | None = None
        self.described = ""
        self._seen: set[int] | None = None

    def look(self, mine: Iterable[Any], *, steps: int = 1) -> None:
        """Count what is alive, is not in what the caller holds, and was not alive before, or only because the caller held it.

        Args:
            mine: Arguments and results of the last step.
            steps: How many there were since the look before.
        """
        gc.collect()
        held = {id(leaf) for leaf in jax.tree.leaves(tuple(mine))}
        live = jax.live_arrays()
        if self._seen is not None:
            left = [array for array in live if id(array) not in self._seen | held]
            each = len(left) // steps
            if self.count is None or each < self.count:
                self.count = each
                self.described = _describe(left, steps) if each else ""
        self._seen = {id(array) for array in live} - held


def _describe(arrays: list[jax.Array], steps: int) -> str:
    kinds = Counter(short(array) for array in arrays)
    named = shortlist([f"{count // steps} × {kind}" for kind, count in kinds.items() if count >= steps], MAX_NAMED)
    holder = _holder(arrays[-1], arrays)
    return f"{named}{f', held by {holder}' if holder else ''}"


def _holder(array: jax.Array, beside: list[jax.Array]) -> str:
    """What holds an array: the name of a module's variable, or the type of what it is in."""
    found = [one for one in gc.get_referrers(array) if isinstance(one, _CONTAINERS) and one is not beside]
    for container in found:
        for owner in gc.get_referrers(container):
            if isinstance(owner, dict) and "__name__" in owner:
                names = [name for name, value in owner.items() if value is container]
                if names:
                    return f"{owner['__name__']}.{names[0]}"
    return f"a {type(found[0]).__name__}" if found else ""
