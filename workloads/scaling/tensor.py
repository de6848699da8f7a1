"""Tensor parallel, strong: each device holds a part of every kernel, the same batch is on all of them.

The first kernel of a pair is spread by columns, the second by rows, as in Megatron-LM (Shoeybi et al., 2019): hidden
units never travel, and each pair sums its results once forward and once backward.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from jaxgate import Alternative, Amount, Batch, Claim, Computation, Family, claim
from workloads.parts import Extent, Tree, fused_on_gpu, grid, sizes
from workloads.pjit.meshes import TRAINED, gathered, shapes, shardings
from workloads.scaling.network import RTOL, Layers, make_numbers, on_devices, one_by_one, train_step

CASES = Family("scaling")

PAIRS = 2
SIZES = sizes(samples=(64, 4096), width=(64, 4096), hidden=(256, 16384), pairs=PAIRS)
"""As many samples as features and four times the hidden units in both: the claims on what is sent are shares."""

BY_COLUMNS, BY_ROWS = P(None, "model"), P("model")
KERNELS = [{"up": BY_COLUMNS, "down": BY_ROWS}] * PAIRS
STATE = {"params": KERNELS, "momentum": KERNELS}
SAMPLES = P()
FEWEST = 2  # devices that share a state


def pair_in_parts(mesh: Mesh, across: str | None = None) -> Layers:
    """A pair of layers of which each device has some hidden units: x [batch, width] to [batch, width]."""
    units, everywhere = shardings(mesh, (P(across, "model"), P(across) if across else SAMPLES))

    def pair(kernels: Tree, x: jax.Array) -> jax.Array:
        hidden = jax.lax.with_sharding_constraint(jnp.tanh(x @ kernels["up"]), units)
        return x + jax.lax.with_sharding_constraint(hidden @ kernels["down"], everywhere)

    return pair


def compiled(mesh: Mesh, across: str | None = None) -> Callable[..., Any]:
    """The step; all samples are on each device, or spread across another axis of the mesh."""
    network = one_by_one(pair_in_parts(mesh, across))
    return jax.jit(train_step(network), donate_argnums=0, out_shardings=shardings(mesh, (STATE, P())))


@on_devices(CASES, "tensor-parallel-step-strong-on-{devices}-vs-gathered", (FEWEST, 8), SIZES)
def tensor_parallel(size: Extent, devices: int) -> Computation:
    """A part of each kernel on each device, against all of them on each; the alternative holds everything on one."""
    mesh, alone = grid(model=devices), grid(model=1)
    numbers = make_numbers(size, size.samples)
    layout = shardings(mesh, (STATE, SAMPLES, SAMPLES))
    return Computation(
        subject=compiled(mesh),
        reference=gathered(train_step(), mesh),
        args=jax.device_put(numbers, layout),
        carry=0,
        batch=Batch(argument=1, size=size.samples),
        amount=Amount(count=size.samples, unit="samples", series="tensor-parallel, strong"),
        alternatives={
            "one-device": Alternative(
                function=jax.jit(train_step(), donate_argnums=0),
                args=shapes(numbers, shardings(alone, (STATE, SAMPLES, SAMPLES))),
            )
        },
        rtol=RTOL,
        claims=claims(devices),
    )


def claims(devices: int) -> tuple[Claim, ...]:
    """What more devices must give to the same network, on any hardware."""
    # Sums of [batch, width], one forward and one backward for each pair, but for the inputs' own gradient; over a
    # device's part of a state of 16 [width, width] for each pair.
    share = (2 * PAIRS - 1) / (16 * PAIRS / devices)
    return (
        *TRAINED,
        claim(f"xla_flops <= {1.2 / devices} * alternatives", "a device works on its hidden units, none of them twice"),
        claim(
            f"argument_bytes <= {1 / devices + 0.1} * alternatives", "and holds their kernels alone, beside the batch"
        ),
        claim(
            f"peak_bytes <= {1 / devices + 0.25} * alternatives",
            "and their results, beside those that all have",
            known_break=fused_on_gpu() if devices == FEWEST else None,
        ),
        claim(
            f"collective_bytes <= {1.05 * share} * donated_bytes",
            "results are summed once for each pair and pass; kernels and hidden units do not travel",
        ),
    )
