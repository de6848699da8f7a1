"""Public names of before 2026-11-23. They work until 0.3, with a note."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from jaxgate.model.workloads.claim import Claim, KnownBreak, claim
from jaxgate.model.workloads.computation import Computation
from jaxgate.model.workloads.workload import Case, Family, Size, Tolerance


def _note(old: str, new: str, *, stacklevel: int) -> None:
    text = f"{old}(...) is written {new} now; the old name works until jaxgate 0.3"
    warnings.warn(text, FutureWarning, stacklevel=stacklevel)


def _claimed(old: str, formula: str, why: str, known_break: KnownBreak | None) -> Claim:
    _note(old, f'claim("{formula}", why)', stacklevel=4)
    return claim(formula, why, known_break=known_break)


def at_most(
    factor: float, quantity: str, *, of: str = "reference", why: str = "", known_break: KnownBreak | None = None
) -> Claim:
    """``claim("quantity <= factor * of", why)``."""
    return _claimed("at_most", f"{quantity} <= {factor:.15g} * {of}", why, known_break)


def at_least(
    factor: float, quantity: str, *, of: str = "reference", why: str = "", known_break: KnownBreak | None = None
) -> Claim:
    """``claim("quantity >= factor * of", why)``."""
    return _claimed("at_least", f"{quantity} >= {factor:.15g} * {of}", why, known_break)


def equal(quantity: str, *, to: str | int, why: str = "", known_break: KnownBreak | None = None) -> Claim:
    """``claim("quantity == to", why)``."""
    return _claimed("equal", f"{quantity} == {to}", why, known_break)


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
    """``@Family(family).workload(sentence, sweep=sweep)`` above a builder whose ``Computation`` has ``claims=``."""
    _note("cases", "@Family(name).workload(sentence) above the builder", stacklevel=3)
    made = Family(family)

    def with_claims(*size: Any, **params: Any) -> Computation:
        return replace(build(*size, **params), claims=claims(**params))

    made.workload(sentence, sweep=sweep, sizes=sizes, devices=devices, tolerances=tolerances)(with_claims)
    return tuple(made)
