"""Donation in vain: a buffer can be reused only by a result with as many elements, each of as many bytes.

JAX warns where no result has the shape, and says nothing where only the dtype differs. The program then needs as much
memory as one without donation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np

from jaxgate.model import Amount, Batch, Case, Claim, Computation, Tolerance, at_least, at_most, cases, equal
from workloads.donation import steps
from workloads.parts import drawing

MARGIN = 4  # pixels that cropping takes off each side


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """A batch of images [images, side, side, 3]."""

    images: int
    side: int

    @property
    def values(self) -> int:
        """Numbers in a batch."""
        return self.images * self.side * self.side * 3


SIZES: dict[Literal["small", "full"], Size] = {"small": Size(images=64, side=32), "full": Size(images=1024, side=224)}


def brightened(images: jax.Array) -> jax.Array:
    """Float images [images, side, side, 3] in the same shape and dtype: the buffer can be reused."""
    return 1.1 * images + 0.1


def normalised(images: jax.Array) -> jax.Array:
    """Images uint8 as float32: one byte becomes four."""
    return (images.astype(jnp.float32) - 127.5) / 127.5


def halved(images: jax.Array) -> jax.Array:
    """Images float32 as bfloat16: four bytes become two."""
    return images.astype(jnp.bfloat16)


def cropped(images: jax.Array) -> jax.Array:
    """Images without their margin: no result has as many elements."""
    return images[:, MARGIN:-MARGIN, MARGIN:-MARGIN]


CHANGES: dict[str, Callable[[jax.Array], jax.Array]] = {
    "in-the-same-shape": brightened,
    "as-float32-for-uint8": normalised,
    "as-bfloat16-for-float32": halved,
    "cropped": cropped,
}
LOST = tuple(name for name in CHANGES if name != "in-the-same-shape")


def preprocessing(size: Size, returned: str) -> Computation:
    """A batch of images, donated to the function that prepares it, against one that is not donated."""
    draw = drawing()
    images = draw((size.images, size.side, size.side, 3))
    if returned == "as-float32-for-uint8":
        images = np.clip(128 + 40 * images, 0, 255).astype(np.uint8)
    change = CHANGES[returned]
    return Computation(
        subject=jax.jit(change, donate_argnums=0),
        reference=jax.jit(change),
        args=(jax.device_put(images),),
        next_args=lambda result, args: (result,) if returned not in LOST else args,
        batch=Batch(argument=0, size=size.images),
        amount=Amount(count=size.images, unit="samples"),
    )


def usable_claims(returned: str) -> tuple[Claim, ...]:
    """What donation of a batch gives where it can be reused, on any hardware."""
    del returned
    return (
        at_least(1, "donated_bytes", of="one", why="the batch is donated at all"),
        equal("aliased_bytes", to="donated_bytes", why="the result takes its buffer"),
        at_most(0.55, "peak_bytes", why="one batch in memory, not two"),
    )


def lost_claims(returned: str) -> tuple[Claim, ...]:
    """What is left of donation where it cannot be reused, on any hardware."""
    del returned
    return (
        at_least(1, "donated_bytes", of="one", why="the batch is donated"),
        equal("lost_bytes", to="donated_bytes", why="and all of it in vain"),
        equal("aliased_bytes", to=0, why="no result takes its buffer"),
        equal("peak_bytes", to="reference", why="such donation saves nothing"),
    )


def greedy_step(size: steps.Size, optimiser: str) -> Computation:
    """A training step that donates its batch too, against one that donates its state only."""
    step = steps.train_step(optimiser)
    return Computation(
        subject=jax.jit(step, donate_argnums=(0, 1, 2)),
        reference=jax.jit(step, donate_argnums=0),
        args=steps.make_inputs(size, optimiser),
        next_args=lambda result, args: (result[0], *args[1:]),
        batch=Batch(argument=1, size=size.batch),
        amount=Amount(count=size.batch, unit="samples"),
        analytic_flops=size.step_flops,
    )


def greedy_claims(optimiser: str) -> tuple[Claim, ...]:
    """What donating the batch too gives: nothing, on any hardware."""
    del optimiser
    return (
        at_least(1, "lost_bytes", of="one", why="no result is as large as the batch"),
        equal("aliased_bytes", to="reference", why="only the state is reused"),
        equal("peak_bytes", to="reference", why="donating the batch too saves nothing"),
        equal("matmul_flops", to="analytic_flops", why="one forward, one backward pass"),
    )


def in_vain(size_bytes: int) -> tuple[Tolerance, ...]:
    """Allow what is lost on purpose, in the largest size; that no more is lost is claimed by each case."""
    return (Tolerance(fact="lost_bytes", absolute=size_bytes, why="this case shows donation that cannot be used"),)


CASES: tuple[Case, ...] = (
    *cases(
        "donation",
        "batch-donated-and-returned-{returned}-vs-copied",
        preprocessing,
        ({"returned": "in-the-same-shape"},),
        usable_claims,
        sizes=SIZES,
    ),
    *cases(
        "donation",
        "batch-donated-and-returned-{returned}-vs-copied",
        preprocessing,
        tuple({"returned": name} for name in LOST),
        lost_claims,
        tolerances=in_vain(4 * SIZES["full"].values),
        sizes=SIZES,
    ),
    *cases(
        "donation",
        "{optimiser}-step-donating-its-batch-too-vs-its-state-only",
        greedy_step,
        ({"optimiser": "sgd"},),
        greedy_claims,
        tolerances=in_vain(steps.SIZES["full"].batch_bytes),
        sizes=steps.SIZES,
    ),
)
