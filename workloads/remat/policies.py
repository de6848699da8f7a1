"""Stacks of MLP and transformer blocks, and remat by policy: what a block keeps for its gradient and computes again."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import jax
import numpy as np
from jax import checkpoint_policies as policies
from jax.ad_checkpoint import checkpoint_name

from jaxgate import Amount, Batch, Claim, Computation, Family, KnownBreak, Size, Tolerance, claim
from workloads.parts import (
    Draw,
    Extent,
    Tree,
    attention,
    block_params,
    descend,
    drawing,
    normalise,
    sizes,
    squared_error,
)

CASES = Family("remat")

Kind = Literal["mlp", "transformer"]
Form = Literal["unrolled", "stacked"]
"""``unrolled``: a Python loop over a list of layers. ``stacked``: ``lax.scan`` over arrays with a leading layer axis."""

Block = Callable[[Tree, jax.Array], jax.Array]
"""Parameters of one layer, x [batch, ..., width] to the same shape."""

Stack = Callable[[Tree, jax.Array], jax.Array]
"""Parameters of all layers, x [batch, ..., width] to the same shape."""

GROWTH = 4
"""Hidden width of a block over its width."""

MLP = sizes(
    layers=(6, 8),  # blocks
    width=(32, 1024),  # features that go from block to block
    batch=(256, 2048),  # samples
    time=1,  # tokens of a sample; an MLP has none
    budget_bytes=(1 << 30, 3 << 30),  # memory for the largest batch: about what the plain stack needs at `batch`
    grain=(1 << 16, 512),  # the largest batch is a multiple of it
    limit=(1 << 20, 65536),  # more samples than fit with remat
)
TRANSFORMER = sizes(
    layers=(3, 8),
    width=(32, 1024),
    batch=(4, 2),
    time=(64, 512),
    heads=(4, 16),
    budget_bytes=(1 << 28, 3 << 30),
    grain=(128, 1),
    limit=(1 << 11, 64),
)
BY_KIND: dict[Size, dict[Kind, Extent]] = {size: {"mlp": MLP[size], "transformer": TRANSFORMER[size]} for size in MLP}


def shape_of(kind: Kind, size: Extent, batch: int) -> tuple[int, ...]:
    """Shape of the activations between blocks."""
    return (batch, size.width) if kind == "mlp" else (batch, size.time, size.width)


TOLERANCES = (
    Tolerance(
        fact="temp_bytes",
        relative=0.25,
        why="jax 0.12 traces the gradient of gelu with one more hidden array than 0.10.2 (up to 1.20 times the bytes, "
        "seen 2026-11-21); remat that is lost takes twice as many",
    ),
)
"""Both releases are gated by baselines of the older one."""


def mlp_block(params: Tree, x: jax.Array) -> jax.Array:
    """The second half of a transformer block: x [batch, ..., width] to the same shape."""
    hidden = checkpoint_name(normalise(x) @ params["up"], "hidden")
    return x + jax.nn.gelu(hidden) @ params["down"]


def transformer_block(params: Tree, x: jax.Array, heads: int) -> jax.Array:
    """``parts.block`` with names for two of its values: x [batch, time, width] to the same shape."""
    attended = checkpoint_name(attention(params, normalise(x), heads), "attended")
    return mlp_block(params, x + attended)


def block(kind: Kind, size: Extent) -> Block:
    return mlp_block if kind == "mlp" else partial(transformer_block, heads=size.heads)


def stack(form: Form, layer: Block) -> Stack:
    """Apply a block layer after layer."""

    def unrolled(params: Tree, x: jax.Array) -> jax.Array:
        for each in params:
            x = layer(each, x)
        return x

    def stacked(params: Tree, x: jax.Array) -> jax.Array:
        return jax.lax.scan(lambda x, each: (layer(each, x), None), x, params)[0]

    return unrolled if form == "unrolled" else stacked


def draw_params(kind: Kind, form: Form, size: Extent, draw: Draw) -> Tree:
    """Draw all layers: a list of them, or one of arrays [layers, ...]; NumPy arrays."""
    layers = [block_params(draw, size.width, GROWTH * size.width) for _ in range(size.layers)]
    if kind == "mlp":
        layers = [{name: layer[name] for name in ("up", "down")} for layer in layers]
    return layers if form == "unrolled" else jax.tree.map(lambda *each: np.stack(each), *layers)


def make_args(kind: Kind, form: Form, size: Extent, batch: int) -> tuple[Any, ...]:
    """Parameters, input and target [batch, ..., width], on the device."""
    draw = drawing()
    shape = shape_of(kind, size, batch)
    return jax.device_put((draw_params(kind, form, size, draw), draw(shape), draw(shape)))


def shaped(args: tuple[Any, ...], *, batch: int, deeper: int = 1) -> tuple[Any, ...]:
    """Shapes of the same arguments at another batch, of stacked layers also several times as deep."""
    params, x, _ = args
    samples = jax.ShapeDtypeStruct((batch, *x.shape[1:]), x.dtype)
    layers = jax.tree.map(lambda a: jax.ShapeDtypeStruct((deeper * a.shape[0], *a.shape[1:]), a.dtype), params)
    return layers, samples, samples


def products(kind: Kind, size: Extent, batch: int) -> dict[str, int]:
    """FLOPs of each matrix multiplication in the forward pass of a block, by the name of its result."""
    square = 2 * batch * size.time * size.width**2
    wide = {"up": GROWTH * square, "down": GROWTH * square}
    if kind == "mlp":
        return wide
    across = 2 * batch * size.time**2 * size.width
    narrow = dict.fromkeys(("query", "key", "value", "out"), square)
    return {**narrow, "scores": across, "weighted": across, **wide}


def step_flops(kind: Kind, form: Form, size: Extent, batch: int, recomputed: Collection[str] = ()) -> int:
    """FLOPs of a training step.

    Each product is done once forward and twice backward, for its two operands, and once more if it is recomputed. The
    gradient of the stack's input is not asked for: an unrolled first layer leaves it out, a scan cannot.
    """
    forward = products(kind, size, batch)
    unneeded = ("up",) if kind == "mlp" else ("query", "key", "value")
    once = sum(forward[name] for name in unneeded) if form == "unrolled" else 0
    return size.layers * (3 * sum(forward.values()) + sum(forward[name] for name in recomputed)) - once


# remat by policy: what a block keeps for its gradient, and what it computes again.

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
    def step(params: Tree, x: jax.Array, y: jax.Array) -> tuple[Tree, jax.Array]:
        loss, grads = jax.value_and_grad(lambda p: squared_error(network(p, x), y))(params)
        return descend(params, grads, LEARNING_RATE), loss

    return step


def amount(kind: Kind, size: Extent, batch: int) -> Amount:
    return Amount(count=batch * size.time, unit="samples" if kind == "mlp" else "tokens")


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
def policy_step(sizes: Mapping[Kind, Extent], kind: Kind, form: Form, policy: str) -> Computation:
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
    kept, known = POLICIES[policy].kept, UNDONE if form == "unrolled" else None
    memory = (
        claim("temp_bytes >= 0.9 * reference", "a checkpoint that saves everything saves no memory")
        if kept >= 1
        else claim(f"temp_bytes <= {kept} * reference", "what is recomputed is not kept", known_break=known)
    )
    return (
        memory,
        claim("matmul_flops == analytic_flops", "exactly the products that the policy drops are done twice"),
        claim(f"matmul_flops <= {4 / 3} * reference", "at most one forward pass more, beside three"),
    )
