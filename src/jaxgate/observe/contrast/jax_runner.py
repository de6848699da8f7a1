"""A training step in JAX, run for a contrast."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any, cast

import jax
import numpy as np

from jaxgate.model.workloads.contrast import Training, Traits
from jaxgate.observe.jax_extend import jax_extend
from jaxgate.observe.trace.jaxpr_cost import count_work

_FUSED = ("attention", "fmha", "flash", "pallas_call")
"""Parts of the names of primitives that stand for a whole attention, or for a kernel."""
_PRODUCTS = frozenset({"dot_general", "conv_general_dilated", "ragged_dot_general"})
_MOVES = frozenset({"transpose", "copy"})
_VIEWS = frozenset({"convert_element_type", "reshape", "squeeze"})


class JaxRunner:
    """One side in JAX: starts steps, waits for them, says what its program does."""

    def __init__(self, training: Training) -> None:
        self._training = training
        self._start = jax.tree.map(np.asarray, training.state)
        self._batch = jax.device_put((training.inputs, training.labels))
        self.reset()

    def reset(self) -> None:
        """Begin again from the first weights, in buffers of the device's own: a step can donate no memory of NumPy's."""
        self._state: tuple[Any, ...] = ()  # its memory is free before the next one takes some
        self._state = jax.device_put(self._start, may_alias=False)
        jax.block_until_ready(self._state)

    def logits(self) -> np.ndarray[Any, Any]:
        """What the model makes of the batch."""
        return np.asarray(jax.jit(self._training.logits)(self._state[0], self._batch[0]), np.float64)

    def loss_of(self, logits: np.ndarray[Any, Any]) -> float:
        """The loss of these logits and the batch's labels."""
        return float(jax.jit(self._training.loss)(logits.astype(np.float32), self._batch[1]))

    def step(self) -> Any:
        """Start one step; gives what to wait for."""
        *state, loss = self._training.step(*self._state, *self._batch)
        self._state = tuple(state)
        return loss

    def wait(self, loss: Any) -> float:
        """Wait for a step, state included; gives its loss."""
        jax.block_until_ready((loss, self._state))
        return float(loss)

    def weights(self) -> Mapping[str, np.ndarray[Any, Any]]:
        """The parameters as they are now, under the shared names."""
        found = self._training.weights(self._state[0])
        return {name: np.array(array, np.float64) for name, array in found.items()}

    def peak_bytes(self) -> int | None:
        """The device's peak; ``None`` where its allocator keeps none."""
        figures = jax.devices()[0].memory_stats() or {}
        return cast("int | None", figures.get("peak_bytes_in_use"))

    def traits(self) -> Traits:
        """What the program of a step does."""
        traced = cast("Any", self._training.step).trace(*self._state, *self._batch)
        program, arrays = traced.jaxpr.jaxpr, len(jax.tree.leaves(self._state))
        found = list(_equations(program))
        return Traits(
            matmul_flops=count_work(traced.jaxpr).matmul_flops,
            products=frozenset(_product(one) for one in found if one.primitive.name in _PRODUCTS),
            fused_attention=tuple(sorted({one.primitive.name for one in found if _fused(one)})),
            relayout_bytes=_moved(program, set(program.invars[arrays : arrays + len(jax.tree.leaves(self._batch[0]))])),
        )


def _equations(jaxpr: Any) -> Iterator[Any]:
    for equation in jaxpr.eqns:
        yield equation
        for inner in jax_extend().core.jaxprs_in_params(equation.params):
            yield from _equations(inner)


def _product(equation: Any) -> str:
    """The type of its operands, and whether fewer bits may be used: ``float32``, ``float32 by fewer bits``."""
    dtype = str(equation.invars[0].aval.dtype)
    asked = equation.params.get("precision")
    both = asked if isinstance(asked, tuple) else (asked,)
    exact = all(one in (jax.lax.Precision.HIGHEST, jax.lax.DotAlgorithmPreset.F32_F32_F32) for one in both)
    return dtype if dtype != "float32" or exact else f"{dtype} by fewer bits"


def _fused(equation: Any) -> bool:
    return any(word in equation.primitive.name for word in _FUSED)


def _moved(jaxpr: Any, followed: set[Any]) -> int:
    """Bytes of inputs that a program puts into another order of axes, before anything else is done with them."""
    total = 0
    for equation in jaxpr.eqns:
        ours = [not _is_literal(one) and one in followed for one in equation.invars]
        if not any(ours):
            continue
        if equation.primitive.name in _MOVES:
            aval = equation.outvars[0].aval
            total += prod(aval.shape) * aval.dtype.itemsize
        elif equation.primitive.name in _VIEWS:
            followed |= set(equation.outvars)
        for inner in jax_extend().core.jaxprs_in_params(equation.params):
            if len(inner.invars) == len(ours):
                total += _moved(inner, {one for one, is_ours in zip(inner.invars, ours, strict=True) if is_ours})
    return total


def _is_literal(atom: Any) -> bool:
    return isinstance(atom, jax_extend().core.Literal)
