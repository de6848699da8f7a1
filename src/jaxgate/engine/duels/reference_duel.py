"""Claims about run time: a duel of subject and reference, here and now, unless it is known from before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from jaxgate.engine.duels.baseline_duel import SEVERAL
from jaxgate.engine.duels.duel_processes import DuelBudget, FreshDuel
from jaxgate.engine.instruments import Instruments
from jaxgate.engine.repeats import DuelRepeat
from jaxgate.judge.claims import are_settled, hold
from jaxgate.judge.timing.duel import LOOKS
from jaxgate.keep.cache import DuelCache
from jaxgate.model.claim import Claim
from jaxgate.model.duel import BrokenDuelError, ReferenceDuel
from jaxgate.model.measurement import SHARED_CORES, InvalidCaseError, Measurement
from jaxgate.model.program import Match
from jaxgate.observe.duel.sides import export_opponents, opponents_fingerprint
from jaxgate.observe.errors import describe
from jaxgate.observe.observation import Observation
from jaxgate.observe.program.export import NotReplayableError
from jaxgate.observe.trace.stages import devices_of


@dataclass(frozen=True, slots=True)
class ReferenceTiming:
    """The outcome of trying to time a case against its reference."""

    by: ReferenceDuel  # the duel, or why there is none
    repeats: tuple[DuelRepeat, ...] = ()  # how a fresh process looks for it again, for each claim that it decides


@dataclass(frozen=True, slots=True)
class ReferenceDuels:
    """Runs the duels of cases with their references, within the budget that all duels share.

    Only a duel in which every claim held is remembered: one that left something open, or broke a claim, is run
    again each time.
    """

    budget: DuelBudget
    memory: DuelCache
    instruments: Instruments

    def time(self, claims: Sequence[Claim], observed: Observation, progress: Callable[[str], None]) -> ReferenceTiming:
        """Run the one duel that serves all claims of a case about run time, if it has such claims.

        Raises:
            InvalidCaseError: If the times of the duel mean nothing.
        """
        claims = list({str(claim): claim for claim in claims if claim.needs_duel}.values())
        now = observed.measurement
        if not claims or now.reference is None:
            return ReferenceTiming(ReferenceDuel())
        why_not = _hopeless(now)
        if why_not:
            return _not_timed(why_not)
        key = opponents_fingerprint(observed)
        known = self._remembered(key, claims)
        if known is not None:
            return ReferenceTiming(known)
        if now.samples is None:
            return _not_timed("the clock is switched off (--benchmark-disable)")
        if not self.budget.is_left:
            return _not_timed("the budget for duels is spent (--perf-budget)")
        try:
            with self.budget.charged(self.instruments.clock):
                found = self._duel(claims, observed, progress)
                if found.by.duel is not None and hold(claims, found.by.duel):
                    self.memory.save(key, found.by.duel)
        except BrokenDuelError as error:
            raise InvalidCaseError("timing against the reference", str(error)) from None
        except NotReplayableError as error:
            return _not_timed(f"no duel can be run: {error}")
        except Exception as error:  # noqa: BLE001 - all else is judged; these claims are not, and say why
            return _not_timed(f"the duel failed: {describe(error)}")
        return found

    def _remembered(self, key: str, claims: Sequence[Claim]) -> ReferenceDuel | None:
        duel = self.memory.load(key)
        try:
            if duel is None or not hold(claims, duel):
                return None
        except ValueError:  # damaged: times that mean nothing
            return None
        return ReferenceDuel(duel=duel, remembered=True)

    def _duel(self, claims: Sequence[Claim], observed: Observation, progress: Callable[[str], None]) -> ReferenceTiming:
        progress("compiling subject and reference for a duel")
        programs = export_opponents(observed)
        leaves = observed.leaves()
        platform = observed.measurement.hardware.platform
        subject, reference = (self.instruments.prepare(program, leaves, observed.contract) for program in programs)
        if platform == "cpu" and max(len(devices_of(side.function)) for side in (subject, reference)) > 1:
            return _not_timed(SHARED_CORES)
        progress("sampling")  # nothing else may run beside it
        duel = self.instruments.run_reference_duel(
            subject,
            reference,
            settled=lambda duel: are_settled(claims, duel),
            clock=self.instruments.clock,
            max_pairs=max(LOOKS),
            platform=platform,
        )
        matches = [Match(now=programs[0], baseline=programs[1], leaves=leaves)]
        again = FreshDuel(matches, platform, observed.contract)
        repeats = tuple(DuelRepeat(replace(again, claim=claim)) for claim in claims)
        return ReferenceTiming(ReferenceDuel(duel=duel), repeats)


def _hopeless(now: Measurement) -> str:
    if now.compiled_only:
        return now.why_not_called
    if now.processes > 1:
        return SEVERAL
    if now.eager:
        return "plain Python around device programs cannot be stored and duelled"
    return SHARED_CORES if now.hardware.is_virtual else ""


def _not_timed(why: str) -> ReferenceTiming:
    return ReferenceTiming(ReferenceDuel(why_not=why))
