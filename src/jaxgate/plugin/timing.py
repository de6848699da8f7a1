"""Time of a changed program: a duel with the baseline's program, here and now."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Any

from jaxgate.judge.ageing import window_note
from jaxgate.judge.duel import LOOKS, decide, is_settled
from jaxgate.judge.floors import name_margin, own_margin
from jaxgate.judge.origin import differs, may_share_executable, takes_same_arguments
from jaxgate.keep.programs import ProgramStore
from jaxgate.model import (
    BrokenDuelError,
    Claim,
    Contract,
    Decision,
    InvalidCaseError,
    Measurement,
    Record,
    StoredProgram,
)
from jaxgate.observe.duelling import Contender, agree, prepare, run_duel
from jaxgate.observe.executables import executable_fingerprint, same_executable
from jaxgate.observe.exporting import NotReplayableError, UnreadableProgramError
from jaxgate.observe.failures import describe
from jaxgate.observe.observed import Observed
from jaxgate.observe.recompiled import Opponents
from jaxgate.plugin.margins import Margins

if TYPE_CHECKING:
    from jaxgate.plugin.stored import Repeat


@dataclass(frozen=True, slots=True)
class Rematch:
    """What a fresh process needs to run the duel again.

    Attributes:
        now: Today's program.
        baseline: The other: the baseline's program, or the reference.
        leaves: The arguments of both.
        platform: Where they run.
        contract: What the time of a call means.
        claim: What the duel with the reference decides; ``None`` for a duel with the baseline's program.
        own_margin: The case's own margin in a duel with the baseline's program.
    """

    now: StoredProgram
    baseline: StoredProgram
    leaves: list[Any]
    platform: str
    contract: Contract = "pipelined"
    claim: Claim | None = None
    own_margin: float | None = None


@dataclass(frozen=True, slots=True)
class Timed:
    """The outcome of trying to time a case against its baseline.

    Attributes:
        record: The baseline; its compiled facts are those of its program here, where the environment differs.
        decision: What the duel said.
        why_not: Why there was none.
        same_executable: None was needed: today's program and the baseline's compile to the same here.
        rematch: How to run it again.
    """

    record: Record | None
    decision: Decision | None = None
    why_not: str = "no duel was run"
    same_executable: bool = False
    rematch: Rematch | Repeat | None = None


SEVERAL = "several processes: not duelled yet"
"""Why a program that runs over several processes is not timed against another."""


class Stopwatch:
    """Runs the duels of one run within its budget.

    Args:
        programs: Where the baselines' programs are.
        budget_s: Seconds that all duels together may take; ``None`` for no limit.
        today: The UTC date, to say how old a program is that cannot be read.
        margins: What a calibration knows of the noise of each case.
        opponents: Baselines' programs, compiled here.
        clock: Monotonic nanoseconds.

    Attributes:
        spent_ns: What all duels together have taken so far.
        on_baselines_ns: What baselines' programs have taken: to be compiled here, and to be duelled with.
        opponent: The baseline's program of the last case, if it was compiled: a red case is profiled beside it. Holds arrays.
    """

    def __init__(
        self,
        programs: ProgramStore,
        budget_s: float | None,
        today: date,
        *,
        margins: Margins,
        opponents: Opponents,
        clock: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        self._programs = programs
        self._margins = margins
        self._opponents = opponents
        self._budget_ns = None if budget_s is None else budget_s * 1e9
        self._today = today
        self._clock = clock
        self.spent_ns = 0
        self.on_baselines_ns = 0
        self.opponent: tuple[StoredProgram, Contender] | None = None

    def time(self, observed: Observed, record: Record | None, progress: Callable[[str], None]) -> Timed:
        """Duel with the baseline's program if the program may have changed and both can run here.

        Raises:
            InvalidCaseError: If the baseline lost its program, or the times of the duel mean nothing.
        """
        now = observed.measurement
        if record is None or not takes_same_arguments(now, record.baseline) or not differs(now, record.baseline):
            return Timed(record)
        why_not = _hopeless(now, record)
        if why_not:
            return Timed(record, why_not=why_not)
        begin = self._clock()
        try:
            return self._against(observed, record, progress)
        except (BrokenDuelError, InvalidCaseError) as error:
            raise _invalid(error) from None
        except UnreadableProgramError as error:
            note = window_note(record.baseline.provenance.date, today=self._today)
            return Timed(record, why_not=f"no duel can be run: {error}" + (f" ({note})" if note else ""))
        except NotReplayableError as error:
            return Timed(record, why_not=f"no duel can be run: {error}")
        except Exception as error:  # noqa: BLE001 - facts are judged all the same; time is not, and says why
            return Timed(record, why_not=f"the duel failed: {describe(error)}")
        finally:
            self.on_baselines_ns += self._clock() - begin

    @property
    def has_budget(self) -> bool:
        """Whether another duel may begin."""
        return self._budget_ns is None or self.spent_ns < self._budget_ns

    def charge(self, spent_ns: int) -> None:
        """Note what a duel took."""
        self.spent_ns += spent_ns

    def _against(self, observed: Observed, record: Record, progress: Callable[[str], None]) -> Timed:
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
        self.opponent = None if here.contender is None else (before, here.contender)
        now_at = (observed.measurement.environment, observed.measurement.hardware)
        if now_at != (record.baseline.environment, record.baseline.hardware):
            known = {name: value for name, value in here.facts.items() if value is not None}
            facts = replace(record.baseline.facts, **known)
            record = replace(record, baseline=replace(record.baseline, facts=facts))
        alike = may_share_executable(observed.measurement, record.baseline)
        if alike and here.executable is not None and observed.lowered is not None:
            executable = observed.lowered.stage.compile()  # JAX has it since it was observed
            if executable_fingerprint(executable) == here.executable:
                return Timed(record, same_executable=True)
        at = observed.measurement.hardware
        if at.platform == "cpu" and at.devices > 1:  # the facts above are of this machine none the less
            return Timed(record, why_not="virtual CPU devices share their cores, so no clock judges them")
        if observed.measurement.samples is None:
            return Timed(record, why_not="the clock is switched off (--benchmark-disable)")
        if not self.has_budget:
            return Timed(record, why_not="the budget for duels is spent (--perf-budget)")
        begin = self._clock()
        try:
            return self._duel(observed, record, before, here.contender, alike=alike, progress=progress)
        finally:
            self.charge(self._clock() - begin)

    def _duel(
        self,
        observed: Observed,
        record: Record,
        before: StoredProgram,
        contender: Contender | None,
        *,
        alike: bool,
        progress: Callable[[str], None],
    ) -> Timed:
        leaves, contract = observed.leaves(), observed.contract
        today = observed.export()
        if not today.record.stored:
            return Timed(record, why_not=f"today's program cannot be duelled: {today.record.why_not}")
        now, baseline = prepare(today, leaves, contract), contender or prepare(before, leaves, contract)
        self.opponent = before, baseline
        if alike and same_executable(now.function, baseline.function):  # both exported: in the same order, too
            return Timed(record, same_executable=True)
        same_results = agree(now, baseline, rtol=observed.rtol, atol=observed.atol)
        floor = self._margins.floor_of(record.baseline.case, observed.measurement)
        own = own_margin(floor)
        progress("sampling")  # nothing else may run beside it
        platform = observed.measurement.hardware.platform
        duel = run_duel(
            now,
            baseline,
            settled=partial(is_settled, own_margin=own),
            clock=self._clock,
            max_pairs=max(LOOKS),
            platform=platform,
        )
        decision = replace(name_margin(decide(duel, own_margin=own), floor), agrees=same_results)
        again = Rematch(today, before, leaves, platform, contract, own_margin=own)
        return Timed(record, decision=decision, rematch=again)


def _invalid(error: Exception) -> InvalidCaseError:
    if isinstance(error, InvalidCaseError):
        return error
    return InvalidCaseError("timing against the baseline's program", str(error))


def _hopeless(now: Measurement, record: Record) -> str:
    """Why no duel could say anything; empty if one could."""
    ours, theirs = now.fingerprints, record.baseline.fingerprints
    if now.processes > 1:
        return SEVERAL
    if now.host or record.baseline.host or now.facts.host_callbacks:
        return "it cannot be stored and duelled"
    if ours.program == theirs.program and ours.inputs != theirs.inputs:
        return "a duel would feed today's input values to both sides"
    return ""
