"""What a workload builds: functions, the arguments to call them with, and what must hold of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from jaxgate.ext.growth.model import Growth
from jaxgate.model.claim import Claim
from jaxgate.model.numbers import Contract


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Which argument carries the samples, and how many one call must really process.

    Attributes:
        argument: Position of the argument, or its name if it is passed by keyword.
        size: Samples in one call.
        axis: The samples' axis in every leaf of that argument.
        unit: What the samples are called where the report shows their rate.
    """

    argument: int | str
    size: int
    axis: int = 0
    unit: str = "samples"


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """What one call gets done, in the unit that people count in; shown per second, and never gated.

    Attributes:
        count: Units in one call.
        unit: ``samples``, ``tokens``, ``steps``; ``B`` for a collective that moves so many bytes.
        bus_factor: Of a collective: bytes that cross each link for each byte of ``count``, as nccl-tests defines it
            (all-reduce over n devices 2 (n - 1) / n; all-gather and reduce-scatter (n - 1) / n; permute 1).
        series: Name that cases share which do the same on other numbers of devices, such as ``data-parallel, weak``:
            their rates side by side are the scaling efficiency.
    """

    count: float
    unit: str
    bus_factor: float | None = None
    series: str = ""

    def __post_init__(self) -> None:
        """Refuse an amount that has no rate."""
        if not (0 < self.count < math.inf) or not self.unit.strip():
            raise ValueError(f"expected a positive number of units, found {self.count} {self.unit!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """Another way of doing the same, or the same in another size: compiled for its facts, never run.

    Attributes:
        function: Jitted by its author; a plain function is put under ``jax.jit``.
        args: Positional arguments; ``jax.ShapeDtypeStruct`` with a sharding stands for an array.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MaxBatch:
    """Asks for the largest batch that fits a budget of memory; found by compiling, nothing is run.

    Attributes:
        budget_bytes: What one call's ``peak_bytes`` may be; ``None`` for all memory of the device that the case is
            compiled for. A CPU does not say how much that is, so there the case is INVALID without a number.
        args_at: Arguments of subject and reference at a batch; ``jax.ShapeDtypeStruct`` stands for an array.
        step: The batch is a multiple of it.
        limit: The largest batch that is tried; a function that fits there too makes the case INVALID.
    """

    budget_bytes: int | None
    args_at: Callable[[int], tuple[Any, ...]]
    step: int
    limit: int

    def __post_init__(self) -> None:
        """Refuse a search that has no end."""
        if (self.budget_bytes is not None and self.budget_bytes <= 0) or self.step < 1 or self.limit < self.step:
            raise ValueError(
                f"expected a positive budget, or None, and a limit of at least one step, found {self.budget_bytes} bytes, "
                f"step {self.step}, limit {self.limit}"
            )


STEPS = 3
"""First calls of a case, each fed from the one before: the commonest retrace comes at the second, and shows whether it settles
at the third."""
MAX_STEPS = 20
"""Steps in all: a trace at every tenth comes twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Computation:
    """What a workload builds: functions, the arguments to call them with, and what must hold.

    Attributes:
        subject: The good way. Jitted by its author; a plain function is put under ``jax.jit``, unless ``eager``.
        args: Positional arguments; arrays live on the device. Never consumed: donated ones are copied. Where
            ``jax.ShapeDtypeStruct`` stands for one, the subject is compiled and never called.
        kwargs: Keyword arguments.
        reference: The naive way, called with the same arguments.
        claims: What must hold between subject and reference on any hardware.
        carry: Arguments that the next step takes from the result, by position or name: each takes all of it, or the
            element that has its shape. Without it the donated ones do, where the result has something of their shape.
        next_args: For other loops: makes the positional arguments of the next step from the output and the arguments of
            this one. Without any of the three, each step starts from the same arguments.
        expected_traces: Traces that the first ``STEPS`` calls need. From ``STEPS`` on each call may trace, by design: what later
            calls trace is not judged.
        batch: Where the samples are; checked to be processed in full.
        amount: What one call gets done, in its natural unit; the samples of ``batch`` by default.
        analytic_flops: Matrix-multiplication FLOPs of one call by a closed formula.
        alternatives: Other ways, by name, for claims such as ``temp_bytes <= alternatives``.
        max_batch: Makes ``largest_batch`` a fact of subject and reference.
        contract: What the time of a call means; ``latency`` for latency: each call is waited for, and single
            calls are kept for p50 and p99.
        rtol: Relative tolerance between the outputs of subject and reference. Where a device multiplies float32 in fewer bits
            (TensorFloat-32, TPUs), four such roundings of an output's largest element are allowed besides.
        atol: Absolute tolerance between them; a tenth of ``rtol`` by default, as suits numbers of about 0.1.
        grow: Sizes at which the subject is compiled as well, and what must hold between them (docs/growth.md).
        eager: Whether the subject is plain Python around jitted calls (the body of a training loop, a function under
            ``nnx.jit``): it and its reference are called as they are, with deep copies of the arguments. Without
            ``carry`` and ``next_args`` each step is called with the same objects, which it may have changed.
    """

    subject: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    reference: Callable[..., Any] | None = None
    claims: Sequence[Claim] = ()
    carry: int | str | Sequence[int | str] | None = None
    next_args: Callable[[Any, tuple[Any, ...]], tuple[Any, ...] | None] | None = None
    expected_traces: int = 1
    batch: Batch | None = None
    amount: Amount | None = None
    analytic_flops: int | None = None
    alternatives: Mapping[str, Alternative] = field(default_factory=dict)
    max_batch: MaxBatch | None = None
    contract: Contract = "throughput"
    rtol: float = 1e-4
    atol: float = None  # type: ignore[assignment]  # a number from here on
    eager: bool = False
    grow: Growth | None = None

    def __post_init__(self) -> None:
        """Fill in what follows from other fields; refuse what would mean something else than was meant."""
        if self.contract not in get_args(Contract):
            raise ValueError(f"expected a contract, one of {', '.join(get_args(Contract))}, found {self.contract!r}")
        if self.carry is not None and self.next_args is not None:
            raise TypeError("expected carry= or next_args=, found both; either says what the next step is called with")
        if self.grow is not None and (self.eager or not isinstance(self.grow, Growth)):
            raise TypeError(
                f"expected grow=Growth(at, layers=[2, 4, 8]) for a function that jax.jit can trace, found {self.grow!r}"
            )
        if not all(isinstance(claim, Claim) for claim in self.claims):
            raise TypeError(f"expected claims such as claim('temp_bytes <= reference', 'why'), found {self.claims!r}")
        if self.atol is None:
            object.__setattr__(self, "atol", self.rtol / 10)
        if self.amount is None and self.batch is not None:
            object.__setattr__(self, "amount", Amount(count=self.batch.size, unit=self.batch.unit))
