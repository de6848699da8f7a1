"""Donation in vain: a buffer can be reused only by a result with as many elements, each of as many bytes.

JAX warns where no result has the shape, and says nothing where only the dtype differs. The program then needs as much
memory as one without donation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import jax
import jax.numpy as jnp

from jaxgate import Batch, Computation, Family, Tolerance, claim
from workloads.parts import Extent, drawing, sizes

CASES = Family("donation")

SIZES = sizes(images=(64, 1024), side=(32, 224))
"""A batch of images [images, side, side, 3]."""


def values(size: Extent) -> int:
    """Numbers in a batch."""
    return size.images * size.side * size.side * 3


def brightened(images: jax.Array) -> jax.Array:
    """Float images [images, side, side, 3] in the same shape and dtype: the buffer can be reused."""
    return 1.1 * images + 0.1


def halved(images: jax.Array) -> jax.Array:
    """Images float32 as bfloat16: four bytes become two."""
    return images.astype(jnp.bfloat16)


def in_vain(size_bytes: int) -> tuple[Tolerance, ...]:
    """Allow what is lost on purpose, in the largest size; that no more is lost is claimed by each case."""
    return (Tolerance(fact="lost_bytes", absolute=size_bytes, why="this case shows donation that cannot be used"),)


@CASES.workload("batch-donated-and-returned-in-the-same-shape-vs-copied", sizes=SIZES)
def usable(size: Extent) -> Computation:
    """A batch of images whose buffer the result takes, against one that is not donated."""
    return replace(
        preprocessing(size, brightened),
        carry=0,
        claims=[
            claim("donated_bytes >= 1", "the batch is donated at all"),
            claim("aliased_bytes >= donated_bytes", "the result takes its buffer"),
            claim("peak_bytes <= 0.55 * reference", "one batch in memory, not two"),
        ],
    )


@CASES.workload(
    "batch-donated-and-returned-as-bfloat16-for-float32-vs-copied",
    sizes=SIZES,
    tolerances=in_vain(4 * values(SIZES["full"])),
)
def lost(size: Extent) -> Computation:
    """A batch of images whose buffer no result can take, against one that is not donated."""
    return replace(
        preprocessing(size, halved),
        next_args=lambda _, args: args,
        claims=[
            claim("donated_bytes >= 1", "the batch is donated"),
            claim("lost_bytes == donated_bytes", "and all of it in vain"),
            claim("aliased_bytes == 0", "no result takes its buffer"),
            claim("peak_bytes == reference", "such donation saves nothing"),
        ],
    )


def preprocessing(size: Extent, change: Callable[[jax.Array], jax.Array]) -> Computation:
    """A batch of images, donated to the function that prepares it, against one that is not donated."""
    images = drawing()((size.images, size.side, size.side, 3))
    return Computation(
        subject=jax.jit(change, donate_argnums=0),
        reference=jax.jit(change),
        args=(jax.device_put(images),),
        batch=Batch(argument=0, size=size.images),
    )
