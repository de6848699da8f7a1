"""Time of a changed program: a duel with the baseline's program, here and now; or why there can be none."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial

from jaxgate.engine.duels.duel_processes import DuelBudget, Environments, FreshDuel
from jaxgate.engine.duels.launched_duel import differs_here, match_all, match_programs, recompiled
from jaxgate.engine.instruments import Instruments
from jaxgate.engine.repeats import DuelRepeat, Repeat
from jaxgate.ext.energy.run import BothEnergies, duel_energy
from jaxgate.judge.ageing import window_note
from jaxgate.judge.difference import Difference
from jaxgate.judge.timing.calibration import name_margin, own_margin, why_not_applied
from jaxgate.judge.timing.duel import LOOKS, decide, is_settled
from jaxgate.judge.verdict import why_untimed
from jaxgate.keep.cache import DamagedFloorsError, FloorStore
from jaxgate.keep.programs import ProgramStore
from jaxgate.model.baseline import StoredBaseline
from jaxgate.model.calibration import NoiseFloor, NoiseFloors
from jaxgate.model.decision import Decision
from jaxgate.model.duel import BrokenDuelError, Duel
from jaxgate.model.machine import HardwareKey
from jaxgate.model.measurement import MAX_NAMED, InvalidCaseError, Measurement
from jaxgate.model.program import Match, ProgramRecord, StoredProgram
from jaxgate.model.words import shortlist
from jaxgate.observe.arguments.lockstep import ALONE
from jaxgate.observe.duel.duel import Contender, Side, agree, prepare
from jaxgate.observe.duel.sides import CallSide, Opponents, prepared
from jaxgate.observe.errors import describe
from jaxgate.observe.observation import Observation
from jaxgate.observe.program.executable_fingerprint import executable_fingerprint, same_executable
from jaxgate.observe.program.export import NotReplayableError, UnreadableProgramError
from jaxgate.processes.live_worker import WorkerError

SEVERAL = "several processes: timed beside the baseline's program alone"
"""Why a program that runs over several processes is not timed with its reference, or under other settings."""


def why_hopeless(difference: Difference) -> str:
    """Why no duel could say anything; empty if one could."""
    now = difference.now
    if now.processes > 1 and (now.eager or difference.only_settings):
        return SEVERAL
    launched = now.launched_programs and difference.baseline.launched_programs
    if now.only_raises:
        return "its error checks call Python, so that it cannot be stored and duelled; EQX_ON_ERROR=nan leaves them out"
    if (now.eager and not launched) or now.facts.host_callbacks or now.native_code:
        return "it cannot be stored and duelled"
    if not difference.executable_is_explained:
        return "a duel would compile both sides here"
    if difference.same_program and not difference.same_work:
        decide = (
            f", and {shortlist(now.depends_on_values, MAX_NAMED)} may depend on them" if now.depends_on_values else ""
        )
        return f"a duel would give today's input values to both programs{decide}; with a fixed seed they are the same in each run"
    return ""


DUEL = "a duel with the baseline's program"
Opponent = tuple[StoredProgram, Contender]
"""The baseline's program and its executable here. Holds arrays."""


class Margins:
    """Looks up the noise floor that a calibration of this checkout, hardware and environment gave a case.

    A file that cannot be used costs one line, and never a run.

    Attributes:
        notes: What a person should know, one line each.
    """

    def __init__(self, store: FloorStore) -> None:
        self._store = store
        self._read: dict[HardwareKey, NoiseFloors | None] = {}
        self.notes: list[str] = []

    def floor_of(self, case: str, now: Measurement) -> NoiseFloor | None:
        """The floor that holds for a case here, if there is one."""
        hardware = now.hardware
        if hardware not in self._read:
            self._read[hardware] = None
            try:
                self._read[hardware] = self._store.load(hardware)
            except DamagedFloorsError as error:
                self._note(hardware, str(error))
        floors = self._read[hardware]
        if floors is None or case not in floors.cases:
            return None
        why_not = why_not_applied(floors, hardware, now.environment)
        if why_not:
            self._note(hardware, why_not)
            return None
        return floors.cases[case]

    def _note(self, hardware: HardwareKey, reason: str) -> None:
        path = self._store.path(hardware)
        where = "" if path is None else f" in {os.path.relpath(path)}"
        note = f"The calibration{where} is not used: {reason}. Calibrate again or delete it."
        if note not in self.notes:
            self.notes.append(note)


