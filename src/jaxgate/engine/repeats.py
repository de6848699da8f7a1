"""A case that only clocks make red is provisional: fresh processes measure it again before it fails a test."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from jaxgate.engine.duels.duel_processes import FreshDuel
from jaxgate.engine.instruments import Instruments
from jaxgate.ext.times.judge import StoredLimit, decide_stored
from jaxgate.judge.difference import Difference
from jaxgate.judge.order import conclude, has_red_phase
from jaxgate.judge.time import hold_stored
from jaxgate.judge.timing.confirmation import accuses, comes_again, settle_time
from jaxgate.judge.timing.phases import settle_phases
from jaxgate.keep.baselines import BaselineStore
from jaxgate.keep.strict import CorruptBaselineError
from jaxgate.model.baseline import Baseline
from jaxgate.model.claim import Claim
from jaxgate.model.decision import ALWAYS_FAIL, Status
from jaxgate.model.duel import BrokenDuelError, RepeatOutcome
from jaxgate.model.measurement import Measurement
from jaxgate.model.numbers import Phases
from jaxgate.model.outcome import UsageError
from jaxgate.model.verdict import TimeVerdict, Verdict
from jaxgate.processes.pytest_child import Selection, Side
from jaxgate.settings import AS_MEASURED

_UNCACHED = {"JAX_ENABLE_COMPILATION_CACHE": "false"}
"""What this process compiled the next one would find in a persistent cache: nothing of it could be confirmed."""
_OTHER_PROGRAM = "a fresh process ran another program, or in another environment"


class _TimeRepeat:
    """A case, or a claim, that its time makes red: settled alike, however it is measured again."""

    __slots__ = ()

    @property
    def claim(self) -> Claim | None:
        """The claim that is decided; ``None`` for the time beside the baseline's."""
        return None

    def accuses(self, verdict: Verdict) -> bool:
        """Whether this time makes a case red."""
        return accuses(verdict, self.claim)

    def comes_again(self, verdict: Verdict, outcome: RepeatOutcome) -> bool:
        """Whether the case is as slow in the fresh process."""
        del verdict  # the outcome was decided by the claim, or the limit, alone
        return comes_again(outcome, self.claim)

    def settle(
        self, verdict: Verdict, outcomes: Sequence[RepeatOutcome], *, machine: bool, strict: bool, wanted: int
    ) -> Verdict:
        """SLOWER, or a broken claim, where all processes agree."""
        return settle_time(verdict, outcomes, machine=machine, claim=self.claim, strict=strict, wanted=wanted)


@dataclass(frozen=True, slots=True)
class DuelRepeat(_TimeRepeat):
    """A duel with the baseline's program, or with the reference for a claim about run time."""

    duel: FreshDuel
    has_control: ClassVar[bool] = True

    @property
    def may_be_machine(self) -> bool:
        """True where both sides are run alike: else what somebody set is what many cases have in common."""
        return self.duel.environments is None

    @property
    def claim(self) -> Claim | None:
        """The claim that is decided; ``None`` for the time beside the baseline's."""
        return self.duel.claim

    def run(self, case: str, instruments: Instruments) -> RepeatOutcome:
        """Run the duel again, and beside it a duel of a program with itself."""
        del case  # the duel is all it takes
        return instruments.repeat_duel(self.duel)


