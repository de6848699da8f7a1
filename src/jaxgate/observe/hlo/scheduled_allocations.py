"""The largest arrays that are alive when a program needs most memory, where its compiler lists no allocations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from jaxgate.observe.hlo.allocations import Allocation, Allocations
from jaxgate.observe.hlo.liveness import Buffer, UnreadableScheduleError, find_peak
from jaxgate.observe.hlo.parser import read_hlo
from jaxgate.observe.out_of_memory import size_text

NEAR = 0.15
"""By how much the estimate may miss what the compiler says that it needs. 271 of 305 programs of the catalogue for a v5e and 35 of 36
for an H200 were within it (2026-11-24, ``python -m tests.estimates``); larger ones within 0.02."""
_EXPORTED = "jit(call)/call_exported/jit(flat)/"
"""What ``jax.export`` and the flat list of arguments put around each name."""
_LEAF = re.compile(r"leaves\[([0-9]{1,6})\]")


def scheduled_allocations(text: str, memory: Any, count: int, arguments: Sequence[str] = ()) -> Allocations:
    """List what is alive at the peak by the schedule; nothing where that misses what the compiler says it needs.

    Args:
        text: The optimised program.
        memory: What ``memory_analysis()`` gave.
        count: How many.
        arguments: Paths of its arguments, where the program has them as a flat list.
    """
    if not text:
        return Allocations(why_not="this backend does not list its allocations")
    try:
        peak = find_peak(read_hlo(text), text.partition("\n")[0])
    except UnreadableScheduleError as error:
        return Allocations(why_not=f"this backend does not list its allocations, and {error}")
    needed = (
        memory.argument_size_in_bytes
        + memory.output_size_in_bytes
        - memory.alias_size_in_bytes
        + memory.temp_size_in_bytes
    )
    if abs(peak.nbytes - needed) > NEAR * needed:
        return Allocations(
            why_not=f"this backend does not list its allocations, and by its schedule {size_text(peak.nbytes)} are alive "
            f"at once, of {size_text(needed)} that it needs"
        )
    found = [_allocation(buffer, arguments) for buffer in peak.alive[:count]]
    return Allocations(largest=tuple(found), why_not="" if found else "the program allocates nothing")


def _allocation(buffer: Buffer, arguments: Sequence[str]) -> Allocation:
    """What lies in a place: what is made there by a line of the project, if anything is."""
    makers = buffer.makers
    made = makers[0] if buffer.kind == "argument" else next((one for one in makers if one.line), makers[0])
    name = made.op_name.removeprefix(_EXPORTED) or made.name
    leaf = _LEAF.fullmatch(name)
    if leaf and int(leaf[1]) < len(arguments):
        name = arguments[int(leaf[1])]
    return Allocation(
        nbytes=buffer.nbytes,
        kind=buffer.kind,
        opcode=made.opcode,
        op_name=name,
        line="" if buffer.kind == "argument" else made.line,
        tenants=len(makers),
        alive_at_peak=True,
        estimated=True,
    )
