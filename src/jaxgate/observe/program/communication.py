"""What a program moves between devices: what it asks for itself, and what the partitioner adds.

Collectives that the program writes are counted as traced, before a compiler combines them; those that the
partitioner inserts are read from the optimised program, where alone they exist.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax

from jaxgate.model.measurement import EACH_TURN
from jaxgate.observe.compat import input_shardings, output_shardings
from jaxgate.observe.hlo.collectives import Collective, read_collectives
from jaxgate.observe.hlo.replica_groups import axes_of
from jaxgate.observe.source_lines import places
from jaxgate.observe.trace.stages import Program


@dataclass(frozen=True, slots=True, kw_only=True)
class Communication:
    """The communication of one call."""

    counts: Mapping[str, int]  # how often each collective runs, by kind, array and mesh axes
    nbytes: int | None  # what one device hands over; `None` if the optimised program could not be read
    lines: Mapping[str, str] = field(default_factory=dict)  # source lines by the same labels
    unread: str = ""  # why it is unknown; empty if it is known

    @property
    def count(self) -> int | None:
        """All executions; ``None`` if unknown."""
        return None if self.nbytes is None else sum(self.counts.values())

    @property
    def unknown(self) -> dict[str, str]:
        """The facts that are unknown, each with the reason."""
        return dict.fromkeys(("collectives", "collective_bytes"), self.unread) if self.unread else {}


def read_communication(program: Program, devices: Sequence[jax.Device]) -> Communication:
    """Count the collectives of a program on its devices; on one device nothing can have been inserted."""
    work = program.work
    if len(devices) == 1:
        return Communication(counts=work.collectives, nbytes=work.collective_bytes)
    found = read_collectives(program.hlo)
    if found.unread:
        more = f" and {len(found.unread) - 1} more lines" if len(found.unread) > 1 else ""
        reason = f"the optimised program has what is not understood: {found.unread[0]}{more}"
        return Communication(counts=work.collectives, nbytes=None, unread=reason)
    mesh = _mesh(program.executable)
    counts, nbytes = Counter(work.collectives), work.collective_bytes
    lines: defaultdict[str, list[str]] = defaultdict(list)
    for collective in found.inserted:
        label = _label(collective, mesh)
        counts[label] += collective.runs.times
        nbytes += collective.nbytes * collective.runs.times
        lines[label].append(collective.line)
    named = {label: text for label, found in lines.items() if (text := places(found))}
    return Communication(counts=dict(sorted(counts.items())), nbytes=nbytes, lines=named)


def _label(collective: Collective, mesh: Any) -> str:
    axes = ""
    if mesh is not None and collective.groups:
        axes = axes_of(collective.groups, mesh.axis_names, tuple(mesh.shape.values()))
    size = f"in groups of {len(collective.groups[0])}" if collective.groups else "between devices"
    turns = EACH_TURN if collective.runs.unknown_trips else ""
    return f"{collective.kind} {collective.shape} {f'over {axes}' if axes else size} (inserted){turns}"


def _mesh(executable: Any) -> Any:
    """The mesh that the arguments or results are spread over; ``None`` if they name none."""
    for sharding in (*input_shardings(executable), *output_shardings(executable)):
        mesh = getattr(sharding, "mesh", None)
        if mesh is not None and mesh.size > 1:
            return mesh
    return None
