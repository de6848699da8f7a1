"""A pytest-based performance-regression suite for JAX. Importing this imports neither JAX nor pytest."""

from typing import Any

from jaxgate.model import Batch, Case, Claim, Computation, InvalidCaseError, Tolerance, at_least, at_most, cases, equal

__all__ = [
    "Batch",
    "Case",
    "Claim",
    "Computation",
    "InvalidCaseError",
    "Tolerance",
    "at_least",
    "at_most",
    "cases",
    "compare",
    "equal",
]


def __getattr__(name: str) -> Any:
    """Import ``compare`` when it is asked for: it needs JAX."""
    if name == "compare":
        from jaxgate.cli.compare import compare  # noqa: PLC0415 - the point of this function

        return compare
    raise AttributeError(f"module 'jaxgate' has no attribute {name!r}")
