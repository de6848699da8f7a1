"""The compiler of a target, which compiles for a topology that is not attached: ``python -m jaxgate.ext.targets.topology tpu:v5e:2x4``.

It may crash, hang, print and take memory in a process of its own; whoever asks goes on.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax import export
from jax.experimental import topologies
from jax.sharding import SingleDeviceSharding

from jaxgate.ext.targets.compiled import describe_sharding, reused_arguments
from jaxgate.ext.targets.compilers import COMPILERS, topology_of
from jaxgate.ext.targets.model import GPUS, Target
from jaxgate.observe.compat import cost_of_text, input_shardings, output_shardings
from jaxgate.observe.errors import describe
from jaxgate.observe.program.export import NotReplayableError, compile_exported, spread


class NoTargetError(Exception):
    """This installation cannot compile for a target; the text says why, and what to install."""


@dataclass(frozen=True, slots=True)
class Topology:
    """Devices that are not there."""

    target: Target  # which they are
    devices: Sequence[Any]  # for their compiler, in JAX's order

    @property
    def version(self) -> str:
        """The version of the compiler, in one line."""
        return " ".join(str(self.devices[0].client.platform_version).split())

    def compile(
        self,
        content: bytes,
        *,
        donated: Sequence[int],
        options: Mapping[str, str],
        positions: Sequence[int],
        kinds: Sequence[str | None],
    ) -> dict[str, Any]:
        """Compile a program, and read all that is known of it without a call; the answer is JSON.

        ``content`` is what ``jax.export`` serialises, ``donated`` are positions of arguments. ``positions`` are the program's
        devices among the target's, in the order of its mesh. ``kinds`` of memory are ``None`` for the usual one.

        Raises:
            NotReplayableError: If it does not fit the target or its compiler refuses it.
        """
        exported = export.deserialize(bytearray(content))
        if self.target.lowering not in exported.platforms:
            platforms = ", ".join(exported.platforms)
            raise NotReplayableError(f"it was exported for {platforms}, this is {self.target.lowering}")
        if exported.nr_devices > len(self.devices):
            raise NotReplayableError(f"it needs {exported.nr_devices} devices, {self.target} has {len(self.devices)}")
        compiled = compile_exported(
            exported, self._structs(exported, positions, kinds), donated=donated, options=options
        )
        memory, text = compiled.memory_analysis(), compiled.as_text() or ""
        self._refuse_too_large(memory)
        numbers = {name: getattr(memory, name) for name in dir(memory) if name.endswith(("_in_bytes", "_bytes"))}
        return {
            "memory": {name: value for name, value in numbers.items() if isinstance(value, int)},
            "cost": {name: float(value) for name, value in (compiled.cost_analysis() or cost_of_text(text)).items()},
            "text": text,
            "reused": reused_arguments(text, exported.module_kept_var_idx),
            "inputs": [
                None if sharding is None else describe_sharding(sharding, aval.shape)
                for sharding, aval in zip(input_shardings(compiled), exported.in_avals, strict=True)
            ],
            "outputs": [
                describe_sharding(sharding, aval.shape)
                for sharding, aval in zip(output_shardings(compiled), exported.out_avals, strict=True)
            ],
        }

    def _refuse_too_large(self, memory: Any) -> None:
        """Refuse what the device's memory does not hold: the compiler of GPUs does not."""
        if self.target.chip not in GPUS:
            return
        limit = self.target.memory_bytes
        needed = (
            memory.argument_size_in_bytes
            + memory.output_size_in_bytes
            - memory.alias_size_in_bytes
            + memory.temp_size_in_bytes
        )
        if needed > limit:
            raise NotReplayableError(f"RESOURCE_EXHAUSTED: Used {needed}B of {limit}B memory")

    def _structs(self, exported: Any, positions: Sequence[int], kinds: Sequence[str | None]) -> list[Any]:
        shardings: Sequence[Any]
        if exported.nr_devices == 1:
            device = self.devices[positions[0] if positions else 0]
            shardings = [SingleDeviceSharding(device, memory_kind=kind) for kind in kinds]
        else:
            shardings = spread(exported, np.array([self.devices[place] for place in positions]))
        return [
            jax.ShapeDtypeStruct(aval.shape, aval.dtype, sharding=sharding, weak_type=aval.weak_type)
            for aval, sharding in zip(exported.in_avals, shardings, strict=True)
        ]


def find_topology(target: Target) -> Topology:
    """Ask the compiler of a target for its devices; its variables must have been set before JAX was imported.

    Raises:
        NoTargetError: If it is not installed, or knows no such topology.
    """
    name, options = topology_of(target)
    try:
        found = topologies.get_topology_desc(name, platform=target.lowering, **options)
    except Exception as error:
        text = (str(error).strip().splitlines() or [type(error).__name__])[0]
        extra = COMPILERS[target.platform].extra
        raise NoTargetError(
            f"{target} cannot be compiled for: {text}; its compiler comes with: pip install 'jaxgate[{extra}]'"
        ) from error
    return Topology(target, found.devices)


def main(name: str) -> None:
    """Compile what is asked for, until nobody asks any more."""
    sys.stdout, answers = sys.stderr, sys.stdout  # what a library prints must not look like an answer

    def answer(reply: Mapping[str, Any]) -> None:
        answers.write(json.dumps(reply) + "\n")
        answers.flush()

    try:
        topology = find_topology(Target.parse(name))
    except (NoTargetError, ValueError) as error:
        answer({"problem": str(error)})
        return
    answer({"version": topology.version, "devices": len(topology.devices)})
    for line in sys.stdin:
        answer(_reply(topology, json.loads(line)))


def _reply(topology: Topology, question: Mapping[str, Any]) -> dict[str, Any]:
    """What is known of a program; or ``refused``, in the compiler's own words."""
    try:
        return topology.compile(
            base64.b64decode(question["content"]),
            donated=question["donated"],
            options=question["options"],
            positions=question["positions"],
            kinds=question["kinds"],
        )
    except NotReplayableError as error:
        return {"refused": str(error.__cause__ or error)}
    except Exception as error:  # noqa: BLE001 - whoever asked shows it
        return {"refused": describe(error)}


if __name__ == "__main__":
    main(sys.argv[1])
