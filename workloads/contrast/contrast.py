"""What a contrast is made of: one training step in several frameworks, with the same weights, data, loss and precision."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, nan
from statistics import median
from typing import Any, Literal

from jaxgate import Amount, Size


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """A training step of one framework, with a state of its own and one batch."""

    framework: Literal["jax", "torch"]
    # of JAX the trees that the step carries on, the parameters first, as NumPy arrays. Of PyTorch the module and its
    # optimiser, which the step changes in place.
    state: tuple[Any, ...]
    inputs: Any  # the inputs of the batch [batch, ...], as the framework's step takes them
    labels: Any  # the labels of the batch, likewise
    # of JAX a jitted function: `step(*state, inputs, labels)` gives the next state and, last, the loss. Of PyTorch
    # `step(inputs, labels)` gives the loss.
    step: Callable[..., Any]
    logits: Callable[..., Any]  # of JAX `logits(parameters, inputs)`, of PyTorch `logits(inputs)`: what the loss is of
    loss: Callable[[Any, Any], Any]  # the loss of logits and labels, a scalar
    load: Callable[[], Any]  # makes a batch on the host, as the input pipeline does
    # from the parameters of JAX, or the module of PyTorch, to NumPy arrays with names and layouts that all sides share
    weights: Callable[[Any], Mapping[str, Any]]
    compiled: bool = False  # of PyTorch whether the step is compiled; one that is not then is an error


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedClaim:
    """That a step of one side takes at most a multiple of another's, on any machine."""

    side: str  # which side must be quick
    other: str  # which it is held against
    factor: float = 1.0  # the multiple
    why: str = ""  # half a sentence for whoever sees it broken

    def __str__(self) -> str:
        """Read as ``torch compiled ≤ 1 × torch eager``."""
        return f"{self.side} ≤ {self.factor:.15g} × {self.other}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """The sides of one contrast."""

    # builders by name; each call of one starts from the same weights. The others are held against the first.
    sides: Mapping[str, Callable[[], Training]]
    amount: Amount  # what a step gets done
    rtol: float  # how far logits, losses and weights may differ, relative to the largest number of an array
    steps: int = 5  # how many steps must agree
    claims: Sequence[SpeedClaim] = ()  # what must hold of their times on any machine

    def __post_init__(self) -> None:
        """Refuse a contrast that compares nothing, or claims something of a side that it has not."""
        if len(self.sides) < 2:  # noqa: PLR2004 - a side and another
            raise ValueError(f"expected two sides or more, found {', '.join(self.sides) or 'none'}")
        if not 0 < self.rtol < 1 or self.steps < 1:
            raise ValueError(f"expected 0 < rtol < 1 and one step or more, found {self.rtol} and {self.steps}")
        for one in self.claims:
            if unknown := {one.side, one.other} - set(self.sides):
                raise ValueError(f"expected claims about {', '.join(self.sides)}, found {', '.join(sorted(unknown))}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ContrastCase:
    """A contrast by its name, in each size; built inside the test."""

    name: str  # the pytest id
    needs: Mapping[str, str]  # modules that must be installed, each with the extra that brings it
    # what builds it for small and for full hardware; functions of a module, as another process calls them, too
    sizes: Mapping[Size, Callable[[], Contrast]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What a framework says of a step, and of the batch that it is fed with."""

    matmul_flops: int  # of the products and convolutions of one step, two for a multiplication with an addition
    products: frozenset[str]  # the types of their operands, each with whether the framework may use fewer bits for it
    fused_attention: tuple[str, ...] = ()  # kernels that compute attention in one, by name
    relayout_bytes: int = 0  # bytes of inputs that the step copies into another order of axes
    loading: tuple[str, ...] = ()  # what loading a batch launches or transfers by JAX, in words


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """How far a side is from the first one, at one stage."""

    side: str
    stage: str  # `weights`, `logits`, `loss function`, `loss` or `weights after training`
    place: str  # which array, or which step
    error: float = inf  # relative to the largest number of the array; infinite where shapes differ or a number is NaN
    ours: float = nan  # the side's number there
    theirs: float = nan  # the first side's


@dataclass(frozen=True, slots=True, kw_only=True)
class Alone:
    """A side in a process of its own."""

    first_step_s: float  # from building the model to the end of its first step, compiling included
    step_ns: tuple[int, ...]  # time of a step, each the mean of some in a row
    peak_bytes: (
        int  # what it held at most: of the device where that can be read, else of the process beyond its imports
    )
    of_device: bool  # whether the peak is the device's

    @property
    def run_ns(self) -> float:
        """Median time of a step."""
        return median(self.step_ns)

    @property
    def spread(self) -> float:
        """How far a middle half of its steps reaches, relative to their median."""
        ordered = sorted(self.step_ns)
        quarter = len(ordered) // 4
        return (ordered[-1 - quarter] - ordered[quarter]) / self.run_ns

    def ratio(self, other: Alone) -> float:
        """How long a step takes in multiples of another side's."""
        return self.run_ns / other.run_ns
