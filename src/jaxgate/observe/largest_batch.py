"""The largest batch within a budget of memory, found by compiling: nothing is allocated and nothing is run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax

from jaxgate.model.computation import Computation, MaxBatch
from jaxgate.model.measurement import InvalidCaseError, ReferenceFacts
from jaxgate.observe.errors import guarded, read_exhausted
from jaxgate.observe.machine.environment import fingerprint
from jaxgate.observe.tools import Tools
from jaxgate.observe.trace.lowering import Lowered, lower
from jaxgate.observe.trace.stages import peak_bytes

_STRAIGHT = 4
"""Steps that trust memory to grow in proportion to the batch (seen: three find it); then the gap is halved."""
_FAR = 1.25
"""A refusal so far above the budget is not trusted to lie on the line: by those at 1,024 and 108 texts of a step 48
would have been the most, and more fit (v5e, 2026-11-24)."""


@dataclass(frozen=True, slots=True)
class Fitting:
    """Looks for the largest batch of a function; what one program needs is remembered like a reference."""

    tools: Tools  # its ranks look together: each compiles what one of them does not remember, and all see one peak
    surroundings: str  # fingerprint of environment and hardware

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
        """Find the largest multiple of ``wanted.step`` that fits the budget.

        A batch counts as the largest when it was compiled and fits, and the next multiple was compiled and does not.

        Raises:
            InvalidCaseError: If it cannot be compiled, the backend does not report its memory, the smallest batch does
                not fit, or the largest one that may be tried does.
        """
        budget, own = self._budget(wanted, role), wanted.budget_bytes is None
        low, high = 0, wanted.limit // wanted.step

        def needed(steps: int) -> int:
            return self._needed(function, wanted, steps * wanted.step, role, budget if own else None)

        # A line between both ends; but a compiler that knows its device refuses what does not fit in a second, and takes many
        # for what does: then the first that fits should be the last that is tried.
        found = {} if own else {1: needed(1)}
        found[high] = needed(high)
        if not own and found[1] <= budget:
            low = 1
        tries = 0
        while found[high] > budget and high - low > 1:
            guess = _on_the_line(found, low, high, budget, own=own) if tries < _STRAIGHT else (low + high) // 2
            middle = min(max(guess, low + 1), high - 1)
            found[middle] = needed(middle)
            low, high = (middle, high) if found[middle] <= budget else (low, middle)
            tries += 1
        if low == 0 or found[high] <= budget:
            raise InvalidCaseError(
                f"looking for the largest batch of the {role}",
                f"expected its memory to pass {budget:,} bytes between a batch of {wanted.step:,} and one of "
                f"{wanted.limit // wanted.step * wanted.step:,}, found {found[high]:,} bytes at {high * wanted.step:,}; "
                f"change {'' if own else 'budget_bytes, '}step or limit",
            )
        return low * wanted.step

    def _budget(self, wanted: MaxBatch, role: str) -> int:
        """The budget in bytes: as the case says, or the memory of the device."""
        if wanted.budget_bytes is not None:
            return wanted.budget_bytes
        if self.tools.target is not None:
            return self.tools.target.target.memory_bytes
        stage = f"looking for the largest batch of the {role}"
        device = jax.local_devices()[0]
        limit = (device_statistics(device) or {}).get("bytes_limit")
        if not isinstance(limit, int) or limit < 1:
            where = f"{device.platform}:{device.id}"
            raise InvalidCaseError(
                stage,
                f"expected a device that says how much memory it has, {where} does not; give budget_bytes= a number",
            )
        (limit,) = self.tools.together.first(stage, (limit,))
        return limit

    def _needed(
        self, function: Callable[..., Any], wanted: MaxBatch, batch: int, role: str, device_bytes: int | None
    ) -> int:
        """What one program needs, as remembered or by compiling it; where all of a device is the budget, see ``_held``."""
        role = f"{role} for a batch of {batch:,}"
        stage = f"compiling the {role}"
        self.tools.progress(stage)
        with guarded(stage):
            args = wanted.args_at(batch)
        clock, platform = self.tools.clocks.thread, self.tools.platform
        lowered = lower(function, args, {}, role=role, clock=clock, cold=False, platform=platform)
        key = fingerprint("needed", lowered.fingerprint, lowered.options, self.surroundings)
        known = self.tools.store.load(key) if lowered.options is not None else None
        if not self.tools.together.anyone(f"{stage}: not remembered", known is None) and known is not None:
            return self._held(known[0]["peak_bytes"], device_bytes, refused=bool(known[0]["refused"]))
        with guarded(stage):
            peak, refused = self._compiled(lowered)
        if peak is None:
            raise InvalidCaseError(stage, "the largest batch cannot be found: this backend does not report peak_bytes")
        peak, agreed = self.tools.together.first(stage, (peak, int(refused)))
        self.tools.store.save(key, {"peak_bytes": peak, "refused": agreed}, [])
        return self._held(peak, device_bytes, refused=bool(agreed))

    def _held(self, peak: int, device_bytes: int | None, *, refused: bool) -> int:
        """What a program needs, held against the memory of a device: there its compiler has the last word.

        ``peak_bytes`` may be a little more than a program takes, and a refusal's sum is rounded.
        """
        if device_bytes is None:
            return peak
        if refused:
            return max(peak, device_bytes + 1)
        return peak if self.tools.target is None else min(peak, device_bytes)

    def _compiled(self, lowered: Lowered) -> tuple[int | None, bool]:
        """``peak_bytes``, or what a compiler asks for that refuses the program for its memory; and whether it does."""
        target = self.tools.target
        try:
            executable = lowered.stage.compile() if target is None else target.compile(lowered)
        except Exception as error:
            exhausted = read_exhausted(error)
            if exhausted is None or exhausted.asked_bytes is None:
                raise
            return exhausted.asked_bytes, True
        return peak_bytes(executable), False


def _on_the_line(found: Mapping[int, int], low: int, high: int, budget: int, *, own: bool) -> int:
    """Where a straight line crosses the budget: through the largest batch that fits and the smallest that does not.

    With all of a device as the budget, through the two smallest that do not fit, as a refusal's sum is another one than
    ``peak_bytes``; with only one of them, through nothing for no sample. Where both need far more, memory is not
    straight from there on: then halfway.
    """
    above = sorted(steps for steps, nbytes in found.items() if nbytes > budget)
    first, last = ((0, *above) if len(above) == 1 else above[:2]) if own else (low, high)
    begin, end = found.get(first, 0), found[last]
    if end <= begin:
        return (low + high) // 2
    crossing = first + int((budget - begin) / (end - begin) * (last - first))
    return (crossing + high) // 2 if own and begin > _FAR * budget else crossing


def device_statistics(device: jax.Device) -> Mapping[str, Any] | None:
    """What the allocator of a device reports; ``None`` where it keeps no figures. Plugins raise where they know nothing."""
    try:
        found: Mapping[str, Any] | None = device.memory_stats()
    except Exception:  # noqa: BLE001 - of whatever kind a plugin likes
        return None
    return found
