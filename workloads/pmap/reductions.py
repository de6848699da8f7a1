"""What replicas send each other: gradients in a narrow type, and figures that travel together.

Widened before they travel gradients take twice the bytes; figures one by one wait for all devices each time.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from jaxgate import Computation, Family, claim
from workloads.parts import Extent, Tree, descend, mlp
from workloads.pmap.replicas import AXIS, DEVICES, line
from workloads.pmap.steps import FLOPS, RATE, REUSED, SIZES, computation, gradients, inputs

CASES = Family("pmap")


def half_gradients(params: Tree, x: jax.Array, y: jax.Array) -> Tree:
    """Gradients in bfloat16, of parameters kept in float32."""
    half = jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), (params, x, y))
    return gradients(*half)[1]


def widen(tree: Tree) -> Tree:
    """Bring a tree back to float32."""
    return jax.tree.map(lambda leaf: leaf.astype(jnp.float32), tree)


def narrow_step(params: Tree, x: jax.Array, y: jax.Array) -> Tree:
    """Average the gradients as they are, in bfloat16, and widen the mean."""
    grads = widen(jax.lax.pmean(half_gradients(params, x, y), AXIS))
    return descend(params, grads, RATE)


def wide_step(params: Tree, x: jax.Array, y: jax.Array) -> Tree:
    """Widen the gradients first: twice as many bytes travel, and say no more."""
    grads = jax.lax.pmean(widen(half_gradients(params, x, y)), AXIS)
    return descend(params, grads, RATE)


def figures(params: Tree, x: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
    """What is watched of one replica's samples, four scalars."""
    error = mlp(params, x) - y
    return (error**2).mean(), jnp.abs(error).mean(), error.mean(), (jnp.abs(error) < 1).mean(dtype=jnp.float32)


def evaluate(params: Tree, x: jax.Array, y: jax.Array) -> jax.Array:
    """All figures travel as one vector, [4]."""
    return jax.lax.pmean(jnp.stack(figures(params, x, y)), AXIS)


def evaluate_apart(params: Tree, x: jax.Array, y: jax.Array) -> jax.Array:
    """Each figure waits for a collective of its own."""
    return jnp.stack([jax.lax.pmean(figure, AXIS) for figure in figures(params, x, y)])


@CASES.workload("step-with-bfloat16-gradients-reduced-vs-widened-first", sizes=SIZES, devices=DEVICES)
def narrow(size: Extent) -> Computation:
    """Gradients that travel in bfloat16 against gradients that are widened before."""
    return computation(
        size,
        jax.pmap(narrow_step, axis_name=AXIS, donate_argnums=0),
        inputs(size, line()),
        reference=jax.pmap(wide_step, axis_name=AXIS),
        rtol=1e-2,
        claims=[
            FLOPS,
            REUSED,
            claim("collective_bytes <= 0.51 * reference", "bfloat16 gradients travel in half the bytes"),
            claim("widened_bytes <= reference", "only the mean is widened"),
        ],
    )


@CASES.workload("metrics-reduced-as-one-vector-vs-one-by-one", sizes=SIZES, devices=DEVICES)
def watched(size: Extent) -> Computation:
    """Figures that travel as one vector against one by one."""
    return computation(
        size,
        jax.pmap(evaluate, axis_name=AXIS),
        inputs(size, line()),
        reference=jax.pmap(evaluate_apart, axis_name=AXIS),
        carry=None,
        claims=[
            claim("matmul_flops == reference", "one forward pass"),
            claim("collectives == 1", "all figures travel together"),
            claim("collectives <= 0.25 * reference", "one by one each of the four waits for all devices"),
        ],
    )
