"""What somebody wrote into a call of the gate: options that it knows, and one line for what it does not take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from jaxgate.model import Computation

_OPTIONS = frozenset({"expected_traces", "analytic_flops", "next_args", "contract", "rtol", "atol", "host"})


@contextmanager
def usage_errors() -> Iterator[None]:
    """Let what somebody wrote wrongly fail the test in one line: the way to it through these files helps nobody."""
    problem = ""
    try:
        yield
    except (TypeError, ValueError) as error:
        problem = str(error)
    if problem:  # not above: the one would be chained to the other, and both printed
        pytest.fail(f"gate: {problem}", pytrace=False)


def known(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """The options, where all of them are.

    Raises:
        TypeError: If one is not.
    """
    allowed = _OPTIONS & set(Computation.__dataclass_fields__)
    unknown = sorted(set(options) - allowed)
    if unknown:
        own = "the function's own keyword arguments go into kwargs={...}"
        raise TypeError(
            f"gate() has no option {', '.join(unknown)}; expected one of: {', '.join(sorted(allowed))}; {own}"
        )
    return options