@dataclass(frozen=True, slots=True)
class BaselineTiming:
    """The outcome of trying to time a case against its baseline."""

    # the baseline; its compiled facts are those of its program here, where the environment differs
    stored_here: StoredBaseline | None
    decision: Decision | None = None  # what the duel said
    duel: Duel | None = None  # its times
    why_not: str = "no duel was run"  # why there was none
    same_executable: bool = False  # none was needed: today's program and the baseline's compile to the same here
    repeat: Repeat | None = None  # how a fresh process looks for it again
    opponent: Opponent | None = None  # the baseline's program, if it was compiled: a red case is profiled beside it
    took_ns: int = 0  # what all of it took
    energy: BothEnergies | None = None  # what was counted of both sides of the duel; `None` where nobody asked


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineDuels:
    """Runs the duels of one run with the programs of its baselines."""

    programs: ProgramStore  # where the baselines' programs are
    budget: DuelBudget  # what all duels together may take
    margins: Margins  # what a calibration knows of the noise of each case
    opponents: Opponents  # baselines' programs, compiled here
    instruments: Instruments  # the duel, the clock, and the date, for the age of a program that cannot be read
    variables: Mapping[str, str]  # of a process of its own, before anything was set

    def time(
        self,
        observed: Observation,
        stored: StoredBaseline | None,
        difference: Difference | None,
        progress: Callable[[str], None],
    ) -> BaselineTiming:
        """Duel with the baseline's program if the program may have changed and both can run here.

        Raises:
            InvalidCaseError: If the baseline lost its program, or the times of the duel mean nothing.
        """
        if stored is None or difference is None or not (difference.same_arguments and difference.why_not_identical):
            return BaselineTiming(stored)
        why_not = why_hopeless(difference)
        if why_not:
            return BaselineTiming(stored, why_not=why_not)
        begin = self.instruments.clock()
        with observed.together.calling(DUEL):
            found = self.run(observed, stored, difference, progress)
        return replace(found, took_ns=self.instruments.clock() - begin)

    def run(
        self, observed: Observation, stored: StoredBaseline, difference: Difference, progress: Callable[[str], None]
    ) -> BaselineTiming:
        """Duel with the baseline's program: all ranks of a case at once, by what rank 0 decides.

        Raises:
            InvalidCaseError: If the baseline lost its program, or the times of the duel mean nothing.
        """
        case = _CaseDuel(self, observed, stored, difference, progress)
        against = case.launched if observed.measurement.eager else case.jitted
        if difference.only_settings:
            against = case.apart
        try:
            return against()
        except InvalidCaseError as error:
            raise error from None
        except BrokenDuelError as error:
            raise InvalidCaseError("timing against the baseline's program", str(error)) from None
        except UnreadableProgramError as error:
            note = window_note(stored.baseline.provenance.date, today=self.instruments.today())
            return BaselineTiming(stored, why_not=f"no duel can be run: {error}" + (f" ({note})" if note else ""))
        except NotReplayableError as error:
            return BaselineTiming(stored, why_not=f"no duel can be run: {error}")
        except Exception as error:  # noqa: BLE001 - told where it is judged
            if observed.together is not ALONE:  # the others are in it still
                raise InvalidCaseError("timing against the baseline's program", describe(error)) from None
            # Facts are judged all the same; time is not, and says why.
            return BaselineTiming(stored, why_not=f"the duel failed: {describe(error)}")

    def load(self, fingerprint: str, record: ProgramRecord) -> StoredProgram:
        """Load a program of a baseline; its content is empty if none was stored.

        Raises:
            InvalidCaseError: If it was lost.
        """
        content = self.programs.load(fingerprint, record.digest) if record.stored else b""
        if content is None:
            raise InvalidCaseError("reading the baseline's program", self.programs.why_missing(fingerprint))
        return StoredProgram(record=record, content=content)


