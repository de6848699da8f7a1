"""Time of a changed program: a duel with the baseline's program, here and now."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from jaxgate.engine.duel_budget import DuelBudget
from jaxgate.engine.duel_processes import Environments, FreshDuel
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
    Duel,
    InvalidCaseError,
    Measurement,
    StoredBaseline,
    StoredProgram,
    shortlist,
)
from jaxgate.observe.duel import Contender, Opponents, Side, agree, prepare
from jaxgate.observe.errors import describe
from jaxgate.observe.observation import Observation
from jaxgate.observe.program import NotReplayableError, UnreadableProgramError, executable_fingerprint, same_executable
from jaxgate.processes.side_worker import SideError

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
        variables: Of a process of its own, before anything was set.
    """

    def __init__(
        self,
        programs: ProgramStore,
        budget: DuelBudget,
        *,
        margins: Margins,
        opponents: Opponents,
        instruments: Instruments,
        variables: Mapping[str, str],
    ) -> None:
        self._programs = programs
        self._budget = budget
        self._margins = margins
        self._opponents = opponents
        self._instruments = instruments
        self._variables = variables

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
        against = self._apart if only_settings_changed(observed.measurement, stored.baseline) else self._against
        try:
            return against(observed, stored, progress)
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
        before = self._load(record)
        progress("compiling the baseline's program")
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
        # The facts above are of this machine, whatever its clock may say.
        if why_not := self._unclocked(observed.measurement, record):
            return replace(timing, why_not=why_not)
        with self._charged():
            return self._duel(observed, timing, record, before, here.contender, alike=alike, progress=progress)

    def _apart(self, observed: Observation, record: StoredBaseline, progress: Callable[[str], None]) -> BaselineTiming:
        """Duel with a process for each side, where what differs is what somebody set: the stored facts are exact."""
        timing = BaselineTiming(record)
        if why_not := self._unclocked(observed.measurement, record):
            return replace(timing, why_not=why_not)
        before, today = self._load(record), observed.export()
        if not (before.record.stored and today.record.stored):
            why_not = before.record.why_not or today.record.why_not
            return replace(timing, why_not=f"a program cannot be duelled: {why_not}")
        now, floor = observed.measurement, self._margins.floor_of(record.baseline.case, observed.measurement)
        own = own_margin(floor)
        again = FreshDuel(
            today,
            before,
            observed.leaves(),
            now.hardware.platform,
            observed.contract,
            own_margin=own,
            environments=Environments(
                now=now.environment, baseline=record.baseline.environment, variables=self._variables
            ),
        )
        progress("sampling")  # nothing else may run beside it
        with self._charged():
            try:
                with self._instruments.open_sides(again) as sides:
                    same_results = agree(*sides, rtol=observed.rtol, atol=observed.atol)
                    duel = self._run(*sides, own=own, platform=again.platform)
            except SideError as error:
                return replace(timing, why_not=f"{error}: --perf-against-env NAME=VALUE times both")
        decision = replace(name_margin(decide(duel, own_margin=own), floor), agrees=same_results)
        return replace(timing, decision=decision, repeat=DuelRepeat(again))

    def _load(self, record: StoredBaseline) -> StoredProgram:
        """The program of a baseline; empty if it has none."""
        stored = record.baseline.program
        fingerprint = record.baseline.fingerprints.program
        content = self._programs.load(fingerprint, stored.digest) if stored.stored else b""
        if content is None:
            raise InvalidCaseError(
                "reading the baseline's program",
                f"{self._programs.path(fingerprint).name} is missing or damaged; restore it with git, "
                "or record the case again with --perf-update",
            )
        return StoredProgram(record=stored, content=content)

    def _unclocked(self, now: Measurement, record: StoredBaseline) -> str:
        """Why no clock may decide; empty if one may."""
        if now.hardware.is_virtual:
            return SHARED_CORES
        if not has_same_devices(now, record.baseline):
            return "a duel would lay both programs out in one order"
        if now.samples is None:
            return "the clock is switched off (--benchmark-disable)"
        return "" if self._budget.is_left else "the budget for duels is spent (--perf-budget)"

    @contextmanager
    def _charged(self) -> Iterator[None]:
        """Charge what the block takes to the budget."""
        begin = self._instruments.clock()
        try:
            yield
        finally:
            self._budget.charge(self._instruments.clock() - begin)

    def _run(self, now: Side, baseline: Side, *, own: float | None, platform: str) -> Duel:
        """Time two sides in turn until it is settled."""
        return self._instruments.run_duel(
            now,
            baseline,
            settled=partial(is_settled, own_margin=own),
            clock=self._instruments.clock,
            max_pairs=max(LOOKS),
            platform=platform,
        )

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
        duel = self._run(now, baseline, own=own, platform=platform)
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
    if has_other_executable(now, record.baseline):
        return "a duel would compile both sides here"
    if ours.program == theirs.program and inputs_matter(now, record.baseline):
        decide = (
            f", and {shortlist(now.depends_on_values, MAX_NAMED)} may depend on them" if now.depends_on_values else ""
        )
        return f"a duel would feed today's input values to both sides{decide}"
    return ""
