"""Cases of functions, as the fixture ``gate`` makes them of what it is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jaxgate.model.workload import Case
from jaxgate.observe.arguments.function_case import case_of_function

_GIVEN_NOTHING: dict[str, Any] = {
    "name": ("model", "step"),
    "kwargs": {},
    "donate": None,
    "carry": None,
    "reference": None,
    "claims": (),
    "tolerances": (),
    "batch": None,
    "options": {},
}


def function_case(function: Callable[..., Any], args: tuple[Any, ...], **changes: Any) -> Case:
    """What ``gate(function, *args)`` judges; ``changes`` replace what is given besides."""
    return case_of_function(function, args, **(_GIVEN_NOTHING | changes))
