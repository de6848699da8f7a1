"""A pytest-based performance-regression suite for JAX. Importing this imports nothing: every run of pytest does."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jaxgate.ext.growth.model import Growth, grows
    from jaxgate.model.claim import Claim, KnownBreak, claim
    from jaxgate.model.computation import Alternative, Amount, Batch, Computation, MaxBatch
    from jaxgate.model.measurement import InvalidCaseError
    from jaxgate.model.numbers import Contract
    from jaxgate.model.workload import Case, Family, Tolerance
    from jaxgate.plugin.gate import Gate
    from jaxgate.settings import Size

__all__ = [
    "Alternative", "Amount", "Batch", "BytesError", "Case", "Claim", "Computation", "Contract", "Family", "Gate",
    "Growth", "InvalidCaseError", "KnownBreak", "MaxBatch", "RetraceError", "Size", "Tolerance", "TransferError",
    "at_most_bytes", "claim", "compare", "grows", "no_retrace", "no_transfer",
]  # fmt: skip

_GUARDS = {"BytesError", "RetraceError", "TransferError", "at_most_bytes", "no_retrace", "no_transfer"}


def __getattr__(name: str) -> Any:
    """Import what is asked for: ``compare``, ``Gate`` and the guards need JAX, the model takes longer than all that pytest needs."""
    if name == "compare":
        from jaxgate.engine.compare_functions import compare  # noqa: PLC0415 - the point of this function

        return compare
    if name == "Gate":
        from jaxgate.plugin.gate import Gate  # noqa: PLC0415 - the point of this function

        return Gate
    if name in _GUARDS:
        from jaxgate.observe import guards  # noqa: PLC0415 - the point of this function

        return getattr(guards, name)
    if name in __all__:
        from jaxgate import settings  # noqa: PLC0415 - the point of this function
        from jaxgate.ext.growth import model as laws  # noqa: PLC0415 - likewise
        from jaxgate.model import claim, computation, measurement, numbers, workload  # noqa: PLC0415 - likewise

        rooms = (laws, workload, computation, claim, measurement, numbers, settings)
        return next(getattr(module, name) for module in rooms if hasattr(module, name))
    raise AttributeError(f"module 'jaxgate' has no attribute {name!r}")


def __dir__() -> list[str]:
    """What there is to be asked for, and nothing that this file needs itself."""
    return [*(name for name in globals() if name.startswith("__")), *__all__]
