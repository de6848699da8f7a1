"""Between ``vmap`` and a loop: ``lax.map(batch_size=...)`` for gradients of single examples that are not kept.

Only the norms are wanted (to pick examples, to watch the noise of the gradient). ``vmap`` forms the gradients of all
examples at once, each as large as the parameters; in chunks no more than a chunk of them exists.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from jaxgate import Alternative, Batch, Computation, Family, claim
from workloads.parts import Extent, Tree, sizes
from workloads.vmap.examples import RTOL, Batched, batched, gradient_flops, loss, make_inputs

CASES = Family("vmap")

SIZES = sizes(width=(64, 1024), layers=(2, 4), time=(4, 128), examples=(164, 260))
"""Of both sizes of chunk some examples are left over: a chunk that is not full must not be dropped."""


def gradient_norm(params: Tree, x: jax.Array, y: jax.Array) -> jax.Array:
    """Length of the gradient of one example, a scalar: x and y [time, width]."""
    grads = jax.grad(loss)(params, x, y)
    return jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(grads)))


def chunked(function: Callable[..., jax.Array], chunk: int) -> Batched:
    """So many examples at a time, chunk after chunk in a compiled loop, the rest after it."""
    return lambda params, xs, ys: jax.lax.map(lambda example: function(params, *example), (xs, ys), batch_size=chunk)


@CASES.workload("per-example-gradient-norms-in-chunks-of-{chunk}-lax.map-vs-vmap", sweep=({"chunk": 8},), sizes=SIZES)
def gradient_norms(size: Extent, *, chunk: int) -> Computation:
    """Norms of all examples' gradients, in chunks against all at once."""
    params, xs, ys = make_inputs(size)
    in_chunks = chunked(gradient_norm, chunk)
    more = jax.ShapeDtypeStruct((size.examples + 4 * chunk, *xs.shape[1:]), xs.dtype)
    return Computation(
        subject=jax.jit(in_chunks),
        reference=jax.jit(batched(gradient_norm)),
        args=(params, xs, ys),
        batch=Batch(argument=1, size=size.examples, unit="examples"),
        analytic_flops=gradient_flops(size),
        rtol=RTOL,
        atol=1e-5,
        alternatives={"four more chunks": Alternative(function=in_chunks, args=(params, more, more))},
        claims=[
            claim("temp_bytes <= 0.5 * reference", "a chunk of gradients exists at a time, not all of them"),
            claim("stablehlo_ops == alternatives", "the program does not grow with the number of examples"),
            claim("matmul_flops == analytic_flops", "the same multiplications, each example once"),
        ],
    )
