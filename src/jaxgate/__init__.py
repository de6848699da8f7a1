"""A pytest-based performance-regression suite for JAX. Importing this imports neither JAX nor pytest."""

from typing import Any

from jaxgate.model import Batch, Case, Claim, Computation, InvalidCaseError, Tolerance, at_least, at_most, cases, equal

__all__ = [
    "Batch",
    "BytesError",
    "Case",
    "Claim",
    "Computation",
    "InvalidCaseError",
    "RetraceError",
    "Tolerance",
    "TransferError",
    "at_least",
    "at_most",
    "at_most_bytes",
    "cases",
    "compare",
    "equal",
    "no_retrace",
    "no_transfer",
]

_GUARDS = {"BytesError", "RetraceError", "TransferError", "at_most_bytes", "no_retrace", "no_transfer"}


def __getattr__(name: str) -> Any:
    """Import ``compare`` and the guards when they are asked for: they need JAX."""
    if name == "compare":
        from jaxgate.engine.comparison import compare  # noqa: PLC0415 - the point of this function

        return compare
    if name in _GUARDS:
        from jaxgate.observe import guards  # noqa: PLC0415 - the point of this function

        return getattr(guards, name)
    raise AttributeError(f"module 'jaxgate' has no attribute {name!r}")
