"""Workloads: a JAX computation with a reason to exist, and what must hold for it on any hardware."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

from jaxgate.model.numbers import Contract, Facts, Phases

RUN_NS = "run_ns"
"""The steady-state time of a call: no number of one side, but decided by a duel with the reference."""

DERIVED = frozenset({"state_bytes", "peak_bytes"})
"""Sums of facts, which mean the same on every backend."""

QUANTITIES = frozenset(f.name for f in fields(Facts)) | frozenset(f.name for f in fields(Phases)) | DERIVED | {RUN_NS}
"""What a claim may speak of. ``analytic_flops`` and plain numbers may stand on its right side only."""

CLAIMED = QUANTITIES - {RUN_NS}
"""What may be held against a plain number."""

_SIGNS = {"<=": "≤", ">=": "≥", "==": "="}


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A statement that must hold on any hardware: ``quantity relation factor x other``.

    Attributes:
        quantity: A fact or phase of the subject.
        relation: How it must compare.
        factor: What the other side is multiplied with.
        other: ``reference`` (the same quantity of the reference), a quantity of the subject, or ``one``.
        why: Half a sentence for whoever sees it broken.
    """

    quantity: str
    relation: Literal["<=", ">=", "=="]
    factor: float = 1.0
    other: str = "reference"
    why: str = ""

    def __post_init__(self) -> None:
        """Refuse a quantity that does not exist: such a claim could never be broken."""
        if RUN_NS in (self.quantity, self.other) and not self._can_be_duelled():
            raise ValueError(
                f"a claim that {self.quantity} {self.relation} {self.factor} x {self.other} cannot be decided: a duel "
                f'holds {RUN_NS} against the reference; expected at_most(factor, "{RUN_NS}") or '
                f'at_least(factor, "{RUN_NS}") with a positive factor, and no other side'
            )
        known = QUANTITIES | {"reference", "one", "analytic_flops"}
        if self.quantity not in QUANTITIES or self.other not in known:
            raise ValueError(
                f"a claim about {self.quantity!r} against {self.other!r} cannot be checked; "
                f"expected one of: {', '.join(sorted(QUANTITIES))}"
            )
        if self.other == self.quantity or not math.isfinite(self.factor) or self.relation not in _SIGNS:
            raise ValueError(
                f"a claim that {self.quantity} {self.relation} {self.factor} x {self.other} says nothing; expected a "
                "finite factor, one of <=, >= and ==, and another quantity on the right"
            )

    def _can_be_duelled(self) -> bool:
        sides = (self.quantity, self.other) == (RUN_NS, "reference")
        return sides and self.relation in ("<=", ">=") and math.isfinite(self.factor) and self.factor > 0

    @property
    def needs_duel(self) -> bool:
        """Whether only a duel of subject and reference decides it."""
        return self.quantity == RUN_NS

    def __str__(self) -> str:
        """Read as a formula, for example ``compile_ns <= 0.5 x reference``."""
        sign = _SIGNS[self.relation]
        if self.other == "one":
            return f"{self.quantity} {sign} {self.factor:.15g}"
        factor = "" if self.factor == 1.0 else f"{self.factor:.15g} × "
        return f"{self.quantity} {sign} {factor}{self.other}"


def at_most(factor: float, quantity: str, *, of: str = "reference", why: str = "") -> Claim:
    """Claim that a quantity of the subject is at most ``factor`` times the other side's."""
    return Claim(quantity=quantity, relation="<=", factor=factor, other=of, why=why)


def at_least(factor: float, quantity: str, *, of: str = "reference", why: str = "") -> Claim:
    """Claim that a quantity of the subject is at least ``factor`` times the other side's."""
    return Claim(quantity=quantity, relation=">=", factor=factor, other=of, why=why)


def equal(quantity: str, *, to: str | int, why: str = "") -> Claim:
    """Claim that a quantity of the subject equals another quantity of it, or a number."""
    if isinstance(to, int):
        return Claim(quantity=quantity, relation="==", factor=to, other="one", why=why)
    return Claim(quantity=quantity, relation="==", other=to, why=why)


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
        if self.fact not in {f.name for f in fields(Facts)}:
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
class Computation:
    """What a workload builds: functions and the arguments to call them with.

    Attributes:
        subject: The good way. Jitted by its author; a plain function is put under ``jax.jit``, unless ``host``.
        args: Positional arguments; arrays live on the device. Never consumed: donated ones are copied.
        kwargs: Keyword arguments.
        reference: The naive way, called with the same arguments.
        next_args: Makes the positional arguments of the next step from the output and the arguments of
            this one. Without it donated arguments are fed from a part of the result that has their shape.
            Where that is not to be had, each step starts from the same arguments.
        expected_traces: Traces that ``STEPS`` threaded calls need.
        batch: Where the samples are; checked to be processed in full.
        analytic_flops: Matrix-multiplication FLOPs of one call by a closed formula.
        contract: What the time of a call means; ``blocked`` for latency: each call is waited for, and single
            calls are kept for p50 and p99.
        rtol: Relative tolerance between the outputs of subject and reference.
        atol: Absolute tolerance between them.
        host: Whether the subject is plain Python around jitted calls (the body of a training loop, a function under
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
    contract: Contract = "pipelined"
    rtol: float = 1e-4
    atol: float = 1e-5
    host: bool = False

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
    """

    family: str
    sentence: str
    build: Callable[[], Computation]
    claims: tuple[Claim, ...] = ()
    tolerances: tuple[Tolerance, ...] = ()

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


def cases(
    family: str,
    sentence: str,
    build: Callable[..., Computation],
    sweep: Iterable[Mapping[str, Any]],
    claims: Callable[..., tuple[Claim, ...]],
    *,
    tolerances: tuple[Tolerance, ...] = (),
) -> tuple[Case, ...]:
    """Make one case per set of parameters.

    Args:
        family: Name of the family.
        sentence: Template of the pytest id, filled with the parameters.
        build: Called with the parameters inside the test.
        sweep: The parameter sets.
        claims: Called with the parameters; what must hold for that case.
        tolerances: Facts of each case that may move further, or less far, than the policy says.
    """

    def bind(params: Mapping[str, Any]) -> Case:
        return Case(
            family=family,
            sentence=sentence.format(**params),
            build=lambda: build(**params),
            claims=claims(**params),
            tolerances=tolerances,
        )

    return tuple(bind(params) for params in sweep)
