"""What pytest collected."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """The tests of a run.

    Attributes:
        tests: Node ids of all tests, before any was deselected.
        gates: Those of them that gate.
        selected: Those of these that were to run.
        roots: Files and folders that were collected whole, relative to the root folder.
        certain: Whether a test that is not among them is gone: errors while collecting end the run.
        whole: Whether nobody left tests of these roots out on the command line.
    """

    tests: frozenset[str]
    gates: frozenset[str]
    selected: frozenset[str]
    roots: tuple[str, ...]
    certain: bool = True
    whole: bool = True
