"""Time of a changed program: a duel with the baseline's program, here and now."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from jaxgate.engine.duel_budget import DuelBudget
from jaxgate.engine.fresh_process import FreshDuel
from jaxgate.engine.instruments import Instruments
from jaxgate.engine.noise_floors import Margins
from jaxgate.engine.repeats import DuelRepeat, Repeat
from jaxgate.judge import (
    LOOKS,
    decide,
    differs,
    has_other_executable,
    has_same_devices,
    inputs_matter,
    is_settled,
    may_share_executable,
    name_margin,
    only_settings_changed,
    own_margin,
    takes_same_arguments,
    window_note,
)
from jaxgate.keep import ProgramStore
from jaxgate.model import (
    MAX_NAMED,
    SHARED_CORES,
    BrokenDuelError,
    Decision,
    InvalidCaseError,
    Measurement,
    StoredBaseline,
    StoredProgram,
    shortlist,
)
from jaxgate.observe.duel import Contender, Opponents, agree, prepare
from jaxgate.observe.errors import describe
from jaxgate.observe.observation import Observation
from jaxgate.observe.program import NotReplayableError, UnreadableProgramError, executable_fingerprint, same_executable

Opponent = tuple[StoredProgram, Contender]
"""The baseline's program and its executable here. Holds arrays."""


@dataclass(frozen=True, slots=True)
class BaselineTiming:
    """The outcome of trying to time a case against its baseline.

    Attributes:
        stored_here: The baseline; its compiled facts are those of its program here, where the environment differs.
        decision: What the duel said.
        why_not: Why there was none.
        same_executable: None was needed: today's program and the baseline's compile to the same here.
        repeat: How a fresh process looks for it again.
        opponent: The baseline's program, if it was compiled: a red case is profiled beside it.
        took_ns: What all of it took.
    """

    stored_here: StoredBaseline | None
    decision: Decision | None = None
    why_not: str = "no duel was run"
    same_executable: bool = False
    repeat: Repeat | None = None
    opponent: Opponent | None = None
    took_ns: int = 0


SEVERAL = "several processes: not duelled yet"
"""Why a program that runs over several processes is not timed against another."""


