"""remat for the sake of the batch: memory over batch, the largest batch in a budget, throughput at a larger batch.

Memory that nobody needs is no gain. What remat buys is a larger batch on the same device, and what counts in the end
is how many samples a second that batch gets done.
"""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from jaxgate import Batch, Computation, Family, Growth, MaxBatch, claim, grows
from workloads.parts import Extent, Tree, another, descend, squared_error
from workloads.remat.policies import (
    BY_KIND,
    LEARNING_RATE,
    POLICIES,
    TOLERANCES,
    Form,
    Kind,
    Stack,
    amount,
    block,
    make_args,
    remat,
    shaped,
    stack,
    step_flops,
    train_step,
)

CASES = Family("remat")

POLICY = "nothing"

KIND: Kind = "transformer"
FORM: Form = "stacked"
"""Of what is asked of one."""
TIMES = 4


@CASES.workload(
    f"{{kind}}-{FORM}-remat-at-{TIMES}-times-the-batch-vs-plain",
    sweep=({"kind": "mlp"}, {"kind": "transformer"}),
    sizes=BY_KIND,
    tolerances=TOLERANCES,
)
def step_at(sizes: Mapping[Kind, Extent], kind: Kind) -> Computation:
    """A step with remat at a multiple of the batch, against the plain one; its alternative is plain at half that batch."""
    size = sizes[kind]
    batch = TIMES * size.batch
    layer = block(kind, size)
    plain = jax.jit(train_step(stack(FORM, layer)), donate_argnums=0)
    args = make_args(kind, FORM, size, batch)
    return Computation(
        subject=jax.jit(train_step(remat(FORM, layer, POLICY)), donate_argnums=0),
        reference=plain,
        args=args,
        carry=0,
        batch=Batch(argument=1, size=batch),
        amount=amount(kind, size, batch),
        analytic_flops=step_flops(kind, FORM, size, batch, POLICIES[POLICY].recomputed[kind]),
        alternatives=another("plain at half the batch", plain, shaped(args, batch=batch // 2)),
        claims=[
            claim("temp_bytes <= 0.6 * reference", "a block's input is kept, not its inside"),
            claim("temp_bytes <= alternatives", "twice the batch in the same memory"),
            claim("matmul_flops == analytic_flops", "each block's inside is computed twice, its last product once"),
            claim(f"matmul_flops <= {4 / 3} * reference", "at most one forward pass more, beside three"),
        ],
    )


@CASES.workload(f"{KIND}-{FORM}-remat-largest-batch-in-memory-vs-plain", sizes=BY_KIND, tolerances=TOLERANCES)
def largest(sizes: Mapping[Kind, Extent]) -> Computation:
    size = sizes[KIND]
    layer = block(KIND, size)
    args = make_args(KIND, FORM, size, size.batch // 2)
    return Computation(
        subject=jax.jit(train_step(remat(FORM, layer, POLICY)), donate_argnums=0),
        reference=jax.jit(train_step(stack(FORM, layer)), donate_argnums=0),
        args=args,
        carry=0,
        batch=Batch(argument=1, size=size.batch // 2),
        amount=amount(KIND, size, size.batch // 2),
        analytic_flops=step_flops(KIND, FORM, size, size.batch // 2, POLICIES[POLICY].recomputed[KIND]),
        max_batch=MaxBatch(
            budget_bytes=size.budget_bytes,
            args_at=lambda batch: shaped(args, batch=batch),
            step=size.grain,
            limit=size.limit,
        ),
        claims=[
            claim("largest_batch >= 1.3 * reference", "memory that is not kept is room for samples"),
            claim("matmul_flops == analytic_flops", "each block's inside is computed twice, its last product once"),
        ],
    )


def accumulating(network: Stack, parts: int) -> Callable[..., tuple[Tree, jax.Array]]:
    """The same step with gradients summed over parts of the batch: what is done where the batch does not fit."""

    def step(params: Tree, x: jax.Array, y: jax.Array) -> tuple[Tree, jax.Array]:
        def add(total: Any, part: tuple[jax.Array, jax.Array]) -> tuple[Any, None]:
            found = jax.value_and_grad(lambda p: squared_error(network(p, part[0]), part[1]))(params)
            return jax.tree.map(jnp.add, total, found), None

        split = jax.tree.map(lambda a: a.reshape(parts, -1, *a.shape[1:]), (x, y))
        zero = (jnp.zeros(()), jax.tree.map(jnp.zeros_like, params))
        loss, grads = jax.tree.map(lambda total: total / parts, jax.lax.scan(add, zero, split)[0])
        return descend(params, grads, LEARNING_RATE), loss

    return step


@CASES.workload(f"{KIND}-remat-at-a-batch-that-fits-vs-accumulated-halves", sizes=BY_KIND, tolerances=TOLERANCES)
def enlarged(sizes: Mapping[Kind, Extent]) -> Computation:
    """A batch that only remat can hold, in one go, against the plain step over two halves of it."""
    size = sizes[KIND]
    batch = 2 * size.batch
    layer = block(KIND, size)
    args = make_args(KIND, FORM, size, batch)
    return Computation(
        subject=jax.jit(train_step(remat(FORM, layer, POLICY)), donate_argnums=0),
        reference=jax.jit(accumulating(stack(FORM, layer), parts=2), donate_argnums=0),
        args=args,
        carry=0,
        batch=Batch(argument=1, size=batch),
        amount=amount(KIND, size, batch),
        analytic_flops=step_flops(KIND, FORM, size, batch, POLICIES[POLICY].recomputed[KIND]),
        claims=[
            claim("peak_bytes <= reference", "the whole batch with remat needs less than half of it without"),
            claim(f"matmul_flops <= {4 / 3} * reference", "at most one forward pass more, beside three"),
            claim("matmul_flops == analytic_flops", "each block's inside is computed twice, its last product once"),
        ],
    )


@CASES.workload(f"{KIND}-remat-in-a-scan-over-layers-vs-loop", sizes=BY_KIND, tolerances=TOLERANCES)
def looped(sizes: Mapping[Kind, Extent]) -> Computation:
    size = sizes[KIND]
    layer = block(KIND, size)
    unrolled = remat("unrolled", layer, POLICY)

    def one_by_one(params: Tree, x: jax.Array) -> jax.Array:
        return unrolled([jax.tree.map(lambda a, at=at: a[at], params) for at in range(size.layers)], x)

    args = make_args(KIND, FORM, size, size.batch)
    return Computation(
        subject=jax.jit(train_step(remat(FORM, layer, POLICY)), donate_argnums=0),
        reference=jax.jit(train_step(one_by_one), donate_argnums=0),
        args=args,
        carry=0,
        batch=Batch(argument=1, size=size.batch),
        amount=amount(KIND, size, size.batch),
        analytic_flops=step_flops(KIND, FORM, size, size.batch, POLICIES[POLICY].recomputed[KIND]),
        grow=Growth(
            lambda deeper: shaped(args, batch=size.batch, deeper=deeper),
            deeper=(1, 2, 4),
            claims=[grows("stablehlo_ops", "deeper") <= 0],  # scan holds one block, at any depth
        ),
        claims=[
            claim("stablehlo_ops <= 0.7 * reference", "the loop holds every block twice"),
            claim("matmul_flops == analytic_flops", "each block's inside is computed twice, its last product once"),
        ],
    )
