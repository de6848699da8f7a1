"""remat by policy: what a block keeps for its gradient, and what it computes again.

``jax.checkpoint`` around each block keeps the block's input and recomputes the rest; a policy says what is kept
besides. Memory must fall, products are recomputed as far as the policy says, and results stay the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
from jax import checkpoint_policies as policies

from jaxgate import Amount, Batch, Claim, Computation, Family, KnownBreak, claim
from workloads.parts import Tree, descend, squared_error
from workloads.remat.blocks import (
    BY_KIND,
    TOLERANCES,
    Block,
    Form,
    Kind,
    Sizes,
    Stack,
    block,
    make_args,
    stack,
    step_flops,
)

CASES = Family("remat")

LEARNING_RATE = 0.05

UNDONE = KnownBreak(
    jax="<0.12",
    platform="cpu",
    since="2026-11-21",
    why="XLA merges an unrolled recomputation with the forward pass, or does it right there: everything is kept",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What is kept of a block besides its input."""

    saves: Callable[..., Any] | None  # tells `jax.checkpoint` which values are kept
    recomputed: dict[Kind, tuple[str, ...]]  # products that each kind of block does a second time
    kept: float  # share of the plain step's temporaries that it may need


ATTENTION = ("query", "key", "value", "scores", "weighted")
"""Products that lead to the value named ``attended``; the last one, ``out``, makes it."""

# The last product of a block is never needed again: its result is no operand of anything in the block.
POLICIES = {
    "nothing": Policy(saves=None, recomputed={"mlp": ("up",), "transformer": (*ATTENTION, "out", "up")}, kept=0.6),
    "dots": Policy(saves=policies.dots_saveable, recomputed={"mlp": (), "transformer": ()}, kept=0.8),
    "dots-without-batch": Policy(
        saves=policies.dots_with_no_batch_dims_saveable,
        recomputed={"mlp": (), "transformer": ("scores", "weighted")},
        kept=0.7,
    ),
    "names": Policy(
        saves=policies.save_only_these_names("attended", "hidden"),
        recomputed={"mlp": (), "transformer": ATTENTION},
        kept=0.7,
    ),
    "everything": Policy(saves=policies.everything_saveable, recomputed={"mlp": (), "transformer": ()}, kept=1.0),
}


def remat(form: Form, layer: Block, policy: str) -> Stack:
    """A stack of which each block is recomputed on the way back."""
    # A scan keeps its forward and its backward pass apart by itself; elsewhere the compiler must be kept from
    # merging the recomputation with the first computation.
    again = jax.checkpoint(layer, policy=POLICIES[policy].saves, prevent_cse=form == "unrolled")
    return stack(form, again)


def train_step(network: Stack) -> Callable[..., tuple[Tree, jax.Array]]:
    """One step of gradient descent, parameters in and out."""

    def step(params: Tree, x: jax.Array, y: jax.Array) -> tuple[Tree, jax.Array]:
        loss, grads = jax.value_and_grad(lambda p: squared_error(network(p, x), y))(params)
        return descend(params, grads, LEARNING_RATE), loss

    return step


def amount(kind: Kind, sizes: Sizes, batch: int) -> Amount:
    """What a step gets done."""
    return Amount(count=batch * sizes.time, unit="samples" if kind == "mlp" else "tokens")


SWEEP: tuple[dict[str, Any], ...] = tuple(
    {"kind": kind, "form": form, "policy": policy}
    for kind, form, policies_of in (
        ("mlp", "unrolled", {"nothing"}),
        ("mlp", "stacked", {"nothing", "dots", "names", "everything"}),
        ("transformer", "unrolled", {"nothing"}),
        ("transformer", "stacked", {"nothing", "dots-without-batch", "names"}),
    )
    for policy in POLICIES
    if policy in policies_of
)


@CASES.workload("{kind}-{form}-remat-that-saves-{policy}-vs-plain", sweep=SWEEP, sizes=BY_KIND, tolerances=TOLERANCES)
def policy_step(sizes: Mapping[Kind, Sizes], kind: Kind, form: Form, policy: str) -> Computation:
    """A training step with remat in each block, against the plain one."""
    size = sizes[kind]
    layer = block(kind, size)
    return Computation(
        subject=jax.jit(train_step(remat(form, layer, policy)), donate_argnums=0),
        reference=jax.jit(train_step(stack(form, layer)), donate_argnums=0),
        args=make_args(kind, form, size, size.batch),
        carry=0,
        batch=Batch(argument=1, size=size.batch),
        amount=amount(kind, size, size.batch),
        analytic_flops=step_flops(kind, form, size, size.batch, POLICIES[policy].recomputed[kind]),
        claims=claims(form, policy),
    )


def claims(form: Form, policy: str) -> tuple[Claim, ...]:
    """What a policy must give, on any hardware; of memory only where the compiler leaves the recomputation alone."""
    kept = POLICIES[policy].kept
    memory = (
        claim("temp_bytes >= 0.9 * reference", "a checkpoint that saves everything saves no memory")
        if kept >= 1
        else claim(f"temp_bytes <= {kept} * reference", "what is recomputed is not kept", known_break=undone(form))
    )
    return (
        memory,
        claim("matmul_flops == analytic_flops", "exactly the products that the policy drops are done twice"),
        claim(
            f"matmul_flops <= {4 / 3} * reference",
            "at most one forward pass more, beside one and a backward pass of two",
        ),
    )


def undone(form: Form) -> KnownBreak | None:
    """What is known of memory under remat in one form."""
    return UNDONE if form == "unrolled" else None
