"""Donation: a call that reuses the buffers of its arguments; whole, in part, in vain, through loops, on a mesh.

Without `donate_argnums` every step holds the old and the new state at once, and nothing says so.

A training step (SGD, momentum, AdamW) with donated state against one that copies; with a part of the state donated,
where `aliased_bytes` against the step that donates all of it states what is still held twice; batches donated in vain,
where `lost_bytes` says how much; several steps in one `lax.scan`; a state divided among eight devices.
The mistakes: donation that is forgotten, or lost because a result has another dtype, another size or another sharding.
A buffer is taken by any result with as many elements of as many bytes each: float32 → int32 can be reused, float32 →
bfloat16 cannot, and of the latter JAX does not even warn. Sources: "Buffer donation" in JAX's documentation and its
FAQ.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxgate import Amount, Batch, Claim, Computation, Family, Tolerance, claim
from workloads.parts import Extent, another, drawing, grid, mlp, mlp_params, over_samples, sizes, squared_error
from workloads.pjit.mlp import shapes

CASES = Family("donation")

State = tuple[Any, optax.OptState]
Step = Callable[[State, jax.Array, jax.Array], tuple[State, jax.Array]]

SIZES = sizes(batch=(64, 2048), width=(256, 4096), layers=(3, 8))
"""A multi-layer perceptron [width, width] x layers, and the samples of one step."""

OPTIMISERS: dict[str, Callable[[], optax.GradientTransformation]] = {
    "sgd": lambda: optax.sgd(1e-2),
    "momentum": lambda: optax.sgd(1e-2, momentum=0.9),
    "adamw": lambda: optax.adamw(1e-3),
}

SHARES = {
    # Momentum keeps one array for each parameter.
    ("momentum", "parameters"): (1 / 2, 1 / 2),
    ("momentum", "optimiser-state"): (1 / 2, 1 / 2),
}
"""The share of the state that a part of it is: at least, at most."""

PARTS = ("parameters", "optimiser-state")


def train_step(optimiser: str) -> Step:
    """One step of an optimiser, parameters and optimiser state in and out."""
    transformation = OPTIMISERS[optimiser]()

    def step(state: State, x: jax.Array, y: jax.Array) -> tuple[State, jax.Array]:
        params, opt_state = state
        loss, grads = jax.value_and_grad(lambda p: squared_error(mlp(p, x), y))(params)
        updates, opt_state = transformation.update(grads, opt_state, params)
        return (optax.apply_updates(params, updates), opt_state), loss

    return step


def make_inputs(size: Extent, optimiser: str) -> tuple[State, jax.Array, jax.Array]:
    """Draw the state and a batch: x and y [batch, width]."""
    draw = drawing()
    params = jax.device_put(mlp_params(draw, size.width, size.layers))
    x, y = jax.device_put((draw((size.batch, size.width)), draw((size.batch, size.width))))
    return (params, OPTIMISERS[optimiser]().init(params)), x, y


@CASES.workload("{optimiser}-step-donated-vs-copied", sweep=({"optimiser": "sgd"}, {"optimiser": "adamw"}), sizes=SIZES)
def whole(size: Extent, optimiser: str) -> Computation:
    step, args = train_step(optimiser), make_inputs(size, optimiser)
    return Computation(
        subject=jax.jit(step, donate_argnums=0),
        reference=jax.jit(step),
        args=args,
        grow=over_samples(args, 1, 2),
        carry=0,
        batch=Batch(argument=1, size=size.batch),
        claims=[
            claim("donated_bytes >= 1", "the state is donated at all"),
            claim("aliased_bytes >= donated_bytes", "every donated buffer is reused"),
            claim("state_bytes <= 0.6 * reference", "old and new state share their memory"),
            claim("xla_flops <= 1.01 * reference", "donation adds no work"),
            claim("matmul_flops == reference", "one forward, one backward pass"),
        ],
    )


@CASES.workload(
    "{optimiser}-step-with-only-its-{donated}-donated-vs-copied",
    sweep=tuple({"optimiser": optimiser, "donated": donated} for optimiser, donated in SHARES),
    sizes=SIZES,
)
def partial(size: Extent, optimiser: str, donated: str) -> Computation:
    """The step with a part of its state donated, against the step that copies; with all of it donated as the alternative."""
    together = train_step(optimiser)

    def step(params: Any, opt_state: Any, x: jax.Array, y: jax.Array) -> tuple[State, jax.Array]:
        return together((params, opt_state), x, y)

    (params, opt_state), x, y = make_inputs(size, optimiser)
    args = (params, opt_state, x, y)
    return Computation(
        subject=jax.jit(step, donate_argnums=PARTS.index(donated)),
        reference=jax.jit(step),
        alternatives=another("all of the state donated", jax.jit(step, donate_argnums=(0, 1)), args),
        args=args,
        next_args=lambda result, args: (*result[0], *args[2:]),
        batch=Batch(argument=2, size=size.batch),
        claims=partial_claims(optimiser, donated),
    )


def partial_claims(optimiser: str, donated: str) -> tuple[Claim, ...]:
    """What is reused, and what is still held twice, on any hardware.

    A step holds its arguments and results, less what is aliased: with the arguments and results of the copying step,
    the bytes held twice are those that the alternative aliases and this does not. Which result takes a buffer is JAX's
    choice: new parameters may lie where the old momentum lay.
    """
    least, most = SHARES[optimiser, donated]
    return (
        claim("aliased_bytes >= donated_bytes", "every donated buffer is reused"),
        claim(f"aliased_bytes >= {least} * alternatives", f"the {donated} are reused, whole"),
        claim(f"aliased_bytes <= {most} * alternatives", "and the rest of the state is held twice"),
        claim("argument_bytes == reference", "the arguments are those of the copying step"),
        claim("output_bytes == reference", "and so are the results: nothing else can make a difference"),
        claim("state_bytes <= 0.9 * reference", "it holds less than the step that copies"),
        claim("state_bytes >= 1.2 * alternatives", "and more than the one with all of its state donated"),
        claim("matmul_flops == reference", "one forward, one backward pass"),
    )


# Donation in vain: a buffer can be reused only by a result with as many elements, each of as many bytes.

IMAGES = sizes(images=(64, 1024), side=(32, 224))
"""A batch of images [images, side, side, 3]."""


def values(size: Extent) -> int:
    return size.images * size.side * size.side * 3


def brightened(images: jax.Array) -> jax.Array:
    return 1.1 * images + 0.1


def halved(images: jax.Array) -> jax.Array:
    return images.astype(jnp.bfloat16)


def in_vain(size_bytes: int) -> tuple[Tolerance, ...]:
    """Allow what is lost on purpose, in the largest size; that no more is lost is claimed by each case."""
    return (Tolerance(fact="lost_bytes", absolute=size_bytes, why="this case shows donation that cannot be used"),)


@CASES.workload("batch-donated-and-returned-in-the-same-shape-vs-copied", sizes=IMAGES)
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
    sizes=IMAGES,
    tolerances=in_vain(4 * values(IMAGES["full"])),
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
    images = drawing()((size.images, size.side, size.side, 3))
    return Computation(
        subject=jax.jit(change, donate_argnums=0),
        reference=jax.jit(change),
        args=(jax.device_put(images),),
        batch=Batch(argument=0, size=size.images),
    )


# Donation through a loop: it keeps one state and updates it in place; donated, that one lies in the caller's own buffers.

STEPS = 3


def scanned(step: Step) -> Callable[..., Any]:
    """Many steps in one call: xs and ys [steps, batch, width], losses [steps]."""

    def run(state: State, xs: jax.Array, ys: jax.Array) -> tuple[State, jax.Array]:
        state, losses = jax.lax.scan(lambda carry, batch: step(carry, *batch), state, (xs, ys))
        return state, losses

    return run


def looped(step: Step) -> Callable[..., Any]:
    def run(state: State, xs: jax.Array, ys: jax.Array) -> tuple[State, jax.Array]:
        losses = []
        for x, y in zip(xs, ys, strict=True):
            state, loss = step(state, x, y)
            losses.append(loss)
        return state, jnp.stack(losses)

    return run


@CASES.workload("momentum-steps-in-one-scan-donated-vs-copied", sizes=SIZES)
def many_steps(size: Extent) -> Computation:
    """The scan with its first state donated, against one that copies; the donated Python loop as the alternative."""
    step = train_step("momentum")
    state, x, y = make_inputs(size, "momentum")
    xs, ys = (jnp.stack([batch] * STEPS) for batch in (x, y))
    args: tuple[Any, ...] = (state, xs, ys)
    return Computation(
        subject=jax.jit(scanned(step), donate_argnums=0),
        reference=jax.jit(scanned(step)),
        alternatives=another("a Python loop", jax.jit(looped(step), donate_argnums=0), args),
        args=args,
        carry=0,
        batch=Batch(argument=1, size=size.batch, axis=1),
        amount=Amount(count=STEPS * size.batch, unit="samples"),
        claims=[
            claim("donated_bytes >= 1", "the first state is donated at all"),
            claim("aliased_bytes >= donated_bytes", "the loop's last state lies where its first one lay"),
            claim("peak_bytes <= 0.85 * reference", "the caller's state and the carried one share their memory"),
            claim("stablehlo_ops <= 0.5 * alternatives", "the loop holds one step, a Python loop each of them"),
            claim("matmul_flops == reference", "each step once: one forward, one backward pass"),
        ],
    )


# Donation on eight devices: a shard is reused where the result has the same sharding, which ``out_shardings`` pins.

DEVICES = 8
SHARDED = sizes(batch=(64, 8192), width=(256, 4096), layers=(2, 8))


def shardings_of(state: State, mesh: Mesh, spec: PartitionSpec) -> Any:
    """One sharding for each array of the state; a number, such as AdamW's count, is replicated."""
    return jax.tree.map(lambda leaf: NamedSharding(mesh, spec if leaf.ndim else PartitionSpec()), state)


