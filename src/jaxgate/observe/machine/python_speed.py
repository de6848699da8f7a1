"""How fast this machine runs Python right now: a fixed piece of work that has nothing to do with JAX.

Phases (tracing, compiling) are compared with stored times, which may come from a quicker or less busy machine. The
yardstick measures that difference. It uses no JAX, so a slower JAX changes the phases and not the yardstick.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from statistics import median

ROUNDS = 3
_ITEMS = 4_000
"""About 2 ms on a server core of 2024: long against the clock, short against a trace."""


def read_yardstick(clock: Callable[[], int]) -> int:
    """Median time of the fixed work, in nanoseconds."""
    return round(median(_times(clock, ROUNDS)))


def python_spread(clock: Callable[[], int], rounds: int = 30) -> float:
    """How steady this machine is: the 90th percentile of the fixed work's times over the least of them."""
    taken = sorted(_times(clock, rounds))
    return taken[-1 - rounds // 10] / taken[0]


def clock_step(clock: Callable[[], int], readings: int = 2_000) -> int:
    """The smallest step that a clock was seen to make, in its unit."""
    seen = sorted({clock() for _ in range(readings)})
    return min((later - earlier for earlier, later in pairwise(seen)), default=0)


def _times(clock: Callable[[], int], rounds: int) -> list[int]:
    taken = []
    for _ in range(rounds):
        begin = clock()
        _work()
        taken.append(clock() - begin)
    return taken


def _work() -> int:
    """Calls, dictionaries, tuples and strings, as tracing has them."""
    seen: dict[tuple[str, int], list[int]] = {}
    for item in range(_ITEMS):
        seen.setdefault((f"v{item % 61}", item % 7), []).append(item)
    return sum(len(items) for items in sorted(seen.values(), key=len))
