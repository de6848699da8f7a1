"""The device programs that plain Python launches in a call, each judged by itself, and their pairs in two calls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from jaxgate.model.numbers import Strict
from jaxgate.model.program import ProgramRecord

_EACH_CALL = (
    "host_callbacks", "matmul_flops", "widened_bytes", "random_bits", "collectives", "collective_bytes", "aliased_bytes", "xla_flops",
    "xla_bytes", "transcendentals", "kernels", "copied_bytes", "scattered_bytes",
)  # fmt: skip
_EACH_PROGRAM = ("constant_bytes", "unmatched_names", "trace_equations", "stablehlo_ops", "code_bytes")
_MOST = ("temp_bytes", "block_bytes")
CALL_FACTS = (*_EACH_CALL, *_EACH_PROGRAM, *_MOST)
"""Facts of programs that become those of a call: summed over its launches, over its programs, or the most of one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchedProgram(Strict):
    """One of the device programs of a warm call of plain Python."""

    name: str  # of the function that it was traced from
    count: int  # how often a call launches it
    fingerprint: str  # structure of its StableHLO module
    options: str | None  # its compiler options in one line; `None` if they could not be read
    devices: str | None  # its device assignment; `None` on one device, or if it is unknown
    arguments: tuple[str, ...]  # types of its arguments, in order
    facts: Mapping[str, int]  # of one call of it, by name, as far as they are known
    # what a baseline says of the stored program; `None` in a measurement, which stores nothing
    program: ProgramRecord | None = None

    @property
    def identity(self) -> tuple[object, ...]:
        """What two programs that take the same time have in common: all that decides what is compiled."""
        return (self.fingerprint, self.options, self.devices, self.arguments)


Pair = tuple[LaunchedProgram | None, LaunchedProgram | None]
"""A program of today and its counterpart of before; ``None`` for one that has none."""


def pair_programs(now: Sequence[LaunchedProgram], before: Sequence[LaunchedProgram]) -> list[Pair]:
    """Pair the programs of two calls: equal ones, then those of one name, then those of equal arguments, each in order.

    A program that is new moves no neighbour, and a function may be renamed.
    """
    left = list(before)
    found: list[LaunchedProgram | None] = [None for _ in now]
    for alike in map(attrgetter, ("identity", "name", "arguments")):
        waiting: defaultdict[object, list[LaunchedProgram]] = defaultdict(list)
        for one in left:
            waiting[alike(one)].append(one)
        for place, one in enumerate(now):
            if found[place] is None and waiting[alike(one)]:
                found[place] = waiting[alike(one)].pop(0)
        left = [one for one in left if not any(one is other for other in found)]
    return [*zip(now, found, strict=True), *((None, one) for one in left)]


def changed_programs(now: Sequence[LaunchedProgram], before: Sequence[LaunchedProgram]) -> list[Pair]:
    """The pairs of programs that are not equal."""
    return [
        (ours, theirs)
        for ours, theirs in pair_programs(now, before)
        if ours is None or theirs is None or ours.identity != theirs.identity
    ]


def call_facts(programs: Sequence[LaunchedProgram]) -> dict[str, int | None]:
    """The facts of a call: sums over what it launches, and of temporaries the most that one program needs.

    A fact is ``None`` unless it is known of each program.
    """
    found: dict[str, int | None] = {}
    for name in (*_EACH_CALL, *_EACH_PROGRAM, *_MOST):
        known = [one.facts[name] * (one.count if name in _EACH_CALL else 1) for one in programs if name in one.facts]
        combine = max if name in _MOST else sum
        found[name] = combine(known) if known and len(known) == len(programs) else None
    return found
