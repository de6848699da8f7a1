"""Plain data: a mistake in a workload, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass

from tests.mistakes import Mistake
from tests.mistakes import Outcome as AnyOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Plant(Mistake):
    """A mistake in a file of the catalogue.

    Attributes:
        file: The file, for example ``workloads/scan/rnn.py``.
        case: Sentence of the case that must turn red.
    """

    file: str
    case: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome(AnyOutcome):
    """What the engine said of one plant.

    Attributes:
        family: Module of ``tests/plants`` that it stands in.
    """

    family: str
