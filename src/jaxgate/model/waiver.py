"""A waiver: a loss that somebody accepts, with a name, a reason and a last day."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from jaxgate.model.claim import claim
from jaxgate.model.numbers import COMPARISONS, FACT_NAMES

TIME = "time"
"""The quantity of a waiver that accepts a slow-down; its ``up_to`` is a ratio to the baseline."""

_SIGNS = frozenset("<>=≤≥")


def check_account(case: str, *, owner: str, reason: str) -> None:
    """Refuse what is accepted of no case, by nobody or for no reason.

    Raises:
        ValueError: With the key.
    """
    family, _, sentence = case.partition("/")
    if not family.strip() or not sentence.strip():
        raise ValueError(f"key `case`: expected family/sentence, found {case!r}")
    for name, words in (("owner", owner), ("reason", reason)):
        if not words.strip():
            raise ValueError(f"key `{name}`: expected some words, found none")


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiver:
    """One entry of ``waivers.toml``."""

    case: str  # `family/sentence`
    # what may be worse: a fact's name, `time`, or a claim's formula, which becomes the one that is printed
    quantity: str
    # the worst value accepted, in the unit of the quantity; for `time` and claims about `run_ns` the ratio to the
    # baseline, or to the reference, that the worse bound of a duel may reach
    up_to: float
    owner: str  # who answers for it
    reason: str  # why the loss is accepted
    expires: date  # the last day (UTC) on which it applies
    jax: str = ""  # the releases with which it applies, as a version specifier such as `>=0.12`; empty for every one

    def __post_init__(self) -> None:
        """Refuse what could never apply, or would apply to anything."""
        check_account(self.case, owner=self.owner, reason=self.reason)
        if self.is_claim:
            try:
                object.__setattr__(self, "quantity", str(claim(self.quantity)))
            except ValueError as error:
                raise ValueError(f"key `quantity`: {error}") from None
        fact = self.quantity.partition(" of ")[0]  # ``temp_bytes of step``: of one program that plain Python launches
        if fact not in FACT_NAMES | COMPARISONS | {TIME} and not self.is_claim:
            raise ValueError(
                "key `quantity`: expected a fact's name such as `temp_bytes`, a claim such as "
                f"`donated_bytes >= 1`, or `{TIME}`, found {self.quantity!r}"
            )
        if not math.isfinite(self.up_to):
            raise ValueError(f"key `up_to`: expected a finite number, found {self.up_to}")
        if self.quantity == TIME and self.up_to <= 1:
            raise ValueError(f"key `up_to`: expected a ratio to the baseline above 1, found {self.up_to:g}")
        try:
            SpecifierSet(self.jax)
        except InvalidSpecifier:
            raise ValueError(f"key `jax`: expected releases such as >=0.12, found {self.jax!r}") from None

    def covers(self, jax: str) -> bool:
        """Whether it applies with this release."""
        return SpecifierSet(self.jax).contains(jax, prereleases=True)

    @property
    def is_claim(self) -> bool:
        """Whether it speaks of a claim."""
        return not _SIGNS.isdisjoint(self.quantity)
