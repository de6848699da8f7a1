"""The largest batch within a budget of memory, found by compiling: nothing is allocated and nothing is run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from jaxgate.model import Computation, Facts, InvalidCaseError, MaxBatch, ReferenceFacts
from jaxgate.observe.errors import guarded
from jaxgate.observe.machine import fingerprint
from jaxgate.observe.out_of_memory import read_exhausted
from jaxgate.observe.tools import Tools
from jaxgate.observe.trace import Lowered, compiled_facts, lower

_STRAIGHT = 4
"""Steps that trust memory to grow in proportion to the batch (seen: three find it); then the gap is halved."""


@dataclass(frozen=True, slots=True)
class Fitting:
    """Looks for the largest batch of a function; what one program needs is remembered like a reference.

    Attributes:
        tools: Its ranks look together: each compiles what one of them does not remember, and all see one peak.
        surroundings: Fingerprint of environment and hardware.
    """

    tools: Tools
    surroundings: str

    def largest_batches(
        self, computation: Computation, known: ReferenceFacts | None
    ) -> tuple[int | None, ReferenceFacts | None]:
        """The subject's largest batch, and what is known of the reference with its own, if the case asks for them."""
        if computation.max_batch is None:
            return None, known
        largest = self.largest_batch(computation.subject, computation.max_batch, role="subject")
        if computation.reference is not None and known is not None:
            theirs = self.largest_batch(computation.reference, computation.max_batch, role="reference")
            known = replace(known, facts=replace(known.facts, largest_batch=theirs))
        return largest, known

    def largest_batch(self, function: Callable[..., Any], wanted: MaxBatch, *, role: str) -> int:
        """Find the largest multiple of ``wanted.step`` at which one call's ``peak_bytes`` stay within the budget.

        A batch counts as the largest when it was compiled and wanted, and the next multiple was compiled and does not.

        Raises:
            InvalidCaseError: If it cannot be compiled, the backend does not report its memory, the smallest batch does
                not fit, or the largest one that may be tried does.
        """

        def peak_bytes(steps: int) -> int:
            return self._peak_bytes(function, wanted, steps * wanted.step, role)

        low, high = 1, wanted.limit // wanted.step
        low_bytes, high_bytes = peak_bytes(low), peak_bytes(high)
        if low_bytes > wanted.budget_bytes or high_bytes <= wanted.budget_bytes:
            batch, peak = (low, low_bytes) if low_bytes > wanted.budget_bytes else (high, high_bytes)
            raise InvalidCaseError(
                f"looking for the largest batch of the {role}",
                f"expected its memory to pass {wanted.budget_bytes:,} bytes between a batch of {wanted.step:,} and one of "
                f"{high * wanted.step:,}, found {peak:,} bytes at {batch * wanted.step:,}; change budget_bytes, step or limit",
            )
        tries = 0
        while high - low > 1:
            share = (wanted.budget_bytes - low_bytes) / (high_bytes - low_bytes) if tries < _STRAIGHT else 0.5
            middle = min(max(low + int(share * (high - low)), low + 1), high - 1)
            found = peak_bytes(middle)
            low, low_bytes, high, high_bytes = (
                (middle, found, high, high_bytes) if found <= wanted.budget_bytes else (low, low_bytes, middle, found)
            )
            tries += 1
        return low * wanted.step

    def _peak_bytes(self, function: Callable[..., Any], wanted: MaxBatch, batch: int, role: str) -> int:
        """What one program needs: as remembered, or by compiling it."""
        role = f"{role} for a batch of {batch:,}"
        stage = f"compiling the {role}"
        self.tools.progress(stage)
        with guarded(stage):
            args = wanted.args_at(batch)
        clock, platform = self.tools.clocks.thread, self.tools.platform
        lowered = lower(function, args, {}, role=role, clock=clock, cold=False, platform=platform)
        key = fingerprint("peak", lowered.fingerprint, lowered.options, self.surroundings)
        known = self.tools.store.load(key) if lowered.options is not None else None
        if not self.tools.together.anyone(f"{stage}: not remembered", known is None) and known is not None:
            return int(known[0]["peak_bytes"])
        with guarded(stage):
            peak = self._compiled(lowered)
        if peak is None:
            raise InvalidCaseError(stage, "the largest batch cannot be found: this backend does not report peak_bytes")
        (peak,) = self.tools.together.first(stage, (peak,))
        self.tools.store.save(key, {"peak_bytes": peak}, [])
        return peak

    def _compiled(self, lowered: Lowered) -> int | None:
        """``peak_bytes``; of a program that the compiler of a target refuses for its memory, what it asks for."""
        if self.tools.target is None:
            return Facts(**compiled_facts(lowered.stage.compile())).peak_bytes
        try:
            return Facts(**compiled_facts(self.tools.target.compile(lowered))).peak_bytes
        except Exception as error:
            exhausted = read_exhausted(error)
            if exhausted is None or exhausted.asked_bytes is None:
                raise
            return exhausted.asked_bytes
