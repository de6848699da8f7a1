"""Contrasts: one training step in several frameworks, with the same weights, data, loss and precision."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, ClassVar, Literal

from jaxgate.model.claim import RUN_NS, Claim
from jaxgate.model.computation import Amount
from jaxgate.model.decision import Decision
from jaxgate.model.numbers import STRICT
from jaxgate.settings import Size

Framework = Literal["jax", "torch"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """A training step of one framework, with a state of its own and one batch.

    Attributes:
        framework: Whose step it is.
        state: Of JAX the trees that the step carries on, the parameters first, as NumPy arrays. Of PyTorch the module and
            its optimiser, which the step changes in place.
        inputs: The inputs of the batch [batch, ...], as the framework's step takes them.
        labels: The labels of the batch, likewise.
        step: Of JAX a jitted function: ``step(*state, inputs, labels)`` gives the next state and, last, the loss. Of PyTorch
            ``step(inputs, labels)`` gives the loss.
        logits: Of JAX ``logits(parameters, inputs)``, of PyTorch ``logits(inputs)``: what the loss is of.
        loss: The loss of logits and labels, a scalar.
        load: Makes a batch on the host, as the input pipeline does.
        compiled: Of PyTorch whether the step is compiled; one that is not then is an error.
        weights: From the parameters of JAX, or the module of PyTorch, to NumPy arrays under names and in layouts that all
            sides share.
    """

    framework: Framework
    state: tuple[Any, ...]
    inputs: Any
    labels: Any
    step: Callable[..., Any]
    logits: Callable[..., Any]
    loss: Callable[[Any, Any], Any]
    load: Callable[[], Any]
    weights: Callable[[Any], Mapping[str, Any]]
    compiled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedClaim:
    """That a step of one side takes at most a multiple of another's, on any machine.

    Attributes:
        side: Which side must be quick.
        other: Which it is held against.
        factor: The multiple.
        why: Half a sentence for whoever sees it broken.
    """

    side: str
    other: str
    factor: float = 1.0
    why: str = ""

    @property
    def claim(self) -> Claim:
        """The same as a gate claims it of a subject and its reference."""
        return Claim(quantity=RUN_NS, relation="<=", factor=self.factor, why=self.why)

    def __str__(self) -> str:
        """Read as ``torch compiled ≤ 1 × torch eager``."""
        return f"{self.side} ≤ {self.factor:.15g} × {self.other}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """The sides of one contrast.

    Attributes:
        sides: Builders by name; each call of one starts from the same weights. The others are held against the first.
        amount: What a step gets done.
        rtol: How far logits, losses and weights may differ between the sides, relative to the largest number of an array.
        steps: How many steps must agree.
        claims: What must hold of their times on any machine.
    """

    sides: Mapping[str, Callable[[], Training]]
    amount: Amount
    rtol: float
    steps: int = 5
    claims: Sequence[SpeedClaim] = ()

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
    """A contrast by its name, in each size; built inside the test.

    Attributes:
        family: The topic; ``-k`` finds it.
        sentence: The pytest id.
        needs: Modules that must be installed, each with the extra that brings it.
        sizes: What builds it for small and for full hardware.
    """

    family: str
    sentence: str
    needs: Mapping[str, str]
    sizes: Mapping[Size, Callable[[], Contrast]]

    @property
    def name(self) -> str:
        """The name in reports: ``family/sentence``."""
        return f"{self.family}/{self.sentence}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What a framework says of a step, and of the batch that it is fed with.

    Attributes:
        matmul_flops: Of the products and convolutions of one step, two for a multiplication with an addition.
        products: The types of their operands, each with whether the framework may use fewer bits for it.
        fused_attention: Kernels that compute attention in one, by name.
        relayout_bytes: Bytes of inputs that the step copies into another order of axes.
        loading: What loading a batch launches or transfers by JAX, in words.
    """

    matmul_flops: int
    products: frozenset[str]
    fused_attention: tuple[str, ...] = ()
    relayout_bytes: int = 0
    loading: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """How far a side is from the first one, at one stage.

    Attributes:
        side: Which side.
        stage: ``weights``, ``logits``, ``loss function``, ``loss`` or ``weights after training``.
        place: Which array, or which step.
        error: Largest distance, relative to the largest number of the array; infinite where shapes differ or a number is NaN.
        ours: The side's number there.
        theirs: The first side's.
    """

    side: str
    stage: str
    place: str
    error: float
    ours: float
    theirs: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SideLaunch:
    """A side in a process of its own.

    Attributes:
        first_step_s: From building the model to the end of its first step, compiling included.
        step_ns: Time of a step, each the mean of some in a row.
        peak_bytes: What it held at most: of the device where that can be read, else of the process, beyond its imports.
        of_device: Whether the peak is the device's.
    """

    __pydantic_config__: ClassVar[Any] = STRICT

    first_step_s: float
    step_ns: tuple[int, ...]
    peak_bytes: int
    of_device: bool

    @property
    def run_ns(self) -> float:
        """Median time of a step."""
        return median(self.step_ns)

    def ratio(self, other: SideLaunch) -> float:
        """How long a step takes in multiples of another side's."""
        return self.run_ns / other.run_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class ContrastSide:
    """What was found out about one side.

    Attributes:
        name: The side.
        traits: What its framework says.
        run_ns: Median time of a step in the duel.
        ratio: Its time in multiples of the first side's, by a duel in one process; ``None`` of the first side.
        launch: The side in a process of its own; ``None`` where that failed.
    """

    name: str
    traits: Traits
    run_ns: float | None = None
    ratio: Decision | None = None
    launch: SideLaunch | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContrastResult:
    """What a contrast shows.

    Attributes:
        amount: What a step gets done.
        sides: Each side, the first one first.
        differences: How far the sides are apart, stage by stage.
        steps: How many steps were compared.
        notes: What to know before the figures are quoted.
    """

    amount: Amount
    sides: tuple[ContrastSide, ...]
    differences: tuple[Difference, ...]
    steps: int
    notes: tuple[str, ...] = field(default=())
