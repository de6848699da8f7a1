"""Public names of before 2026-11-23. They work until 0.3, with a note."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from jaxgate.model.claim import Claim, KnownBreak
from jaxgate.model.computation import Computation
from jaxgate.model.workload import Case, Family, Size, Tolerance


def _note(old: str, new: str) -> None:
    warnings.warn(f"{old} is written {new} now; the old name works until jaxgate 0.3", FutureWarning, stacklevel=3)


def at_most(
    factor: float, quantity: str, *, of: str = "reference", why: str = "", known_break: KnownBreak | None = None
) -> Claim:
    """``claim("quantity <= factor * of", why)``."""
    found = Claim(quantity=quantity, relation="<=", factor=factor, other=of, why=why, known_break=known_break)
    _note("at_most(...)", f'claim("{found}", why)')
    return found


def at_least(
    factor: float, quantity: str, *, of: str = "reference", why: str = "", known_break: KnownBreak | None = None
) -> Claim:
    """``claim("quantity >= factor * of", why)``."""
    found = Claim(quantity=quantity, relation=">=", factor=factor, other=of, why=why, known_break=known_break)
    _note("at_least(...)", f'claim("{found}", why)')
    return found


def equal(quantity: str, *, to: str | int, why: str = "", known_break: KnownBreak | None = None) -> Claim:
    """``claim("quantity == to", why)``."""
    factor, other = (to, "one") if isinstance(to, int) else (1.0, to)
    found = Claim(quantity=quantity, relation="==", factor=factor, other=other, why=why, known_break=known_break)
    _note("equal(...)", f'claim("{found}", why)')
    return found


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
    _note("cases(...)", "@Family(name).workload(sentence) above the builder")
    made = Family(family)

    def with_claims(*size: Any, **params: Any) -> Computation:
        return replace(build(*size, **params), claims=claims(**params))

    made.workload(sentence, sweep=sweep, sizes=sizes, devices=devices, tolerances=tolerances)(with_claims)
    return tuple(made)
