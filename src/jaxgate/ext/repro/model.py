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
    """An argument or a result.

    Attributes:
        dtype: NumPy's name of its type.
        shape: Its shape, of all devices together.
        spec: How each dimension is divided; ``None`` where that is left to the compiler.
    """

    dtype: str
    shape: tuple[int, ...]
    spec: tuple[Axes, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MeshOf:
    """The devices of a program.

    Attributes:
        axes: Names that mean nothing, each with its size.
        kinds: Of each axis: ``Auto``, ``Explicit`` or ``Manual``.
    """

    axes: Mapping[str, int]
    kinds: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnonymousProgram:
    """A program that can be compiled again, and says nothing of its author.

    Attributes:
        payload: StableHLO as a portable artifact, readable by the oldest supported line of jax.
        inputs: Its arguments; those that it does not use are left out.
        places: Which argument of the case each of them is: of two sides, the same place gets the same numbers.
        outputs: Its results.
        donated: Which of ``inputs`` it may reuse.
        options: Compiler options.
        devices: How many it runs on.
        mesh: How they are arranged; ``None`` on one device.
        convention: Version of ``jax.export``'s calling convention.
        seeded: How many of its constants were the user's numbers, and are drawn from a seed instead.
    """

    payload: bytes
    inputs: tuple[ArrayOf, ...]
    places: tuple[int, ...]
    outputs: tuple[ArrayOf, ...]
    donated: tuple[int, ...]
    options: Mapping[str, str]
    devices: int
    mesh: MeshOf | None
    convention: int
    seeded: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduced:
    """The smallest programs that were found.

    Attributes:
        baseline: The baseline's side.
        now: Today's; the same program where only the environment or the compiler's options differ.
        before: Operations at first.
        after: Operations that are left.
        tries: Programs that were compiled for it.
        took_s: Seconds.
        shows: What they show, with numbers.
        over: Whether time ran out, or somebody interrupted it.
        code: Today's side as a function of JAX that shows it, too; empty where it cannot be written.
        versions: Of jax, on the baseline's side and on today's.
    """

    baseline: AnonymousProgram
    now: AnonymousProgram
    before: int
    after: int
    tries: int
    took_s: float
    shows: str
    over: bool
    code: str
    versions: tuple[str, str]