@dataclass(frozen=True, slots=True, kw_only=True)
class _WholeTest:
    """A test that is run again, whole, in a fresh process."""

    again: Side  # how the tests of this run are run again
    test: str  # pytest node id
    now: Measurement  # what this process measured

    has_control: ClassVar[bool] = False

    @property
    def may_be_machine(self) -> bool:
        """False by default: a whole test scales what is stored, or looks at the machine itself."""
        return False

    def _measure(self, case: str, instruments: Instruments, **variables: str) -> Baseline | str:
        """What a fresh process with these variables would record, on the same hardware; or why there is nothing."""
        with tempfile.TemporaryDirectory(prefix="jaxgate-") as name:
            into = Path(name)
            side = replace(self.again, environment={**self.again.environment, **variables, AS_MEASURED: "1"})
            try:
                failed = instruments.record(side, Selection((self.test,), "", ""), into)
                found = BaselineStore(into, self.now.line).load(self.now.hardware, case)
            except (UsageError, CorruptBaselineError, OSError) as error:
                return f"a fresh process failed: {error}"
        return failed.get(self.test, "a fresh process recorded nothing") if found is None else found.baseline


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTimeRepeat(_WholeTest, _TimeRepeat):
    """A measurement that stored times found slow; each look at the machine says for itself whether that is quiet."""

    accepted: Baseline  # the baseline
    limit: StoredLimit  # what the stored sessions allow

    def run(self, case: str, instruments: Instruments) -> RepeatOutcome:
        """Run the test in a fresh process, on a machine that is still quiet."""
        seen = instruments.look(self.now.hardware.platform, after_work=True, holds_device=True)
        if seen.objections:
            problem = f"the machine is not quiet: {'; '.join(seen.objections)}"
            return RepeatOutcome(problem=problem, has_control=False, blames_machine=True)
        found = self._measure(case, instruments)
        if isinstance(found, str):
            return RepeatOutcome(problem=found, has_control=False)
        ours = self.now
        same = ours.fingerprints == found.fingerprints and ours.environment == found.environment
        if not same or found.samples is None or found.contract != self.accepted.contract:
            return RepeatOutcome(problem=_OTHER_PROGRAM, has_control=False)
        try:
            decision = decide_stored(self.limit, found.samples.run_ns)
        except BrokenDuelError as error:
            return RepeatOutcome(problem=f"a fresh process gave nothing usable: {error}", has_control=False)
        return RepeatOutcome(decision, has_control=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class BackstopRepeat(_WholeTest, _TimeRepeat):
    """A call that took far longer than it was recorded, where no duel decided."""

    difference: Difference  # what it measured, beside the baseline
    plain: TimeVerdict  # what was said of time before the stored one withdrew it

    @property
    def may_be_machine(self) -> bool:
        """True where nothing that somebody set differs: else that is what many cases have in common."""
        return not self.difference.only_settings

    def run(self, case: str, instruments: Instruments) -> RepeatOutcome:
        """Run the test in a fresh process and take the time of its call, whatever is found of its program."""
        found = self._measure(case, instruments)
        if isinstance(found, str):
            return RepeatOutcome(problem=found, has_control=False)
        recorded = self.difference.baseline
        if found.samples is None or recorded.samples is None:
            return RepeatOutcome(problem="a fresh process took no times (--benchmark-disable)", has_control=False)
        decision = hold_stored(found.samples, found.phases, recorded.samples, recorded.phases)
        return RepeatOutcome(decision, has_control=False)

    def settle(
        self, verdict: Verdict, outcomes: Sequence[RepeatOutcome], *, machine: bool, strict: bool, wanted: int
    ) -> Verdict:
        """SLOWER where all processes agree; else what was said before, with a note."""
        settled = _TimeRepeat.settle(self, verdict, outcomes, machine=machine, strict=strict, wanted=wanted)
        if settled.time.status is not Status.UNDECIDED or verdict.time.decision is None:
            return settled
        note = f"{verdict.time.decision.reason} in this process, and not in fresh process {len(outcomes)} of {wanted}"
        time = replace(self.plain, reason=f"{self.plain.reason}; {note}")
        return conclude(
            settled, [finding for finding in settled.findings if finding.kind != "time"], time, strict=strict
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseRepeat(_WholeTest):
    """A phase that took longer than the baseline allows."""

    before: Phases  # the baseline's phases

    def accuses(self, verdict: Verdict) -> bool:
        """Whether a phase makes the case red."""
        return has_red_phase(verdict)

    def run(self, case: str, instruments: Instruments) -> RepeatOutcome:
        """Measure the phases in a fresh process that compiles the same program in the same environment."""
        found = self._measure(case, instruments, **_UNCACHED)
        if isinstance(found, str):
            return RepeatOutcome(problem=found)
        ours, theirs = self.now.fingerprints, found.fingerprints
        same = (ours.program, ours.options) == (theirs.program, theirs.options)
        if not same or self.now.environment != found.environment:
            return RepeatOutcome(problem=_OTHER_PROGRAM)
        return RepeatOutcome(phases=found.phases)

    def comes_again(self, verdict: Verdict, outcome: RepeatOutcome) -> bool:
        """Whether any of the phases that are red took as long there."""
        found = settle_phases(verdict.findings, self.before, [outcome.phases or outcome.problem], wanted=1)
        return any(finding.kind == "phase" and finding.status is Status.REGRESSED for finding in found)

    def settle(
        self, verdict: Verdict, outcomes: Sequence[RepeatOutcome], *, machine: bool, strict: bool, wanted: int
    ) -> Verdict:
        """Judge the phases of all processes beside the baseline's."""
        del machine  # phases are not what accuses it
        found = [outcome.phases or outcome.problem for outcome in outcomes]
        return conclude(verdict, settle_phases(verdict.findings, self.before, found, wanted=wanted), strict=strict)


Repeat = DuelRepeat | StoredTimeRepeat | BackstopRepeat | PhaseRepeat
"""One way in which a clock can make a case red, and how a fresh process looks for it again."""


@dataclass(frozen=True, slots=True)
class Provisional:
    """A case that only the clocks of this process make red."""

    verdict: Verdict  # its verdict so far
    repeats: Sequence[Repeat]  # what made it red, each to be looked for again
    strict: bool = False  # whether a missing or stale baseline fails it too

    @property
    def may_be_machine(self) -> bool:
        """Whether many cases such as this one say together that the machine changed."""
        return any(repeat.may_be_machine for repeat in self.repeats)

    @property
    def size(self) -> float:
        """How many times slower it is, if it has a control in a fresh process; else 0."""
        if not any(repeat.has_control for repeat in self.repeats):
            return 0.0
        verdict = self.verdict
        red = [finding for finding in verdict.findings if finding.status in ALWAYS_FAIL]
        decisions = [verdict.time.decision if finding.kind == "time" else finding.decision for finding in red]
        return max((decision.ratio for decision in decisions if decision is not None), default=0.0)


def in_order(cases: Mapping[str, Provisional], *, many: bool) -> Sequence[str]:
    """Provisional cases in the order in which to confirm them: if many fired, the largest with a control come first."""
    return sorted(cases, key=lambda case: -cases[case].size) if many else list(cases)


def confirm(case: Provisional, instruments: Instruments, *, machine: bool) -> Verdict:
    """Repeat what made a case red; one process that disagrees is enough to stop.

    What may be the machine's doing is not repeated if the run as a whole accuses the ``machine``.
    """
    verdict = case.verdict
    for repeat in case.repeats:
        accused = machine and repeat.may_be_machine
        outcomes: list[RepeatOutcome] = []
        while not accused and len(outcomes) < instruments.processes:
            outcomes.append(repeat.run(verdict.case, instruments))
            if not repeat.comes_again(verdict, outcomes[-1]):
                break
        verdict = repeat.settle(verdict, outcomes, machine=accused, strict=case.strict, wanted=instruments.processes)
    return verdict
