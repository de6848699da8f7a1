"""Checks the arguments of a call of ``gate``: kinds of values, names of options; a wrong one is an error of one line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from jaxgate.model.claim import Claim, split_claims
from jaxgate.model.computation import Batch, Computation
from jaxgate.model.workload import Case, Tolerance
from jaxgate.observe.arguments.carry import Names
from jaxgate.observe.arguments.function_case import case_of_function

_OPTIONS = frozenset({"expected_traces", "analytic_flops", "next_args", "contract", "rtol", "atol", "eager", "grow"})


@contextmanager
def usage_errors() -> Iterator[None]:
    """Let what somebody wrote wrongly fail the test in one line: the way to it through these files helps nobody."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise pytest.fail.Exception(f"gate: {error}", pytrace=False) from None


def case_of_call(
    subject: Callable[..., Any],
    args: Sequence[Any],
    *,
    case_name: Callable[[], tuple[str, str]],
    kwargs: Mapping[str, Any] | None,
    donate: Names | None,
    carry: Names | None,
    reference: Callable[..., Any] | None,
    claims: Sequence[Claim],
    tolerances: Sequence[Tolerance],
    batch: Batch | None,
    name: str | None,
    options: Mapping[str, Any],
) -> Case:
    """Make a case of what a call of ``gate`` was given, which says what each of these is.

    Raises:
        TypeError: If one of them is of another kind, is not known, or does not go with another.
        ValueError: If a name is not an argument, or a claim cannot be read.
    """
    _refuse_other_kinds(
        subject=subject,
        kwargs=kwargs,
        reference=reference,
        claims=claims,
        tolerances=tolerances,
        batch=batch,
        name=name,
    )
    stated, options = split_claims(options)
    return case_of_function(
        subject,
        args,
        name=case_name(),
        kwargs=kwargs or {},
        donate=donate,
        carry=carry,
        reference=reference,
        claims=(*claims, *stated),
        tolerances=tolerances,
        batch=batch,
        options=_known(options),
    )


def _refuse_other_kinds(
    *, subject: Any, kwargs: Any, reference: Any, claims: Any, tolerances: Any, batch: Any, name: Any
) -> None:
    """Refuse values of another kind before anything is made of them: what comes of them later explains nothing.

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


def _known(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """The options, where all of them are.

    Raises:
        TypeError: If one is not.
    """
    allowed = (_OPTIONS & set(Computation.__dataclass_fields__)) | {"requests"}
    unknown = sorted(set(options) - allowed)
    if unknown:
        own = "the function's own keyword arguments go into kwargs={...}"
        raise TypeError(
            f"gate() has no option {', '.join(unknown)}; expected one of: {', '.join(sorted(allowed))}; {own}"
        )
    return options
