"""What a contrast asks of each side, whatever its framework; and the side as a duel wants it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from jaxgate.model.numbers import Contract
from jaxgate.model.workloads.contrast import Training, Traits
from jaxgate.observe.contrast.jax_runner import JaxRunner
from jaxgate.observe.trace.clocks import Clock


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
    from jaxgate.observe.contrast.torch_runner import TorchRunner  # noqa: PLC0415 - imports PyTorch

    return TorchRunner(training)


@dataclass(frozen=True, slots=True)
class ContrastOpponent:
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
