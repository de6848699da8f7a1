"""Workloads: a JAX computation with a reason to exist, in the sizes that small and large hardware run."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, get_args

from jaxgate.model.claim import Claim
from jaxgate.model.numbers import FACT_NAMES, Contract
from jaxgate.settings import Size


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """How far one fact of one workload may move, in place of the policy for all: see ``docs/policy.md``.

    Attributes:
        fact: The fact.
        relative: Share of the baseline that it may move.
        absolute: Units that it may move besides.
        why: Why this workload needs it.
    """

    fact: str
    relative: float = 0.0
    absolute: int = 0
    why: str

    def __post_init__(self) -> None:
        """Refuse a tolerance that nobody can account for, or that lets anything pass."""
        if self.fact not in FACT_NAMES:
            raise ValueError(f"expected a fact such as temp_bytes, found {self.fact!r}")
        if not self.why.strip():
            raise ValueError(f"expected the reason why {self.fact} may move here (why=...), found none")
        if not (0 <= self.relative < math.inf and 0 <= self.absolute < math.inf):
            raise ValueError(f"expected tolerances of {self.fact} that are finite and not negative")


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Which argument carries the samples, and how many one call must really process.

    Attributes:
        argument: Position of the argument, or its name if it is passed by keyword.
        size: Samples in one call.
        axis: The samples' axis in every leaf of that argument.
    """

    argument: int | str
    size: int
    axis: int = 0


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
    """Asks for the largest batch whose ``peak_bytes`` stay within a budget; found by compiling, nothing is run.

    Attributes:
        budget_bytes: Memory of one device.
        args_at: Arguments of subject and reference at a batch; ``jax.ShapeDtypeStruct`` stands for an array.
        step: The batch is a multiple of it.
        limit: The largest batch that is tried; a function that fits there too makes the case INVALID.
    """

    budget_bytes: int
    args_at: Callable[[int], tuple[Any, ...]]
    step: int
    limit: int

    def __post_init__(self) -> None:
        """Refuse a search that has no end."""
        if self.budget_bytes <= 0 or self.step < 1 or self.limit < self.step:
            raise ValueError(
                f"expected a positive budget and a limit of at least one step, found {self.budget_bytes} bytes, "
                f"step {self.step}, limit {self.limit}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Computation:
    """What a workload builds: functions and the arguments to call them with.

    Attributes:
        subject: The good way. Jitted by its author; a plain function is put under ``jax.jit``, unless ``eager``.
        args: Positional arguments; arrays live on the device. Never consumed: donated ones are copied. Where
            ``jax.ShapeDtypeStruct`` stands for one, the subject is compiled and never called.
        kwargs: Keyword arguments.
        reference: The naive way, called with the same arguments.
        next_args: Makes the positional arguments of the next step from the output and the arguments of
            this one. Without it donated arguments are fed from a part of the result that has their shape.
            Where that is not to be had, each step starts from the same arguments.
        expected_traces: Traces that ``STEPS`` threaded calls need.
        batch: Where the samples are; checked to be processed in full.
        analytic_flops: Matrix-multiplication FLOPs of one call by a closed formula.
        amount: What one call gets done, in its natural unit.
        alternatives: What claims ``of="alternatives"`` are held against, by name.
        max_batch: Makes ``largest_batch`` a fact of subject and reference.
        contract: What the time of a call means; ``latency`` for latency: each call is waited for, and single
            calls are kept for p50 and p99.
        rtol: Relative tolerance between the outputs of subject and reference.
        atol: Absolute tolerance between them.
        eager: Whether the subject is plain Python around jitted calls (the body of a training loop, a function under
            ``nnx.jit``): it and its reference are called as they are, with deep copies of the arguments. Without
            ``next_args`` each step is called with the same objects, which it may have changed.
    """

    subject: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    reference: Callable[..., Any] | None = None
    next_args: Callable[[Any, tuple[Any, ...]], tuple[Any, ...] | None] | None = None
    expected_traces: int = 1
    batch: Batch | None = None
    analytic_flops: int | None = None
    amount: Amount | None = None
    alternatives: Mapping[str, Alternative] = field(default_factory=dict)
    max_batch: MaxBatch | None = None
    contract: Contract = "throughput"
    rtol: float = 1e-4
    atol: float = 1e-5
    eager: bool = False

    def __post_init__(self) -> None:
        """Refuse a contract that does not exist: its times would mean something else than was meant."""
        if self.contract not in get_args(Contract):
            raise ValueError(f"expected a contract, one of {', '.join(get_args(Contract))}, found {self.contract!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A workload with concrete parameters.

    Attributes:
        family: Name of the family; also a folder under ``baselines/<hardware>/``.
        sentence: The pytest id; reads as a sentence, words joined by hyphens.
        build: Makes the computation. Called inside the test, never at import: it may touch devices.
        claims: What must hold between subject and reference on any hardware.
        tolerances: Facts that may move further, or less far, than the policy says.
        sizes: Builders for each size of hardware; empty where there is one size. ``build`` is one of them.
        devices: How many devices it uses.
    """

    family: str
    sentence: str
    build: Callable[[], Computation]
    claims: tuple[Claim, ...] = ()
    tolerances: tuple[Tolerance, ...] = ()
    sizes: Mapping[Size, Callable[[], Computation]] = field(default_factory=dict)
    devices: int = 1

    def __post_init__(self) -> None:
        """Refuse names that cannot be a file name or a ``-k`` word."""
        for name in (self.family, self.sentence):
            if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
                raise ValueError(f"{name!r} cannot name a case: expected letters, digits, '.', '_' and '-'")
        if len({tolerance.fact for tolerance in self.tolerances}) < len(self.tolerances):
            raise ValueError(f"{self.sentence}: expected one tolerance for each fact, found two for one")

    @property
    def name(self) -> str:
        """The name in reports and in the baseline: ``family/sentence``."""
        return f"{self.family}/{self.sentence}"

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that it has in some size on some hardware."""
        return (self.name, *(f"{self.name}.{size}" for size in self.sizes))

    def sized(self, size: Size, *, usual: Size) -> Case:
        """The case in one size; in another than the hardware's usual one it has a name, and a baseline, of its own."""
        if not self.sizes:
            return self
        sentence = self.sentence if size == usual else f"{self.sentence}.{size}"
        return replace(self, build=self.sizes[size], sentence=sentence, sizes={})


def cases(
    family: str,
    sentence: str,
    build: Callable[..., Computation],
    sweep: Iterable[Mapping[str, Any]],
    claims: Callable[..., tuple[Claim, ...]],
    *,
    tolerances: tuple[Tolerance, ...] = (),
    sizes: Mapping[Size, Any] | None = None,
    devices: int = 1,
) -> tuple[Case, ...]:
    """Make one case per set of parameters.

    Args:
        family: Name of the family.
        sentence: Template of the pytest id, filled with the parameters.
        build: Called with the parameters inside the test; with the size before them, if there are sizes.
        sweep: The parameter sets.
        claims: Called with the parameters; what must hold for that case, in every size.
        tolerances: Facts of each case that may move further, or less far, than the policy says.
        sizes: What ``build`` is given for ``small`` and for ``full`` hardware, as its first argument.
        devices: How many devices each case uses.

    Raises:
        ValueError: If a size is missing.
    """
    if sizes is not None and set(sizes) != set(get_args(Size)):
        raise ValueError(f"{family}: expected the sizes {', '.join(get_args(Size))}, found {', '.join(sizes)}")

    def bind(params: Mapping[str, Any]) -> Case:
        builders = {size: partial(build, chosen, **params) for size, chosen in (sizes or {}).items()}
        return Case(
            family=family,
            sentence=sentence.format(**params),
            build=builders.get("small", partial(build, **params)),
            claims=claims(**params),
            tolerances=tolerances,
            sizes=builders,
            devices=devices,
        )

    return tuple(bind(params) for params in sweep)
