"""Claims: what must hold between a subject and its reference on any hardware, and what a release is known to break."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any, Literal

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from jaxgate.model.numbers import CALLED_FACTS, Facts, Phases

RUN_NS = "run_ns"
"""The steady-state time of a call: no number of one side, but decided by a duel with the reference."""

DERIVED = frozenset({"state_bytes", "peak_bytes"})
"""Sums of facts, which mean the same on every backend."""

QUANTITIES = frozenset(f.name for f in fields(Facts)) | frozenset(f.name for f in fields(Phases)) | DERIVED | {RUN_NS}
"""What a claim may speak of. ``analytic_flops`` and plain numbers may stand on its right side only."""

USES = "uses "
"""Begins the quantity that counts how often a program calls what has a text in its name: ``uses cudnn``."""
CLAIMED = QUANTITIES - {RUN_NS}
"""What may be held against a plain number."""

ALTERNATIVES = "alternatives"
"""Right side of a claim that is held against other ways of doing the same, which are only compiled."""

_OF_CALLS = {
    *CALLED_FACTS, *(f.name for f in fields(Phases)), "launches", "host_transfers", "host_reads", "host_waits", RUN_NS,
}  # fmt: skip
"""Quantities that only calls and clocks show."""

_SIGNS = {"<=": "≤", ">=": "≥", "==": "="}


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownBreak:
    """A release with which a claim is known not to hold: reported as an expected failure, and so is an unexpected pass.

    Attributes:
        jax: Releases, as a version specifier: ``<0.12``.
        platform: Where: ``cpu``, ``gpu`` or ``tpu``.
        since: The day on which it was seen, ``YYYY-MM-DD``.
        why: What the release does instead.
    """

    jax: str
    platform: str
    since: str
    why: str

    def __post_init__(self) -> None:
        """Refuse an expectation without a reason, a day or an end: it would excuse everything."""
        try:
            SpecifierSet(self.jax)
        except InvalidSpecifier:
            raise ValueError(f"expected releases such as <0.12, found {self.jax!r}") from None
        if not self.jax.strip() or not self.platform or not self.why.strip():
            raise ValueError("expected the releases, the platform and the reason of a known break, found one empty")
        if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", self.since):
            raise ValueError(f"expected the day on which it was seen as YYYY-MM-DD, found {self.since!r}")

    def covers(self, jax: str, platform: str) -> bool:
        """Whether it speaks of this release on this platform."""
        return platform == self.platform and SpecifierSet(self.jax).contains(jax, prereleases=True)

    def __str__(self) -> str:
        """Read as ``jax <0.12 on cpu, seen 2026-11-21: why``."""
        return f"jax {self.jax} on {self.platform}, seen {self.since}: {self.why}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A statement that must hold on any hardware: ``quantity relation factor x other``.

    Attributes:
        quantity: A fact or phase of the subject.
        relation: How it must compare.
        factor: What the other side is multiplied with.
        other: ``reference`` (the same quantity of the reference), ``alternatives`` (of the best of these), a quantity of the
            subject, or ``one``.
        why: Half a sentence for whoever sees it broken.
        known_break: A release with which it is known not to hold.
    """

    quantity: str
    relation: Literal["<=", ">=", "=="]
    factor: float = 1.0
    other: str = "reference"
    why: str = ""
    known_break: KnownBreak | None = None

    def __post_init__(self) -> None:
        """Refuse a quantity that does not exist: such a claim could never be broken."""
        if RUN_NS in (self.quantity, self.other) and not self._can_be_duelled():
            raise ValueError(
                f"a claim that {self.quantity} {self.relation} {self.factor} x {self.other} cannot be decided: a duel "
                f"holds {RUN_NS} against the reference; expected '{RUN_NS} <= 0.8 * reference' or "
                f"'{RUN_NS} >= 2 * reference', with a positive factor"
            )
        if self.known_break is not None and self.needs_duel:
            raise ValueError(f"a claim about {RUN_NS} has no known break: accept a slow claim by a waiver, for a while")
        known = QUANTITIES | {"reference", "one", "analytic_flops", ALTERNATIVES}
        uses = self.quantity.startswith(USES) and self.other == "one"
        if not uses and (self.quantity not in QUANTITIES or self.other not in known):
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

    @property
    def needs_calls(self) -> bool:
        """Whether its numbers come from calls or clocks; a program that is only compiled has none of them."""
        return not {self.quantity, self.other}.isdisjoint(_OF_CALLS)

    def __str__(self) -> str:
        """Read as a formula, for example ``compile_ns <= 0.5 x reference``."""
        sign = _SIGNS[self.relation]
        if self.other == "one":
            return f"{self.quantity} {sign} {self.factor:.15g}"
        factor = "" if self.factor == 1.0 else f"{self.factor:.15g} × "
        return f"{self.quantity} {sign} {factor}{self.other}"


