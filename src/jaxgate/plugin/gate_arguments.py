"""Checks the arguments of a call of ``gate``: kinds of values, names of options; a wrong one is an error of one line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

import pytest

from jaxgate.model.claim import Claim
from jaxgate.model.computation import Batch
from jaxgate.model.workload import Tolerance

_OPTIONS = frozenset(
    {"expected_traces", "analytic_flops", "next_args", "contract", "rtol", "atol", "eager", "grow", "requests"}
)
_NAMED = frozenset(
    {"kwargs", "donate", "carry", "reference", "claims", "tolerances", "batch", "name", "targets", "uses"}
)
"""What ``Gate.__call__`` names itself, or takes for a claim."""


@contextmanager
def usage_errors() -> Iterator[None]:
    """Let a wrong argument fail the test in one line: a traceback through these files helps nobody."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise pytest.fail.Exception(f"gate: {error}", pytrace=False) from None


def refuse_other_kinds(
    *, subject: Any, kwargs: Any, reference: Any, claims: Any, tolerances: Any, batch: Any, name: Any
) -> None:
    """Refuse values of another kind before anything is made of them: later errors explain nothing.

    Raises:
        TypeError: If one is; says what was expected.
    """
    wanted = {
        "a function or a case first": (subject, callable(subject)),
        "kwargs={...}": (kwargs, kwargs is None or isinstance(kwargs, Mapping)),
        "a function as reference=": (reference, reference is None or callable(reference)),
        "claims=[...]": (claims, _all_are(claims, Claim)),
        "tolerances=[...]": (tolerances, _all_are(tolerances, Tolerance)),
        "batch=Batch(...)": (batch, batch is None or isinstance(batch, Batch)),
        "a text as name=": (name, name is None or (isinstance(name, str) and name.strip() != "")),
    }
    for expected, (found, fits) in wanted.items():
        if not fits:
            raise TypeError(f"expected {expected}, found {found!r}")


def _all_are(found: Any, kind: type) -> bool:
    return isinstance(found, (list, tuple)) and all(isinstance(one, kind) for one in found)


def known_options(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """The options, where all of them are.

    Raises:
        TypeError: If one is not.
    """
    unknown, everything = sorted(set(options) - _OPTIONS), sorted(_OPTIONS | _NAMED)
    if unknown:
        near = get_close_matches(unknown[0], everything, n=1)
        meant = f"; did you mean {near[0]}=?" if near else ""
        raise TypeError(
            f"gate() has no option {', '.join(unknown)}{meant}; expected one of: {', '.join(everything)}; "
            "the function's own keyword arguments go into kwargs={...}"
        )
    return options
