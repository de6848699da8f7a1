"""What a fresh process found where a measurement was made again."""

from __future__ import annotations

from dataclasses import dataclass

from jaxgate.model.decision import Decision
from jaxgate.model.numbers import Phases


@dataclass(frozen=True, slots=True)
class RepeatOutcome:
    """What one fresh process found.

    Attributes:
        case: What its duel, or its time beside stored ones, says of the case.
        control: What its duel of a program with itself says.
        problem: Why there is nothing.
        has_control: Whether there is a second side to swap; stored times have none.
        blames_machine: Whether the problem is the machine's fault.
        phases: The phases that it measured.
    """

    case: Decision | None = None
    control: Decision | None = None
    problem: str = ""
    has_control: bool = True
    blames_machine: bool = False
    phases: Phases | None = None
