"""The largest allocations of a program, as data and as lines for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from jaxgate.observe.out_of_memory import size_text
from jaxgate.observe.source_lines import at


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """One place in memory that the compiler has given to one or more arrays of a program.

    Attributes:
        nbytes: Its size on one device.
        kind: ``argument``, ``output``, ``temp``, ``constant`` or ``thread-local``.
        opcode: The operation that makes what lies there: ``sort``, ``fusion``, ``parameter``.
        op_name: Its JAX name with all scopes: ``jit(step)/attention/dot_general``; for an argument its path.
        line: The project's line: ``model.py:12``; empty if none is known.
        tenants: How many arrays lie there, one after the other.
        alive_at_peak: Whether it holds one of them when the program needs most; ``None`` where the backend
            keeps no trace of its heap, as on CPU.
        estimated: Whether that was worked out from the program's schedule, not listed by its compiler.
    """

    nbytes: int
    kind: str
    opcode: str
    op_name: str
    line: str
    tenants: int
    alive_at_peak: bool | None
    estimated: bool = False

    def __str__(self) -> str:
        """One line for people."""
        peak = {True: ", alive at the peak", False: ", not alive at the peak", None: ""}[self.alive_at_peak]
        by = " (estimated from the schedule)" if self.estimated else ""
        return f"{size_text(self.nbytes)} {self.kind} {self.opcode} {self.op_name}".rstrip() + at(self.line) + peak + by


def rows_of(allocations: Iterable[Allocation], count: int = 10) -> tuple[str, ...]:
    """One line for each allocation, those that read alike in one: ``4 × 524.3 kB temp fusion …``."""
    alike = Counter(str(allocation) for allocation in allocations)
    rows = [line if times == 1 else f"{times} × {line}" for line, times in alike.items()]
    return tuple(rows[:count])


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocations:
    """The largest allocations, largest first; ``why_not`` says why there are none."""

    largest: tuple[Allocation, ...] = ()
    why_not: str = ""
