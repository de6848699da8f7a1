"""Claims as keywords of ``gate``: ``max_temp_bytes=2_000_000``, ``exact_collectives=1``, ``min_aliased_bytes=4096``."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

from jaxgate.model.claim import CLAIMED, RUN_NS, Claim

_RELATIONS = {"max_": "<=", "min_": ">=", "exact_": "=="}


def split_claims(options: Mapping[str, Any]) -> tuple[tuple[Claim, ...], dict[str, Any]]:
    """Take the claims out of the keywords of ``gate``.

    Args:
        options: Keyword to value.

    Returns:
        A claim for each keyword that is one, and all other keywords.

    Raises:
        TypeError: If a keyword starts as a claim and names no quantity, or its value is no number.
    """
    claims, others = [], {}
    for keyword, value in options.items():
        start = next((start for start in _RELATIONS if keyword.startswith(start)), None)
        if start is None:
            others[keyword] = value
            continue
        quantity = keyword.removeprefix(start)
        if quantity not in CLAIMED:
            hint = (
                f'; for time claims=[at_most(factor, "{RUN_NS}")] holds it against a reference'
                if quantity == RUN_NS
                else ""
            )
            raise TypeError(
                f"{keyword}= claims nothing: expected {start} and one of {', '.join(sorted(CLAIMED))}{hint}"
            )
        if isinstance(value, bool) or not isinstance(value, Real):
            raise TypeError(f"{keyword}= expects a number, found {value!r}")
        claims.append(Claim(quantity=quantity, relation=_RELATIONS[start], factor=float(value), other="one"))  # type: ignore[arg-type]
    return tuple(claims), others
