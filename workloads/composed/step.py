"""The composed train step, each of its layers beside the naive way to do the same; its model is an MLP-Mixer.

Each block mixes over time, then over features; the blocks are scanned over, so that rematerialisation holds on every
release (jax 0.10.2 on CPU undoes it for blocks in a row).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from workloads.parts import Extent, Tree, drawing

Model = Callable[[Tree, jax.Array], jax.Array]
"""Parameters and one example x [time, width] to [time, width]."""

Checkpoint = Callable[[Callable[..., Any]], Callable[..., Any]]
"""What is done to a block before it is scanned over: ``jax.checkpoint``, or nothing."""


class Block(nnx.Module):  # type: ignore[misc]  # flax is partly typed, differently on each line
    """Mix the positions of an example, then the features of each position."""

    def __init__(self, size: Extent, rngs: nnx.Rngs) -> None:
        self.mix = nnx.Linear(size.time, size.time, use_bias=False, rngs=rngs)
        self.up = nnx.Linear(size.width, size.hidden, use_bias=False, rngs=rngs)
        self.down = nnx.Linear(size.hidden, size.width, use_bias=False, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        """Run one block: x [time, width] to [time, width]."""
        x = x + self.mix(x.T).T
        return x + self.down(jax.nn.silu(self.up(x)))


class Mixer(nnx.Module):  # type: ignore[misc]
    """Blocks one after the other, their parameters stacked along a leading axis ``layers``."""

    def __init__(self, size: Extent, rngs: nnx.Rngs) -> None:
        stack = nnx.split_rngs(splits=size.layers)(nnx.vmap(lambda rngs: Block(size, rngs)))
        self.blocks = stack(rngs)

    def __call__(self, x: jax.Array, checkpoint: Checkpoint) -> jax.Array:
        """Run all blocks: x [time, width] to [time, width]."""
        # nnx.scan refuses a module whose parameters are traced further out, as under vmap and grad here.
        definition, layers = nnx.split(self.blocks)

        def layer(x: jax.Array, params: nnx.State) -> tuple[jax.Array, None]:
            return nnx.merge(definition, params)(x), None

        return jax.lax.scan(checkpoint(layer), x, layers)[0]


def nnx_model(size: Extent, checkpoint: Checkpoint) -> Model:
    """The module as a pure function of its state: split once, merged where it is called."""
    definition, _ = nnx.split(abstract(size))

    def predict(params: nnx.State, x: jax.Array) -> jax.Array:
        return nnx.merge(definition, params)(x, checkpoint)

    return predict


def plain_model(size: Extent, checkpoint: Checkpoint) -> Model:
    """The same model without a framework."""
    del size  # it is in the parameters' shapes

    def layer(x: jax.Array, params: Tree) -> tuple[jax.Array, None]:
        mix, up, down = (params[name]["kernel"] for name in ("mix", "up", "down"))
        x = x + (x.T @ mix).T
        return x + jax.nn.silu(x @ up) @ down, None

    def predict(params: nnx.State, x: jax.Array) -> jax.Array:
        return jax.lax.scan(checkpoint(layer), x, nnx.to_pure_dict(params)["blocks"])[0]

    return predict


def abstract(size: Extent) -> Mixer:
    return nnx.eval_shape(lambda: Mixer(size, nnx.Rngs(0)))


def make_params(size: Extent) -> nnx.State:
    """Draw the module's state, as NumPy arrays: kernels [layers, inputs, outputs], scaled by their inputs."""
    draw = drawing(0)

    def fill(leaf: Any) -> Any:
        return np.float32(0.5 * leaf.shape[1] ** -0.5) * draw(leaf.shape)

    return jax.tree.map(fill, nnx.split(abstract(size))[1])


# The composed train step and, for each of its layers, the naive way to do the same.

Loss = Callable[[Tree, jax.Array, jax.Array], tuple[jax.Array, Tree]]
"""Parameters, inputs and targets to a scalar and what else is worth knowing."""

Gradients = Callable[[Tree, jax.Array, jax.Array], Any]
"""Parameters, inputs and targets [batch, time, width] to ``((loss, aux), gradients)``, averages over the batch."""


def rematerialised(layer: Callable[..., Any]) -> Callable[..., Any]:
    """Keep a block's input only, and compute the block again on the way back."""
    # Inside a scan nothing can merge the two computations, so the barrier against it would only cost.
    return jax.checkpoint(layer, prevent_cse=False)


def stored(layer: Callable[..., Any]) -> Callable[..., Any]:
    return layer


def loss_of(model: Model) -> Loss:
    """Squared error of one example [time, width], with its absolute error as aux."""

    def loss(params: Tree, x: jax.Array, y: jax.Array) -> tuple[jax.Array, Tree]:
        error = model(params, x) - y
        return jnp.mean(error**2), {"absolute_error": jnp.mean(jnp.abs(error))}

    return loss


def vmapped(loss: Loss) -> Loss:
    """Average over the examples of a micro-batch, all at once."""

    def average(params: Tree, x: jax.Array, y: jax.Array) -> tuple[jax.Array, Tree]:
        return jax.tree.map(jnp.mean, jax.vmap(loss, in_axes=(None, 0, 0))(params, x, y))

    return average


