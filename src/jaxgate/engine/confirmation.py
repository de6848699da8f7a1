"""A verdict that a clock alone makes red is provisional: fresh processes confirm it before it fails a test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jaxgate.engine.instruments import Instruments
from jaxgate.engine.repeats import Repeat
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
    def duelled(self) -> bool:
        """Whether a duel made it one: only these can say together that the machine moved under them."""
        return any(repeat.is_duel for repeat in self.repeats)


def confirm(case: Provisional, instruments: Instruments, *, machine: bool) -> Verdict:
    """Repeat what made a case red; one process that disagrees is enough to stop.

    Args:
        case: The case.
        instruments: What fresh processes are started with, and how many.
        machine: Whether the run as a whole accuses the machine: duels are not repeated then.
    """
    verdict = case.verdict
    for repeat in case.repeats:
        accused = machine and repeat.is_duel
        outcomes: list[RepeatOutcome] = []
        while not accused and len(outcomes) < instruments.processes:
            outcomes.append(repeat.run(verdict.case, instruments))
            if not repeat.comes_again(verdict, outcomes[-1]):
                break
        verdict = repeat.settle(verdict, outcomes, machine=accused, strict=case.strict, wanted=instruments.processes)
    return verdict
