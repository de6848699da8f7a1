"""Claims about run time: a duel of subject and reference, here and now, unless it is known from before."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from jaxgate.judge.duel import LOOKS
from jaxgate.judge.run_claims import are_settled, hold
from jaxgate.keep.duels import DuelCache
from jaxgate.model import BrokenDuelError, Claim, InvalidCaseError, Measurement, ReferenceDuel
from jaxgate.observe.compiling import devices_of
from jaxgate.observe.duelling import prepare, run_duel
from jaxgate.observe.exporting import NotReplayableError
from jaxgate.observe.failures import describe
from jaxgate.observe.observed import Observed
from jaxgate.observe.opponents import export_opponents, opponents_fingerprint
from jaxgate.plugin.timing import SEVERAL, Rematch, Stopwatch

_SHARED_CORES = "virtual CPU devices share their cores, so no clock judges them"


@dataclass(frozen=True, slots=True)
class Told:
    """The outcome of trying to time a case against its reference.

    Attributes:
        by: The duel, or why there is none.
        rematches: How to run it again, for each claim that it decides.
    """

    by: ReferenceDuel
    rematches: tuple[Rematch, ...] = ()


class ReferenceDuels:
    """Runs the duels of cases with their references, within the budget that all duels share.

    Only a duel in which every claim held is remembered: one that left something open, or broke a claim, is run
    again each time.

    Args:
        stopwatch: Has the budget.
        memory: What is known from earlier runs.
        clock: Monotonic nanoseconds.
    """

    def __init__(
        self, stopwatch: Stopwatch, memory: DuelCache, clock: Callable[[], int] = time.perf_counter_ns
    ) -> None:
        self._stopwatch = stopwatch
        self._memory = memory
        self._clock = clock

    def time(self, claims: Sequence[Claim], observed: Observed, progress: Callable[[str], None]) -> Told:
        """Run the one duel that serves all claims of a case about run time, if it has such claims.

        Raises:
            InvalidCaseError: If the times of the duel mean nothing.
        """
        claims = list({str(claim): claim for claim in claims if claim.needs_duel}.values())
        now = observed.measurement
        if not claims or now.reference is None:
            return Told(ReferenceDuel())
        why_not = _hopeless(now)
        if why_not:
            return _not_timed(why_not)
        key = opponents_fingerprint(observed)
        known = self._remembered(key, claims)
        if known is not None:
            return Told(known)
        if now.samples is None:
            return _not_timed("the clock is switched off (--benchmark-disable)")
        if not self._stopwatch.has_budget:
            return _not_timed("the budget for duels is spent (--perf-budget)")
        begin = self._clock()
        try:
            told = self._duel(claims, observed, progress)
            if told.by.duel is not None and hold(claims, told.by.duel):
                self._memory.save(key, told.by.duel)
        except BrokenDuelError as error:
            raise InvalidCaseError("timing against the reference", str(error)) from None
        except NotReplayableError as error:
            return _not_timed(f"no duel can be run: {error}")
        except Exception as error:  # noqa: BLE001 - all else is judged; these claims are not, and say why
            return _not_timed(f"the duel failed: {describe(error)}")
        finally:
            self._stopwatch.charge(self._clock() - begin)
        return told

    def _remembered(self, key: str, claims: Sequence[Claim]) -> ReferenceDuel | None:
        duel = self._memory.load(key)
        try:
            if duel is None or not hold(claims, duel):
                return None
        except ValueError:  # damaged: times that mean nothing
            return None
        return ReferenceDuel(duel=duel, remembered=True)

    def _duel(self, claims: Sequence[Claim], observed: Observed, progress: Callable[[str], None]) -> Told:
        progress("compiling subject and reference for a duel")
        programs = export_opponents(observed)
        leaves = observed.leaves()
        platform = observed.measurement.hardware.platform
        subject, reference = (prepare(program, leaves, observed.contract) for program in programs)
        if platform == "cpu" and max(len(devices_of(side.function)) for side in (subject, reference)) > 1:
            return _not_timed(_SHARED_CORES)
        progress("sampling")  # nothing else may run beside it
        duel = run_duel(
            subject,
            reference,
            settled=lambda duel: are_settled(claims, duel),
            clock=self._clock,
            max_pairs=max(LOOKS),
            platform=platform,
        )
        again = Rematch(*programs, leaves, platform, observed.contract)
        return Told(ReferenceDuel(duel=duel), tuple(replace(again, claim=claim) for claim in claims))


def _hopeless(now: Measurement) -> str:
    if now.processes > 1:
        return SEVERAL
    if now.host:
        return "plain Python around device programs cannot be stored and duelled"
    return _SHARED_CORES if now.hardware.platform == "cpu" and now.hardware.devices > 1 else ""


def _not_timed(why: str) -> Told:
    return Told(ReferenceDuel(why_not=why))
