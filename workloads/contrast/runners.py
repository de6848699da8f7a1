"""The sides of a contrast, run: what it asks of each, whatever its framework; a step in JAX; what loading a batch asks of JAX."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, Protocol, cast

import jax
import numpy as np

from jaxgate import Contract
from jaxgate.model.words import plural
from jaxgate.observe.execute.dispatches import count_launches
from jaxgate.observe.jax_extend import jax_extend
from jaxgate.observe.trace.clocks import Clock
from jaxgate.observe.trace.jaxpr_cost import count_work
from workloads.contrast.contrast import Training, Traits

_FUSED = ("attention", "fmha", "flash", "pallas_call")
"""Parts of the names of primitives that stand for a whole attention, or for a kernel."""
_PRODUCTS = frozenset({"dot_general", "conv_general_dilated", "ragged_dot_general"})
_MOVES = frozenset({"transpose", "copy"})
_VIEWS = frozenset({"convert_element_type", "reshape", "squeeze"})


class Runner(Protocol):
    """A training step with its state."""

    def reset(self) -> None:
        """Begin again from the first weights."""

    def logits(self) -> np.ndarray[Any, Any]:
        """What the model makes of the batch, as float64."""

    def loss_of(self, logits: np.ndarray[Any, Any]) -> float:
        """The loss of these logits and the batch's labels."""

    def step(self) -> Any:
        """Start one step; gives what to wait for."""

    def wait(self, loss: Any) -> float:
        """Wait for a step; gives its loss."""

    def weights(self) -> Mapping[str, np.ndarray[Any, Any]]:
        """The parameters as they are now, as float64 under the shared names."""

    def traits(self) -> Traits:
        """What its framework says of a step."""

    def peak_bytes(self) -> int | None:
        """What the device held at most; ``None`` where that is not known."""


def runner_of(training: Training) -> Runner:
    """The side of a framework.

    Raises:
        ImportError: If that framework is not installed.
    """
    if training.framework == "jax":
        return JaxRunner(training)
    from workloads.contrast.torch_runner import TorchRunner  # noqa: PLC0415 - imports PyTorch

    return TorchRunner(training)


@dataclass(frozen=True, slots=True)
class Opponent:
    """A side as a duel wants it; each burst starts from the first weights, so that no side trains into another regime."""

    runner: Runner
    contract: Contract = "throughput"

    @property
    def consumed(self) -> bool:
        """Never: a step changes its own state."""
        return False

    def results(self) -> list[np.ndarray[Any, Any]] | None:
        """None: whether the sides agree is seen before."""
        return None

    def burst(self, calls: int, clock: Clock) -> int:
        """Nanoseconds that some steps in a row take, waited for at the end."""
        self.runner.reset()
        begin = clock()
        for _ in range(calls):
            loss = self.runner.step()
        self.runner.wait(loss)
        return clock() - begin


def loading_of(load: Callable[[], Any]) -> tuple[str, ...]:
    """What one warm call launches or transfers, and whether it gives arrays of JAX, a phrase each.

    An input pipeline that uses JAX competes with the step for the device.

    Raises:
        RuntimeError: If the backend's profile does not show it: nothing would look like something clean.
    """
    arrays = sum(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(load()))
    seen = count_launches(lambda: load, [jax.devices()[0]])
    if seen.programs is None or seen.transfers is None:
        raise RuntimeError(f"what the input pipeline asks of JAX is not known: {seen.why_not}")
    found = [f"{plural(arrays, 'of its arrays is', 'of its arrays are')} JAX's"] if arrays else []
    for one, several, counted, lines in (
        ("launch", "launches", seen.programs, seen.program_lines),
        ("transfer", "transfers", seen.transfers, seen.transfer_lines),
    ):
        for name, times in counted.items():
            place = f" at {lines[name]}" if name in lines else ""
            found.append(f"{plural(times, one, several)} of {name}{place}")
    return tuple(found)


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
