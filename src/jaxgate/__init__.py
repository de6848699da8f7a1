"""A pytest-based performance-regression suite for JAX. Importing this imports nothing: every run of pytest does."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jaxgate.model import (
        Batch,
        Case,
        Claim,
        Computation,
        Family,
        InvalidCaseError,
        Tolerance,
        claim,
    )
    from jaxgate.plugin.gate import Gate

__all__ = [
    "Batch",
    "BytesError",
    "Case",
    "Claim",
    "Computation",
    "Family",
    "Gate",
    "InvalidCaseError",
    "RetraceError",
    "Tolerance",
    "TransferError",
    "at_most_bytes",
    "claim",
    "compare",
    "no_retrace",
    "no_transfer",
]

_GUARDS = {"BytesError", "RetraceError", "TransferError", "at_most_bytes", "no_retrace", "no_transfer"}


def __getattr__(name: str) -> Any:
    """Import what is asked for: ``compare``, ``Gate`` and the guards need JAX, the model takes longer than all that pytest needs."""
    if name == "compare":
        from jaxgate.engine.comparison import compare  # noqa: PLC0415 - the point of this function

        return compare
    if name == "Gate":
        from jaxgate.plugin.gate import Gate  # noqa: PLC0415 - the point of this function

        return Gate
    if name in _GUARDS:
        from jaxgate.observe import guards  # noqa: PLC0415 - the point of this function

        return getattr(guards, name)
    if name in __all__:
        from jaxgate import model  # noqa: PLC0415 - the point of this function

        return getattr(model, name)
    raise AttributeError(f"module 'jaxgate' has no attribute {name!r}")


def __dir__() -> list[str]:
    """What there is to be asked for, and nothing that this file needs itself."""
    return [*(name for name in globals() if name.startswith("__")), *__all__]