def example_loop(loss: Loss) -> Loss:
    """Average over the examples of a micro-batch, one after the other."""

    def average(params: Tree, x: jax.Array, y: jax.Array) -> tuple[jax.Array, Tree]:
        each = [loss(params, x[i], y[i]) for i in range(len(x))]
        return jax.tree.map(lambda *values: sum(values) / len(each), *each)

    return average


def at_once(loss: Loss) -> Gradients:
    """Loss, aux and gradients from one forward pass."""
    return jax.value_and_grad(loss, has_aux=True)


def second_forward(loss: Loss) -> Gradients:
    """Gradients first, then the loss once more for the log."""

    def gradients(params: Tree, x: jax.Array, y: jax.Array) -> Any:
        grads, _ = jax.grad(loss, has_aux=True)(params, x, y)
        return loss(params, x, y), grads

    return gradients


def scanned(gradients: Gradients, parts: int) -> Gradients:
    """Average over micro-batches, keeping the sum only: one compiled body."""

    def accumulate(params: Tree, x: jax.Array, y: jax.Array) -> Any:
        micro = jax.tree.map(lambda leaf: leaf.reshape(parts, -1, *leaf.shape[1:]), (x, y))

        def add(total: Tree, part: Any) -> tuple[Tree, Any]:
            values, grads = gradients(params, *part)
            return jax.tree.map(jnp.add, total, grads), values

        total, values = jax.lax.scan(add, jax.tree.map(jnp.zeros_like, params), micro)
        return jax.tree.map(jnp.mean, values), jax.tree.map(lambda leaf: leaf / parts, total)

    return accumulate


def micro_batch_loop(gradients: Gradients, parts: int) -> Gradients:
    """Average over micro-batches with a Python loop: one copy of the body for each."""

    def accumulate(params: Tree, x: jax.Array, y: jax.Array) -> Any:
        each = zip(jnp.split(x, parts), jnp.split(y, parts), strict=True)
        total = jax.tree.map(lambda *values: sum(values), *(gradients(params, *part) for part in each))
        return jax.tree.map(lambda leaf: leaf / parts, total)

    return accumulate


def whole_batch(gradients: Gradients, parts: int) -> Gradients:
    del parts
    return gradients


def divided(local: Gradients, mesh: Mesh) -> Gradients:
    """Call a function on each device with that device's samples."""
    return jax.shard_map(local, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())


def summed_once(gradients: Gradients, mesh: Mesh) -> Gradients:
    """Each device accumulates over its own samples; the averages meet once, after the last micro-batch."""

    def local(params: Tree, x: jax.Array, y: jax.Array) -> Any:
        # Parameters marked as differing by device: those known to be equal have their gradients summed by JAX
        # wherever they arise, that is for every micro-batch.
        own = jax.tree.map(lambda leaf: jax.lax.pcast(leaf, "data", to="varying"), params)
        return jax.lax.pmean(gradients(own, x, y), "data")

    return divided(local, mesh)


def summed_each_time(gradients: Gradients, mesh: Mesh) -> Gradients:
    """Each device accumulates gradients that were summed over all devices for every micro-batch."""
    devices = mesh.shape["data"]

    def local(params: Tree, x: jax.Array, y: jax.Array) -> Any:
        values, grads = gradients(params, x, y)
        return jax.lax.pmean(values, "data"), jax.tree.map(lambda leaf: leaf / devices, grads)

    return divided(local, mesh)


def on_every_device(gradients: Gradients, mesh: Mesh) -> Gradients:
    """What a single device does: each one fetches the whole batch and works through it."""
    everywhere = NamedSharding(mesh, P())

    def alone(params: Tree, x: jax.Array, y: jax.Array) -> Any:
        return gradients(params, *jax.lax.with_sharding_constraint((x, y), everywhere))

    return alone


@dataclass(frozen=True, slots=True, kw_only=True)
class Composition:
    """The layers of the step, from the innermost outwards; each can be replaced by the naive way."""

    model: Callable[[Extent, Checkpoint], Model] = nnx_model  # the network
    checkpoint: Checkpoint = rematerialised  # what is kept of a block for the way back
    examples: Callable[[Loss], Loss] = vmapped  # how the examples of a micro-batch are averaged
    gradients: Callable[[Loss], Gradients] = at_once  # how loss, aux and gradients are found
    accumulate: Callable[[Gradients, int], Gradients] = scanned  # how micro-batches are averaged
    spread: Callable[[Gradients, Mesh], Gradients] = summed_once  # how the devices of the mesh share the work
    donated: bool = True  # whether parameters and optimiser state reuse their buffers

    def step(self, size: Extent, mesh: Mesh, optimiser: optax.GradientTransformation, shardings: Tree) -> Any:
        """Compose them: the jitted step, whose new state lies as ``shardings`` say, over a mesh with the axis ``data``."""
        gradients = self.gradients(self.examples(loss_of(self.model(size, self.checkpoint))))
        averages = self.spread(self.accumulate(gradients, size.micro_batches), mesh)

        def train_step(params: Tree, opt_state: Tree, x: jax.Array, y: jax.Array) -> Any:
            (loss, aux), grads = averages(params, x, y)
            updates, opt_state = optimiser.update(grads, opt_state, params)
            return optax.apply_updates(params, updates), opt_state, loss, aux

        donate = (0, 1) if self.donated else ()
        return jax.jit(train_step, donate_argnums=donate, out_shardings=(*shardings, None, None))
