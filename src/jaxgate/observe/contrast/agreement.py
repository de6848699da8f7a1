"""Whether the sides of a contrast compute the same, stage by stage: the first that differs says where to look."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxgate.model.workloads.contrast import Difference
from jaxgate.observe.contrast.runner import Runner


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a side computes."""

    weights: Mapping[str, np.ndarray[Any, Any]]  # its parameters before the first step
    logits: np.ndarray[Any, Any]  # of the batch, before the first step
    loss_of_theirs: float  # the loss of the first side's logits
    losses: tuple[float, ...]  # one for each step
    trained: Mapping[str, np.ndarray[Any, Any]]  # its parameters after the last of them


def look_at(runner: Runner, steps: int, first: Seen | None = None) -> Seen:
    """Run a side from its first weights.

    Args:
        runner: The side.
        steps: How many steps it takes.
        first: What the first side has computed; ``None`` where this is that one.
    """
    weights, logits = runner.weights(), runner.logits()
    asked = logits if first is None else first.logits
    loss = runner.loss_of(asked) if asked.shape == logits.shape else math.nan
    losses = tuple(runner.wait(runner.step()) for _ in range(steps))
    trained = runner.weights()
    runner.reset()
    return Seen(weights=weights, logits=logits, loss_of_theirs=loss, losses=losses, trained=trained)


def differences(name: str, ours: Seen, theirs: Seen) -> tuple[Difference, ...]:
    """The largest difference of each stage, in the order in which one follows from the other."""
    steps = [(f"step {number}", *pair) for number, pair in enumerate(zip(ours.losses, theirs.losses, strict=True), 1)]
    stages: dict[str, list[tuple[str, Any, Any]]] = {
        "weights": list(_by_name(ours.weights, theirs.weights)),
        "logits": [("logits", ours.logits, theirs.logits)],
        "loss function": [("the same logits", ours.loss_of_theirs, theirs.loss_of_theirs)],
        "loss": steps,
        "weights after training": list(_by_name(_moved(ours), _moved(theirs))),
    }
    # What a step moves is small beside the weights: a decay that is forgotten would hide behind them.
    most = max((float(np.max(np.abs(array))) for array in _moved(theirs).values() if array.size), default=0.0)
    scales = {"weights after training": most}
    found = []
    for stage, pairs in stages.items():
        compared = [
            _difference(name, stage, place, np.asarray(a), np.asarray(b), scale=scales.get(stage))
            for place, a, b in pairs
        ]
        found.append(max(compared, key=lambda one: one.error))
    return tuple(found)


def _by_name(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Arrays of one name; a name that one side lacks has an empty array there."""
    for name in sorted({*ours, *theirs}):
        yield name, ours.get(name, np.zeros(0)), theirs.get(name, np.zeros(0))


def _moved(seen: Seen) -> dict[str, np.ndarray[Any, Any]]:
    """By how much training has moved each array; one of another shape than before stays as it is."""
    return {
        name: array - seen.weights[name] if seen.weights[name].shape == array.shape else array
        for name, array in seen.trained.items()
    }


def _difference(
    side: str,
    stage: str,
    place: str,
    ours: np.ndarray[Any, Any],
    theirs: np.ndarray[Any, Any],
    *,
    scale: float | None = None,
) -> Difference:
    if ours.shape != theirs.shape or not ours.size:
        shapes = f"{place} {list(ours.shape)} against {list(theirs.shape)}"
        return Difference(side=side, stage=stage, place=shapes, error=math.inf, ours=math.nan, theirs=math.nan)
    far = np.abs(ours - theirs)
    worst = int(np.argmax(far))  # the first NaN, where there is one
    scale = float(np.max(np.abs(theirs))) if scale is None else scale
    most = float(far.reshape(-1)[worst])
    nothing = scale == 0
    error = math.inf if not math.isfinite(most) else 0.0 if most == 0 else math.inf if nothing else most / scale
    a, b = float(ours.reshape(-1)[worst]), float(theirs.reshape(-1)[worst])
    return Difference(side=side, stage=stage, place=place, error=error, ours=a, theirs=b)
