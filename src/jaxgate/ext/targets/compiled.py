"""What one process tells another of a program that it compiled: its facts, its text, and how its arrays are spread."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

from jaxgate.observe.compat import lowered_devices
from jaxgate.observe.program.export import NotReplayableError, split_call
from jaxgate.observe.trace.lowering import Lowered

_ALIASES = re.compile(r"input_output_alias=\{((?:[^{}]|\{[^{}]*\})*)\}")
_ALIAS = re.compile(r"\{[\d, ]*\}: \((\d+), ")


@dataclass(frozen=True, slots=True)
class TargetExecutable:
    """A program compiled for a target: what is read of a ``jax.stages.Compiled``, without calls.

    Its shardings are on the devices of this process that stand for those of the target.
    """

    found: Mapping[str, Any]  # what `Topology.compile` answered
    devices: Sequence[jax.Device]  # devices of this process, in the order of the program's mesh

    def memory_analysis(self) -> Any:
        """Bytes by name, as JAX gives them."""
        return SimpleNamespace(**self.found["memory"])

    def cost_analysis(self) -> dict[str, float]:
        """FLOPs and bytes, as JAX gives them."""
        return dict(self.found["cost"])

    def as_text(self) -> str:
        """The optimised program."""
        return str(self.found["text"])

    @property
    def reused(self) -> tuple[int, ...]:
        """Positions of the arguments whose buffers results take; tiles make ``aliased_bytes`` larger than these are."""
        return tuple(self.found["reused"])

    @property
    def in_tree(self) -> Any:
        """The tree of its arguments: a list."""
        return jax.tree.structure([0] * len(self.found["inputs"]))

    @property
    def out_tree(self) -> Any:
        """The tree of its results: a list."""
        return jax.tree.structure([0] * len(self.found["outputs"]))

    @property
    def input_shardings(self) -> list[Any]:
        """How each argument is spread; ``None`` for one that it does not use."""
        return [None if each is None else self._sharding(each) for each in self.found["inputs"]]

    @property
    def output_shardings(self) -> list[Any]:
        """How each result is spread."""
        return [self._sharding(each) for each in self.found["outputs"]]

    def _sharding(self, described: Mapping[str, Any]) -> Any:
        devices = np.array(self.devices)
        if "part" in described:
            return _Part(tuple(described["part"]), frozenset(self.devices))
        if "axes" not in described:
            return SingleDeviceSharding(devices.flat[0])
        names, sizes = zip(*described["axes"], strict=True)
        spec = PartitionSpec(*(tuple(each) if isinstance(each, list) else each for each in described["spec"]))
        return NamedSharding(Mesh(devices.reshape(sizes), names), spec)


@dataclass(frozen=True, slots=True)
class _Part:
    """A sharding of which only the part on one device is known."""

    part: tuple[int, ...]
    device_set: frozenset[Any]

    def shard_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The part on one device."""
        del shape
        return self.part

    def is_equivalent_to(self, other: Any, ndim: int) -> bool:
        """Unknown, so never."""
        del other, ndim
        return False


def describe_sharding(sharding: Any, shape: tuple[int, ...]) -> dict[str, Any]:
    """A sharding as JSON: its mesh and spec, one device, or else the part of an array that is on one device."""
    if isinstance(sharding, NamedSharding) and sharding.mesh.size > 1:
        spec = [list(each) if isinstance(each, tuple) else each for each in sharding.spec]
        return {"axes": list(map(list, sharding.mesh.shape.items())), "spec": spec}
    if len(sharding.device_set) == 1:
        return {}
    return {"part": list(sharding.shard_shape(shape))}


def reused_arguments(text: str, kept: Sequence[int]) -> list[int]:
    """Which arguments a result takes the buffer of, by the head of an optimised program.

    ``kept`` are the function's arguments that the program takes.
    """
    head = text.partition("\n")[0]
    found = _ALIASES.search(head)
    return sorted(kept[int(each[1])] for each in _ALIAS.finditer(found[1])) if found else []


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a function's program lies."""

    devices: tuple[jax.Device, ...]  # devices of this process, in the order of its mesh
    positions: list[int]  # their positions among all
    kinds: list[str | None]  # the kind of memory of each argument; `None` for the usual one


def placement(lowered: Lowered) -> Placement:
    """Read where a function's program lies.

    Raises:
        NotReplayableError: If its arguments cannot be distinguished from the static ones, or its devices are not known.
    """
    devices = lowered_devices(lowered.stage)
    if not devices:
        raise NotReplayableError("this release of jax does not name the devices of a program")
    positions = {device: place for place, device in enumerate(jax.devices(devices[0].platform))}
    leaves, _ = split_call(lowered, lowered.call)
    return Placement(
        devices=devices, positions=[positions[device] for device in devices], kinds=[_kind(leaf) for leaf in leaves]
    )


def _kind(leaf: Any) -> str | None:
    """The kind of memory that somebody chose for an array: ``pinned_host``."""
    sharding = getattr(leaf, "sharding", None)
    kind = getattr(sharding, "memory_kind", None)
    return kind if kind == "pinned_host" else None