class BaselineDuels:
    """Runs the duels of one run with the programs of its baselines.

    Args:
        programs: Where the baselines' programs are.
        budget: What all duels together may take.
        margins: What a calibration knows of the noise of each case.
        opponents: Baselines' programs, compiled here.
        instruments: The duel, the clock, and the date, which tells how old a program is that cannot be read.
    """

    def __init__(
        self,
        programs: ProgramStore,
        budget: DuelBudget,
        *,
        margins: Margins,
        opponents: Opponents,
        instruments: Instruments,
    ) -> None:
        self._programs = programs
        self._budget = budget
        self._margins = margins
        self._opponents = opponents
        self._instruments = instruments

    def time(
        self, observed: Observation, stored: StoredBaseline | None, progress: Callable[[str], None]
    ) -> BaselineTiming:
        """Duel with the baseline's program if the program may have changed and both can run here.

        Raises:
            InvalidCaseError: If the baseline lost its program, or the times of the duel mean nothing.
        """
        now = observed.measurement
        if stored is None or not takes_same_arguments(now, stored.baseline) or not differs(now, stored.baseline):
            return BaselineTiming(stored)
        why_not = _hopeless(now, stored)
        if why_not:
            return BaselineTiming(stored, why_not=why_not)
        begin = self._instruments.clock()
        found = self._try(observed, stored, progress)
        return replace(found, took_ns=self._instruments.clock() - begin)

    def _try(self, observed: Observation, stored: StoredBaseline, progress: Callable[[str], None]) -> BaselineTiming:
        try:
            return self._against(observed, stored, progress)
        except InvalidCaseError as error:
            raise error from None
        except BrokenDuelError as error:
            raise InvalidCaseError("timing against the baseline's program", str(error)) from None
        except UnreadableProgramError as error:
            note = window_note(stored.baseline.provenance.date, today=self._instruments.today())
            return BaselineTiming(stored, why_not=f"no duel can be run: {error}" + (f" ({note})" if note else ""))
        except NotReplayableError as error:
            return BaselineTiming(stored, why_not=f"no duel can be run: {error}")
        except Exception as error:  # noqa: BLE001 - facts are judged all the same; time is not, and says why
            return BaselineTiming(stored, why_not=f"the duel failed: {describe(error)}")

    def _against(
        self, observed: Observation, record: StoredBaseline, progress: Callable[[str], None]
    ) -> BaselineTiming:
        """Compile the baseline's program here, for its facts; duel with it where only a clock can tell the two apart."""
        stored = record.baseline.program
        fingerprint = record.baseline.fingerprints.program
        content = self._programs.load(fingerprint, stored.digest) if stored.stored else b""
        if content is None:
            raise InvalidCaseError(
                "reading the baseline's program",
                f"{self._programs.path(fingerprint).name} is missing or damaged; restore it with git, "
                "or record the case again with --perf-update",
            )
        progress("compiling the baseline's program")
        before = StoredProgram(record=stored, content=content)
        here = self._opponents.compiled(before, observed)
        timing = BaselineTiming(None, opponent=None if here.contender is None else (before, here.contender))
        now_at = (observed.measurement.environment, observed.measurement.hardware)
        if now_at != (record.baseline.environment, record.baseline.hardware):
            known = {name: value for name, value in here.facts.items() if value is not None}
            facts = replace(record.baseline.facts, **known)
            recorded = record.baseline.facts
            record = replace(record, baseline=replace(record.baseline, facts=facts), recorded=recorded)
        timing = replace(timing, stored_here=record)
        alike = may_share_executable(observed.measurement, record.baseline)
        if alike and here.executable is not None and observed.lowered is not None:
            ours = observed.measurement.fingerprints.executable
            # Without it JAX gives the executable that was observed: nothing is compiled again.
            if (ours or executable_fingerprint(observed.lowered.stage.compile())) == here.executable:
                return replace(timing, same_executable=True)
        if observed.measurement.hardware.is_virtual:  # the facts above are of this machine none the less
            return replace(timing, why_not=SHARED_CORES)
        if not has_same_devices(observed.measurement, record.baseline):
            return replace(timing, why_not="a duel would lay both programs out in one order")
        if observed.measurement.samples is None:
            return replace(timing, why_not="the clock is switched off (--benchmark-disable)")
        if not self._budget.is_left:
            return replace(timing, why_not="the budget for duels is spent (--perf-budget)")
        begin = self._instruments.clock()
        try:
            return self._duel(observed, timing, record, before, here.contender, alike=alike, progress=progress)
        finally:
            self._budget.charge(self._instruments.clock() - begin)

    def _duel(
        self,
        observed: Observation,
        timing: BaselineTiming,
        record: StoredBaseline,
        before: StoredProgram,
        contender: Contender | None,
        *,
        alike: bool,
        progress: Callable[[str], None],
    ) -> BaselineTiming:
        leaves, contract = observed.leaves(), observed.contract
        today = observed.export()
        if not today.record.stored:
            return replace(timing, why_not=f"today's program cannot be duelled: {today.record.why_not}")
        now, baseline = prepare(today, leaves, contract), contender or prepare(before, leaves, contract)
        timing = replace(timing, opponent=(before, baseline))
        if alike and same_executable(now.function, baseline.function):  # both exported: in the same order, too
            return replace(timing, same_executable=True)
        same_results = agree(now, baseline, rtol=observed.rtol, atol=observed.atol)
        floor = self._margins.floor_of(record.baseline.case, observed.measurement)
        own = own_margin(floor)
        progress("sampling")  # nothing else may run beside it
        platform = observed.measurement.hardware.platform
        duel = self._instruments.run_duel(
            now,
            baseline,
            settled=partial(is_settled, own_margin=own),
            clock=self._instruments.clock,
            max_pairs=max(LOOKS),
            platform=platform,
        )
        decision = replace(name_margin(decide(duel, own_margin=own), floor), agrees=same_results)
        again = FreshDuel(today, before, leaves, platform, contract, own_margin=own)
        return replace(timing, decision=decision, repeat=DuelRepeat(again))


def _hopeless(now: Measurement, record: StoredBaseline) -> str:
    """Why no duel could say anything; empty if one could."""
    ours, theirs = now.fingerprints, record.baseline.fingerprints
    if now.processes > 1:
        return SEVERAL
    if now.host or record.baseline.host or now.facts.host_callbacks or now.native_code:
        return "it cannot be stored and duelled"
    if only_settings_changed(now, record.baseline):
        return "a duel would run both sides under today's settings: --perf-against-env NAME=VALUE times both"
    if has_other_executable(now, record.baseline):
        return "a duel would compile both sides here"
    if ours.program == theirs.program and inputs_matter(now, record.baseline):
        decide = (
            f", and {shortlist(now.depends_on_values, MAX_NAMED)} may depend on them" if now.depends_on_values else ""
        )
        return f"a duel would feed today's input values to both sides{decide}"
    return ""
