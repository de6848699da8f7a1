"""Kernels by hand: several operations in one pass over memory, written in Pallas.

A norm reads its rows once and writes them once; as separate operations each row is written and read in between. A product
with its bias and its activation is one kernel over blocks of rows and columns, whose sum stays on the chip in float32. On
CPU Pallas is interpreted: that shows what a kernel computes, how many products it takes and how often its body runs, and
nothing of its speed; for a target it is compiled. Mistakes it catches: a block that is computed for every other one, too
(`matmul_flops`), sums in few bits (a result that is wrong), a grid that leaves rows out. Sources: JAX's pages on Pallas.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from jaxgate import Batch, Computation, Family, Growth, claim, grows
from workloads.parts import ONE_PROGRAM, Extent, drawing, over_samples, sizes

CASES = Family("kernels")

COLUMNS = 128
"""Of a block: as many as a TPU takes."""

SIZES = sizes(rows=(128, 8192), width=(256, 2048), block=(32, 128), rtol=(1e-3, 2e-2))
"""Rows of ``width`` numbers, and rows of a block."""


def kernel_call(body: Callable[..., None], *arrays: jax.Array, **about: Any) -> jax.Array:
    """Run a kernel: by Triton or Mosaic where there is one, interpreted on CPU."""
    call = partial(pl.pallas_call, body, **about)
    called: jax.Array = jax.lax.platform_dependent(
        *arrays, cpu=call(interpret=True), tpu=call(), default=call(compiler_params=triton.CompilerParams())
    )
    return called


def normed(x_ref: Any, scale_ref: Any, out_ref: Any) -> None:
    """Rows scaled to a mean square of one."""
    x = x_ref[...]
    out_ref[...] = x * jax.lax.rsqrt((x**2).mean(-1, keepdims=True) + 1e-6) * scale_ref[...]


@CASES.workload("rms-norm-by-a-pallas-kernel-vs-by-hand", sizes=SIZES)
def norm(size: Extent) -> Computation:
    def subject(x: jax.Array, scale: jax.Array) -> jax.Array:
        rows = pl.BlockSpec((size.block, size.width), lambda block: (block, 0))
        every = pl.BlockSpec((1, size.width), lambda _: (0, 0))
        out = jax.ShapeDtypeStruct(x.shape, x.dtype)
        grid = (len(x) // size.block,)
        return kernel_call(normed, x, scale, grid=grid, in_specs=[rows, every], out_specs=rows, out_shape=out)

    def by_hand(x: jax.Array, scale: jax.Array) -> jax.Array:
        return x * jax.lax.rsqrt((x**2).mean(-1, keepdims=True) + 1e-6) * scale

    draw = drawing()
    args = jax.device_put((draw((size.rows, size.width)), draw((1, size.width))))
    return Computation(
        subject=jax.jit(subject),
        reference=jax.jit(by_hand),
        args=args,
        grow=over_samples(args, 0, claims=[ONE_PROGRAM]),
        batch=Batch(argument=0, size=size.rows, unit="rows"),
        rtol=1e-4,
        claims=[
            claim("matmul_flops == 0", "nothing is multiplied but element by element"),
            claim("widened_bytes == 0", "no row is copied into a wider type"),
        ],
    )


def layer(x_ref: Any, kernel_ref: Any, bias_ref: Any, out_ref: Any) -> None:
    """One block of a layer: rows [block, width] by columns [width, COLUMNS], summed in float32."""
    found = jnp.dot(x_ref[...], kernel_ref[...], preferred_element_type=jnp.float32)
    out_ref[...] = jax.nn.gelu(found + bias_ref[...]).astype(out_ref.dtype)


@CASES.workload("product-bias-and-gelu-in-one-pallas-kernel-vs-by-hand", sizes=SIZES)
def fused(size: Extent) -> Computation:
    def subject(x: jax.Array, kernel: jax.Array, bias: jax.Array) -> jax.Array:
        return kernel_call(
            layer, x, kernel, bias,
            grid=(len(x) // size.block, size.width // COLUMNS),
            in_specs=[
                pl.BlockSpec((size.block, size.width), lambda row, _: (row, 0)),
                pl.BlockSpec((size.width, COLUMNS), lambda _, column: (0, column)),
                pl.BlockSpec((1, COLUMNS), lambda _, column: (0, column)),
            ],
            out_specs=pl.BlockSpec((size.block, COLUMNS), lambda row, column: (row, column)),
            out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        )  # fmt: skip

    def by_hand(x: jax.Array, kernel: jax.Array, bias: jax.Array) -> jax.Array:
        return jax.nn.gelu(x @ kernel + bias)

    draw = drawing()
    args = (draw((size.rows, size.width)), size.width**-0.5 * draw((size.width, size.width)), draw((1, size.width)))
    args = jax.device_put(args)

    def longer(rows: int) -> tuple[Any, ...]:
        return (jax.ShapeDtypeStruct((rows, size.width), jnp.float32), *args[1:])

    return Computation(
        subject=jax.jit(subject),
        reference=jax.jit(by_hand),
        args=args,
        grow=Growth(
            longer, rows=[size.rows // 4, size.rows // 2, size.rows], claims=[grows("matmul_flops", "rows") <= 1]
        ),
        batch=Batch(argument=0, size=size.rows, unit="rows"),
        rtol=size.rtol,
        atol=size.rtol,
        claims=[claim("matmul_flops == reference", "the same products on both sides")],
    )
