"""What replicas send each other: gradients in a narrow type, and figures that travel together.

Widened before they travel gradients take twice the bytes; figures one by one wait for all devices each time.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from jaxgate.model import Case, Claim, Computation, at_most, cases, equal
from workloads.parts import Tree, descend, mlp
from workloads.pmap.replicas import AXIS, DEVICES, line
from workloads.pmap.steps import FLOPS, LAYERS, RATE, REUSED, SIZES, Extent, computation, gradients, inputs


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


def narrow(size: Extent) -> Computation:
    """Gradients that travel in bfloat16 against gradients that are widened before."""
    return computation(
        size,
        jax.pmap(narrow_step, axis_name=AXIS, donate_argnums=0),
        inputs(size, line()),
        reference=jax.pmap(wide_step, axis_name=AXIS),
        next_args=lambda result, old: (result, *old[1:]),
        rtol=1e-2,
        atol=1e-3,
    )


def watched(size: Extent) -> Computation:
    """Figures that travel as one vector against one by one."""
    return computation(
        size,
        jax.pmap(evaluate, axis_name=AXIS),
        inputs(size, line()),
        reference=jax.pmap(evaluate_apart, axis_name=AXIS),
        next_args=None,
        analytic_flops=LAYERS * 2 * DEVICES * size.samples * size.width**2,
    )


def narrow_claims() -> tuple[Claim, ...]:
    """What travelling in bfloat16 must save."""
    return (
        FLOPS,
        REUSED,
        at_most(0.51, "collective_bytes", why="bfloat16 gradients travel in half the bytes"),
        at_most(1.0, "widened_bytes", why="only the mean is widened"),
    )


def watched_claims() -> tuple[Claim, ...]:
    """What one vector must save."""
    return (
        equal("matmul_flops", to="analytic_flops", why="one forward pass"),
        equal("collectives", to=1, why="all figures travel together"),
        at_most(0.25, "collectives", why="one by one each of the four waits for all devices"),
    )


CASES: tuple[Case, ...] = (
    *cases(
        "pmap",
        "step-with-bfloat16-gradients-reduced-vs-widened-first",
        narrow,
        ({},),
        narrow_claims,
        sizes=SIZES,
        devices=DEVICES,
    ),
    *cases(
        "pmap",
        "metrics-reduced-as-one-vector-vs-one-by-one",
        watched,
        ({},),
        watched_claims,
        sizes=SIZES,
        devices=DEVICES,
    ),
)
