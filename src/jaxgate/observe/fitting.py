"""The largest batch within a budget of memory, found by compiling: nothing is allocated and nothing is run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jaxgate.model import Facts, Fits, InvalidCaseError
from jaxgate.observe.compiling import as_jitted, compiled_facts
from jaxgate.observe.failures import guarded

_STRAIGHT = 4
"""Steps that trust memory to grow in proportion to the batch (seen: three find it); then the gap is halved."""


def largest_batch(
    function: Callable[..., Any], fits: Fits, *, role: str, progress: Callable[[str], None] = lambda _: None
) -> int:
    """Find the largest multiple of ``fits.step`` at which one call's ``peak_bytes`` stay within the budget.

    A batch counts as the largest when it was compiled and fits, and the next multiple was compiled and does not.

    Args:
        function: The subject or the reference.
        fits: Budget, arguments, granularity.
        role: ``subject`` or ``reference``, for messages.
        progress: Told before each compile.

    Raises:
        InvalidCaseError: If it cannot be compiled, the backend does not tell its memory, the smallest batch does not
            fit, or the largest one that may be tried does.
    """

    def peak_bytes(steps: int) -> int:
        batch = steps * fits.step
        progress(f"compiling the {role} for a batch of {batch:,}")
        stage = f"compiling the {role} for a batch of {batch:,}"
        with guarded(stage):
            executable = as_jitted(function).lower(*fits.args_at(batch)).compile()  # type: ignore[attr-defined]
        peak = Facts(**compiled_facts(executable)).peak_bytes
        if peak is None:
            raise InvalidCaseError(stage, "the largest batch cannot be found: this backend does not tell peak_bytes")
        return peak

    low, high = 1, fits.limit // fits.step
    low_bytes, high_bytes = peak_bytes(low), peak_bytes(high)
    if low_bytes > fits.budget_bytes or high_bytes <= fits.budget_bytes:
        batch, peak = (low, low_bytes) if low_bytes > fits.budget_bytes else (high, high_bytes)
        raise InvalidCaseError(
            f"looking for the largest batch of the {role}",
            f"expected its memory to pass {fits.budget_bytes:,} bytes between a batch of {fits.step:,} and one of "
            f"{high * fits.step:,}, found {peak:,} bytes at {batch * fits.step:,}; change budget_bytes, step or limit",
        )
    tries = 0
    while high - low > 1:
        share = (fits.budget_bytes - low_bytes) / (high_bytes - low_bytes) if tries < _STRAIGHT else 0.5
        middle = min(max(low + int(share * (high - low)), low + 1), high - 1)
        found = peak_bytes(middle)
        low, low_bytes, high, high_bytes = (
            (middle, found, high, high_bytes) if found <= fits.budget_bytes else (low, low_bytes, middle, found)
        )
        tries += 1
    return low * fits.step
