"""A program without anything of whoever wrote it, and the file that holds two of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

REDUCED_FACTS = (
    "temp_bytes", "xla_flops", "aliased_bytes", "output_bytes", "argument_bytes", "xla_bytes", "transcendentals",
)  # fmt: skip
"""What a compiler says of a program, in the order in which a difference is looked for."""
ABOUT = ("results", "time", *REDUCED_FACTS)
"""What a user may name as what a smaller program is to show."""
Axes = str | tuple[str, ...] | None
"""What one dimension of an array is divided over: an axis of the mesh, several, or none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayOf:
    """An argument or a result."""

    dtype: str  # NumPy's name of its type
    shape: tuple[int, ...]  # its shape, of all devices together
    spec: tuple[Axes, ...] | None = None  # how each dimension is divided; `None` where that is left to the compiler


@dataclass(frozen=True, slots=True, kw_only=True)
class MeshOf:
    """The devices of a program."""

    axes: Mapping[str, int]  # names that mean nothing, each with its size
    kinds: tuple[str, ...]  # of each axis: `Auto`, `Explicit` or `Manual`


@dataclass(frozen=True, slots=True, kw_only=True)
class AnonymousProgram:
    """A program that can be compiled again, and says nothing of its author."""

    payload: bytes  # StableHLO as a portable artifact, readable by the oldest supported line of jax
    inputs: tuple[ArrayOf, ...]  # its arguments; those that it does not use are left out
    # which argument of the case each of them is: of two sides, the same place gets the same numbers
    places: tuple[int, ...]
    outputs: tuple[ArrayOf, ...]  # its results
    donated: tuple[int, ...]  # which of `inputs` it may reuse
    options: Mapping[str, str]  # compiler options
    devices: int  # how many it runs on
    mesh: MeshOf | None  # how they are arranged; `None` on one device
    convention: int  # version of `jax.export`'s calling convention
    seeded: int  # how many of its constants were the user's numbers, and are drawn from a seed instead


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduced:
    """The smallest programs that were found."""

    baseline: AnonymousProgram  # the baseline's side
    now: AnonymousProgram  # Today's; the same program where only the environment or the compiler's options differ
    before: int  # operations at first
    after: int  # operations that are left
    tries: int  # programs that were compiled for it
    took_s: float  # seconds
    shows: str  # what they show, with numbers
    over: bool  # whether time ran out, or somebody interrupted it
    code: str  # Today's side as a function of JAX that shows it, too; empty where it cannot be written
    versions: tuple[str, str]  # of jax, on the baseline's side and on today's