def jitted(step: Step, returned: Any, *, donate: bool) -> Any:
    """The step, whose new state is laid out like ``returned``, a tree of shardings."""
    return jax.jit(step, donate_argnums=0 if donate else (), out_shardings=(returned, None))


@CASES.workload("momentum-step-with-sharded-state-on-8-devices-donated-vs-copied", sizes=SHARDED, devices=DEVICES)
def on_a_mesh(size: Extent) -> Computation:
    """The step with its state donated, against the same step that copies; a copy of the state on each as the alternative."""
    mesh = grid(data=DEVICES)
    step = train_step("momentum")
    state, *batch = make_inputs(size, "momentum")
    x, y = jax.device_put(batch, NamedSharding(mesh, PartitionSpec("data")))
    kept, other = (shardings_of(state, mesh, spec) for spec in (PartitionSpec("data"), PartitionSpec()))
    return Computation(
        subject=jitted(step, kept, donate=True),
        reference=jitted(step, kept, donate=False),
        alternatives=another("the other layout", jitted(step, other, donate=True), (shapes(state, other), x, y)),
        args=(jax.device_put(state, kept), x, y),
        carry=0,
        batch=Batch(argument=1, size=size.batch),
        claims=[
            claim("donated_bytes >= 1", "the state is donated at all"),
            claim("aliased_bytes >= donated_bytes", "every donated shard is reused, on each device"),
            claim(f"aliased_bytes <= {1.001 / DEVICES} * alternatives", "a device reuses its share"),
            claim("state_bytes <= 0.6 * reference", "one state is held between calls, not two"),
            claim("peak_bytes <= reference", "and it costs no other memory"),
            claim("collectives == reference", "donation sends nothing"),
            claim("matmul_flops == reference", "one forward, one backward pass on all devices together"),
        ],
    )
