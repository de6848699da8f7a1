"""The three sides of each contrast: a model in JAX, and the same in PyTorch, eager and compiled."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

import jax
import numpy as np
from flax import nnx

from jaxgate import Amount
from workloads.contrast.contrast import Contrast, SpeedClaim, Training
from workloads.parts import Tree
from workloads.training.states import adamw, cross_entropy, filled, train_step, zeros

JAX, EAGER, COMPILED = "jax", "torch eager", "torch compiled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One model in both frameworks."""

    shapes: nnx.Module  # its Flax module, with shapes in place of arrays
    in_torch: Callable[[], Any]  # makes its PyTorch module, with weights of its own
    inputs: np.ndarray[Any, Any]  # what it is fed with [batch, ...], a NumPy array in JAX's layout
    labels: np.ndarray[Any, Any]  # an index of a class for each of its logits
    amount: Amount  # what a step gets done
    # inputs in PyTorch's layout
    for_torch: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]] = np.ascontiguousarray


def contrast_of(model: Model, *, rtol: float) -> Contrast:
    """JAX against PyTorch, eager and compiled."""
    return Contrast(
        sides={
            JAX: lambda: jax_side(model),
            EAGER: lambda: torch_side(model, compiled=False),
            COMPILED: lambda: torch_side(model, compiled=True),
        },
        amount=model.amount,
        rtol=rtol,
        claims=[SpeedClaim(side=COMPILED, other=EAGER, why="compiling pays at all")],
    )


def jax_side(model: Model, loss: Callable[[jax.Array, jax.Array], jax.Array] = cross_entropy) -> Training:
    """The jitted step, its state donated."""
    definition, params = nnx.split(model.shapes)
    params = filled(params)

    def logits(params: Tree, inputs: jax.Array) -> jax.Array:
        found: jax.Array = nnx.merge(definition, params)(inputs)
        return found

    def loss_of(params: Tree, inputs: jax.Array, labels: jax.Array) -> jax.Array:
        return loss(logits(params, inputs), labels)

    return Training(
        framework="jax",
        state=(params, zeros(jax.eval_shape(adamw().init, params))),
        inputs=model.inputs,
        labels=model.labels,
        step=jax.jit(exact(train_step(loss_of, adamw())), donate_argnums=(0, 1)),
        logits=exact(logits),
        loss=loss,
        load=lambda: (np.stack(list(model.inputs)), np.stack(list(model.labels))),
        weights=named,
    )


def exact(function: Callable[..., Any]) -> Callable[..., Any]:
    """Products of float32 in float32: on accelerators JAX would use fewer bits, and PyTorch would not."""

    @wraps(function)
    def wrapped(*args: Any) -> Any:
        with jax.default_matmul_precision("highest"):
            return function(*args)

    return wrapped


def named(params: nnx.State) -> dict[str, Any]:
    """Parameters under names such as ``blocks.0.qkv.kernel``."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(nnx.to_pure_dict(params))
    return {".".join(str(getattr(key, "key", key)) for key in path): leaf for path, leaf in leaves}


def torch_side(model: Model, *, compiled: bool) -> Training:
    """The same in PyTorch: the step written as its tutorials write it, or that compiled."""
    from workloads.contrast import torch_side as build  # noqa: PLC0415 - imports PyTorch, which not everybody has

    weights = named(filled(nnx.split(model.shapes)[1]))
    return build.training(
        model.in_torch(),
        weights,
        lambda: model.for_torch(np.stack(list(model.inputs))),
        model.labels,
        compiled=compiled,
    )
