"""What a run keeps in pytest's stash. Every run of pytest loads this: types alone are imported from other rooms."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from jaxgate.settings import Settings

if TYPE_CHECKING:
    from jaxgate.engine.instruments import Instruments
    from jaxgate.engine.run.session import GateSession
    from jaxgate.model.baseline import Provenance


@dataclass(slots=True)
class Tests:
    """The node ids of a run: all collected before any was deselected, those that gate, those selected, another shard's."""

    collected: set[str] = field(default_factory=set)
    gates: set[str] = field(default_factory=set)
    selected: set[str] = field(default_factory=set)
    elsewhere: set[str] = field(default_factory=set)

    def add(self, other: Tests) -> None:
        """Take those that another process knows of."""
        self.collected |= other.collected
        self.gates |= other.gates
        self.selected |= other.selected
        self.elsewhere |= other.elsewhere


@dataclass(frozen=True, slots=True)
class OtherSide:
    """What the other revision recorded: in which folder, and what failed there, by test."""

    folder: Path
    failed: dict[str, str]


SETTINGS = pytest.StashKey[Settings]()
STDERR = pytest.StashKey[int]()
"""A descriptor of the terminal that pytest's capture does not close."""
TESTS = pytest.StashKey[Tests]()
GATE = pytest.StashKey[Any]()
"""The ``Gate`` of a test, for modules that need it, however the test asked for it."""
SESSION: pytest.StashKey[GateSession] = pytest.StashKey()
INSTRUMENTS: pytest.StashKey[Instruments] = pytest.StashKey()
"""What a run looks at the world with instead of the real things: a test's conftest or plugin sets it."""
OTHER_SIDE = pytest.StashKey[OtherSide | None]()
MADE_FROM: pytest.StashKey[Provenance | None] = pytest.StashKey()
"""Where a recording comes from, where another process of this run knew it first."""
SUSPECT = "suspect"
"""Outcome of a test that was slower in this process and waits for the others."""


def is_worker(config: pytest.Config) -> bool:
    """Whether this process runs tests for another one, as pytest-xdist's do."""
    return hasattr(config, "workerinput")
