"""Divides tests into parts that cost about the same."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify, heapreplace
from statistics import median

EACH_S = 0.5
"""What any test takes beside what its baseline says: its file, its fixtures, what JAX keeps of it."""


def cut(costs: Mapping[str, float | None], count: int) -> list[list[str]]:
    """Divide tests, the dearest first, each into the part that is the cheapest so far.

    Costs are in seconds; ``None``, where nobody knows, is taken for the median.

    Returns:
        The parts; the tests of each in the order given. The same for the same costs, in whatever order they stand.
    """
    usual = median([cost for cost in costs.values() if cost is not None] or [0.0])
    seconds = {test: EACH_S + (usual if cost is None else cost) for test, cost in costs.items()}
    sums = [(0.0, part) for part in range(count)]
    heapify(sums)
    part_of: dict[str, int] = {}
    for test in sorted(seconds, key=lambda test: (-seconds[test], test)):
        total, part = sums[0]
        part_of[test] = part
        heapreplace(sums, (total + seconds[test], part))
    return [[test for test in costs if part_of[test] == part] for part in range(count)]
