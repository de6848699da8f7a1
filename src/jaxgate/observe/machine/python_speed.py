"""How fast this machine runs Python right now: a fixed piece of work that has nothing to do with JAX.

Phases outside the steady state are held against stored figures, and the machine that recorded them may have been
quicker or less busy. The yardstick tells how much; it knows nothing of JAX, so that a slower JAX does not hide in it.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

ROUNDS = 3
_ITEMS = 4_000
"""About 2 ms on a server core of 2024: long against the clock, short against a trace."""


def read_yardstick(clock: Callable[[], int]) -> int:
    """Median time of the fixed work, in nanoseconds."""
    taken = []
    for _ in range(ROUNDS):
        begin = clock()
        _work()
        taken.append(clock() - begin)
    return round(median(taken))


def _work() -> int:
    """Calls, dictionaries, tuples and strings, as tracing has them."""
    seen: dict[tuple[str, int], list[int]] = {}
    for item in range(_ITEMS):
        seen.setdefault((f"v{item % 61}", item % 7), []).append(item)
    return sum(len(items) for items in sorted(seen.values(), key=len))