@dataclass(frozen=True, slots=True)
class _CaseDuel:
    """The duel of one case, in the three ways in which its programs may be run."""

    given: BaselineDuels
    observed: Observation
    stored: StoredBaseline
    difference: Difference
    progress: Callable[[str], None]

    def jitted(self) -> BaselineTiming:
        """Compile the baseline's program here, for its facts; duel with it where only the time of a call can differ."""
        observed, together, difference = self.observed, self.observed.together, self.difference
        recorded = self.stored.baseline
        before = self.given.load(recorded.fingerprints.program, recorded.program)
        together.same("the baseline's program", lambda: f"{recorded.fingerprints.program} {recorded.program}")
        self.progress("compiling the baseline's program")
        here = prepared(together, lambda: self.given.opponents.compiled(before, observed))
        timing = BaselineTiming(self.stored, opponent=None if here.contender is None else (before, here.contender))
        # The facts are of this machine, whatever its clock may say.
        if difference.changed_environment or not difference.same_hardware:
            known = {name: value for name, value in here.facts.items() if value is not None}
            stored = replace(recorded, facts=replace(recorded.facts, **known))
            timing = replace(timing, stored_here=replace(self.stored, baseline=stored, recorded=recorded.facts))
        why_not = self._unclocked()
        alike, unclocked = map(bool, together.first("a duel", (difference.times_as_executable, bool(why_not))))
        if alike and here.executable is not None and observed.lowered is not None:
            ours = observed.measurement.fingerprints.executable
            # Where its fingerprint was not taken, `compile()` gives the executable that was observed, and compiles nothing.
            other = (ours or executable_fingerprint(observed.lowered.stage.compile())) != here.executable
            if not together.anyone("another executable", other):
                return replace(timing, same_executable=True)
        if unclocked:
            return replace(timing, why_not=why_not)
        with self._charged():
            leaves, contract, today = observed.leaves(), observed.contract, observed.export()
            if not today.record.stored:
                return replace(timing, why_not=f"today's program cannot be duelled: {today.record.why_not}")
            now, theirs = prepared(
                together,
                lambda: (prepare(today, leaves, contract), here.contender or prepare(before, leaves, contract)),
            )
            timing = replace(timing, opponent=(before, theirs))
            other = alike and not same_executable(now.function, theirs.function)  # both exported: in the same order
            if alike and not together.anyone("another program to duel with", other):
                return replace(timing, same_executable=True)
            self.progress("sampling")  # nothing else may run beside it
            return self._clocked(timing, [Match(now=today, baseline=before, leaves=leaves)], (now, theirs))

    def apart(self) -> BaselineTiming:
        """Run each side in its own process, because only settings differ; stored facts are compared exactly."""
        timing = BaselineTiming(self.stored)
        if why_not := self._unclocked():
            return replace(timing, why_not=why_not)
        matches, why_not = match_all(self.observed, self.stored.baseline, self.given.load)
        if why_not:
            return replace(timing, why_not=f"a program cannot be duelled: {why_not}")
        environments = Environments(
            now=self.observed.measurement.environment,
            baseline=self.stored.baseline.environment,
            variables=self.given.variables,
        )
        self.progress("sampling")  # nothing else may run beside it
        with self._charged():
            try:
                return self._clocked(timing, matches, environments=environments)
            except WorkerError as error:
                return replace(timing, why_not=f"{error}: --perf-against NAME=VALUE times both")

    def launched(self) -> BaselineTiming:
        """Duel with the programs that plain Python launched when the baseline was recorded, where they have changed."""
        elsewhere = bool(self.difference.changed_environment) or not self.difference.same_hardware
        self.progress("compiling the baseline's programs")
        matched = match_programs(self.observed, self.stored.baseline, self.given.load, equal_ones=elsewhere)
        contract = self.observed.contract
        theirs = [prepare(one.baseline, one.leaves, contract) for one in matched.matches]
        timing = BaselineTiming(recompiled(self.stored, matched, theirs) if elsewhere else self.stored)
        if matched.why_not:
            return replace(timing, why_not=f"not all of its programs can be duelled: {matched.why_not}")
        if why_not := self._unclocked():
            return replace(timing, why_not=why_not)
        with self._charged():
            ours = [prepare(one.now, one.leaves, contract) for one in matched.matches]
            programs = list(zip(matched.matches, ours, theirs, strict=True))
            other = [one for one in programs if differs_here(*one)]
            if not other and self.difference.times_as_executable:
                return replace(timing, same_executable=True)
            other = other or programs
            sides = (
                CallSide([(side, match.calls[0]) for match, side, _ in other]),
                CallSide([(side, match.calls[1]) for match, _, side in other]),
            )
            self.progress("sampling")  # nothing else may run beside it
            return self._clocked(timing, [match for match, *_ in other], sides)

    def _unclocked(self) -> str:
        """Why no clock may decide; empty if one may."""
        if why := why_untimed(self.difference.now):
            return why
        if not self.difference.same_devices:
            return "a duel would give both programs one order of devices"
        return "" if self.given.budget.is_left else "the budget for duels is spent (--perf-budget)"

    def _charged(self) -> AbstractContextManager[None]:
        return self.given.budget.charged(self.given.instruments.clock)

    def _clocked(
        self,
        timing: BaselineTiming,
        matches: Sequence[Match],
        sides: tuple[Side, Side] | None = None,
        environments: Environments | None = None,
    ) -> BaselineTiming:
        """Let both sides of a duel show what they give, and time them; without ``sides`` each has a process of its own."""
        now, instruments = self.observed.measurement, self.given.instruments
        floor = self.given.margins.floor_of(self.stored.baseline.case, now)
        again = FreshDuel(
            matches,
            now.hardware.platform,
            self.observed.contract,
            own_margin=own_margin(floor),
            environments=environments,
        )
        with instruments.open_sides(again) if sides is None else nullcontext(sides) as both:
            together = self.observed.together
            (seed,) = together.first("the order of its bursts", (secrets.randbits(32),))
            ours, theirs = map(together.side, both)
            same_results = agree(ours, theirs, self.observed.closeness)
            duel = instruments.run_duel(
                ours,
                theirs,
                seed=seed,
                settled=partial(is_settled, own_margin=again.own_margin),
                clock=instruments.clock,
                max_pairs=max(LOOKS),
                platform=again.platform,
            )
            decision = replace(name_margin(decide(duel, own_margin=again.own_margin), floor), agrees=same_results)
            energy = duel_energy(self.observed.meter, both, duel)
        return replace(timing, decision=decision, duel=duel, repeat=DuelRepeat(again), energy=energy)