_FORMULA = re.compile(
    r"\s*(?P<quantity>uses \S+|\w+)\s*(?P<relation><=|>=|==|≤|≥|=)\s*"
    r"(?:(?P<factor>[-+]?[\d.][\d_.]*(?:e[-+]?\d+)?)\s*(?:[*×]\s*(?=[A-Za-z_]))?)?(?P<other>[A-Za-z_]\w*)?\s*"
)
_WRITTEN: Mapping[str, Literal["<=", ">=", "=="]] = {
    "<=": "<=", "≤": "<=", ">=": ">=", "≥": ">=", "==": "==", "=": "=="
}  # fmt: skip


def claim(formula: str, why: str = "", *, known_break: KnownBreak | None = None) -> Claim:
    """Claim what must hold on any hardware, as the report prints it and a waiver names it.

    Args:
        formula: ``quantity relation [factor *] other``: ``temp_bytes <= 0.5 * reference``, ``collectives == 1``,
            ``stablehlo_ops == alternatives``, ``run_ns <= 0.8 * reference``. The relation is ``<=``, ``>=`` or ``==``; the
            other side is ``reference``, ``alternatives``, ``analytic_flops``, a quantity of the subject, or a number.
        why: Half a sentence for whoever sees it broken.
        known_break: A release with which it is known not to hold.

    Raises:
        ValueError: If the formula cannot be read, or nothing could break it.
    """
    found = _FORMULA.fullmatch(formula)
    if found is None or not (found["factor"] or found["other"]):
        raise ValueError(
            f"expected a claim such as 'temp_bytes <= 0.5 * reference' or 'collectives == 1', found {formula!r}"
        )
    return Claim(
        quantity=found["quantity"],
        relation=_WRITTEN[found["relation"]],
        factor=_number(found["factor"], formula),
        other=found["other"] or "one",
        why=why,
        known_break=known_break,
    )


def _number(text: str | None, formula: str) -> float:
    if text is None:
        return 1.0
    try:
        return int(text) if text.lstrip("+-").replace("_", "").isdigit() else float(text)
    except ValueError:
        raise ValueError(f"expected a number in a claim, found {text!r} in {formula!r}") from None


_RELATIONS = {"max_": "<=", "min_": ">=", "exact_": "=="}


def _using(name: object) -> Claim:
    if not isinstance(name, str) or not re.fullmatch(r"\S+", name):
        raise TypeError(f"uses= expects a name or several, such as 'cudnn', found {name!r}")
    return Claim(quantity=f"{USES}{name}", relation=">=", other="one", why="its program must call it")


def split_claims(options: Mapping[str, Any]) -> tuple[tuple[Claim, ...], dict[str, Any]]:
    """Take the claims out of the keywords of ``gate``.

    Returns:
        A claim for each keyword that is one, and all other keywords.

    Raises:
        TypeError: If a keyword starts as a claim and names no quantity, or its value is no number.
    """
    claims, others = [], {}
    for keyword, value in options.items():
        if keyword == "uses":
            claims += [_using(name) for name in (value if isinstance(value, (list, tuple)) else (value,))]
            continue
        start = next((start for start in _RELATIONS if keyword.startswith(start)), None)
        if start is None:
            others[keyword] = value
            continue
        quantity = keyword.removeprefix(start)
        if quantity not in CLAIMED:
            hint = (
                f"; for time claims=[claim('{RUN_NS} <= 0.8 * reference')] holds it against a reference"
                if quantity == RUN_NS
                else ""
            )
            raise TypeError(
                f"{keyword}= claims nothing: expected {start} and one of {', '.join(sorted(CLAIMED))}{hint}"
            )
        if isinstance(value, bool) or not isinstance(value, Real):
            raise TypeError(f"{keyword}= expects a number, found {value!r}")
        claims.append(Claim(quantity=quantity, relation=_RELATIONS[start], factor=float(value), other="one"))  # type: ignore[arg-type]  # both are names of the tables above
    return tuple(claims), others
