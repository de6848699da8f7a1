"""A target whose compiler is everywhere: this process's own, for the CPU. All else of the way is the real one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax

from jaxgate.ext.targets.compiled import TargetExecutable, placement
from jaxgate.ext.targets.model import Target
from jaxgate.ext.targets.topology import Topology
from jaxgate.model.program import StoredProgram
from jaxgate.observe.program.export import export_whole
from jaxgate.observe.trace.lowering import Lowered


class CpuTarget(Target):
    """Stands for a TPU, and is compiled for by the compiler of CPUs."""

    __slots__ = ()

    @property
    def platform(self) -> str:
        """What the programs are lowered for."""
        return "cpu"

    @property
    def lowering(self) -> str:
        """What the programs are lowered for."""
        return "cpu"


@dataclass
class CompilerHere:
    """Compiles in this process; what it answers goes through JSON, as between two."""

    asked_for: Target
    versions: Mapping[str, str] = None  # type: ignore[assignment]
    closed: bool = False
    counts: bool = True

    def __post_init__(self) -> None:
        self.target = CpuTarget(chip=self.asked_for.chip, topology=self.asked_for.topology)
        self.versions = self.versions or {"backend": "a compiler"}
        self.compiled: list[str] = []

    def compile(self, lowered: Lowered) -> TargetExecutable:
        """See ``TargetProcess``."""
        self.compiled.append(lowered.role)
        return self._compile(export_whole(lowered), lowered, lowered.donated, dict(lowered.options or ()))

    def recompile(self, program: StoredProgram, lowered: Lowered) -> TargetExecutable:
        """See ``TargetProcess``."""
        self.compiled.append("baseline")
        return self._compile(program.content, lowered, program.record.donated, program.record.options)

    def close(self) -> None:
        """See ``TargetProcess``."""
        self.closed = True

    def _compile(self, content: bytes, lowered: Lowered, donated: Any, options: Any) -> TargetExecutable:
        placed = placement(lowered)
        topology = Topology(self.target, jax.devices("cpu")[: self.target.devices])
        found = topology.compile(
            content, donated=donated, options=options, positions=placed.positions, kinds=placed.kinds
        )
        if not self.counts:  # as of a program that calls a library
            found["cost"] = {}
        return TargetExecutable(json.loads(json.dumps(found)), placed.devices)
