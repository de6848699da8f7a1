"""A case that only clocks make red, and what fresh processes make of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jaxgate.engine.duels.repeats import Repeat
from jaxgate.engine.instruments import Instruments
from jaxgate.judge import ALWAYS_FAIL
from jaxgate.model import RepeatOutcome, Verdict


@dataclass(frozen=True, slots=True)
class Provisional:
    """A case that only the clocks of this process make red.

    Attributes:
        verdict: Its verdict so far.
        repeats: What made it red, each to be looked for again.
        strict: Whether a missing or stale baseline fails it too.
    """

    verdict: Verdict
    repeats: Sequence[Repeat]
    strict: bool = False

    @property
    def may_be_machine(self) -> bool:
        """Whether it is one of those that say together that the machine moved under them."""
        return any(repeat.may_be_machine for repeat in self.repeats)

    @property
    def size(self) -> float:
        """By how much it is slower, of what has a control in a fresh process; 0 if nothing has."""
        if not any(repeat.has_control for repeat in self.repeats):
            return 0.0
        verdict = self.verdict
        red = [finding for finding in verdict.findings if finding.status in ALWAYS_FAIL]
        decisions = [verdict.time.decision if finding.kind == "time" else finding.decision for finding in red]
        return max((decision.ratio for decision in decisions if decision is not None), default=0.0)


def in_order(cases: Mapping[str, Provisional], *, many: bool) -> Sequence[str]:
    """Provisional cases in the order in which to confirm them.

    Args:
        cases: By name.
        many: Whether so many fired that the machine may be the suspect: the largest with a control then come first.
    """
    return sorted(cases, key=lambda case: -cases[case].size) if many else list(cases)


def confirm(case: Provisional, instruments: Instruments, *, machine: bool) -> Verdict:
    """Repeat what made a case red; one process that disagrees is enough to stop.

    Args:
        case: The case.
        instruments: What fresh processes are started with, and how many.
        machine: Whether the run as a whole accuses the machine: what may be its doing is not repeated then.
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
