"""Faults in small programs, by what they touch; and the same programs changed in ways that must not alarm."""

from __future__ import annotations

from collections.abc import Iterator

from tests.faults.model import REPOSITORY, SOURCES, Control
from tests.faults.programs import calls, devices, memory, structure, values, work
from tests.faults.programs.rewrites import REWRITES

FAULTS = (*calls.FAULTS, *memory.FAULTS, *work.FAULTS, *structure.FAULTS, *values.FAULTS, *devices.FAULTS)
PROGRAMS = {file.stem: file for file in sorted((REPOSITORY / SOURCES).glob("*.py"))}
SEED, OTHER_SEED = "default_rng(0)", "default_rng(7)"
QUICK = frozenset({0, 2})
"""Of each five changes that must not alarm, the quick run tries these two with a program, others with the next."""


def controls(*, quick: bool) -> Iterator[Control]:
    """Every program with every change of source that applies to it; two fifths of them if it must be quick."""
    for number, (program, file) in enumerate(PROGRAMS.items()):
        for index, (name, rewrite) in enumerate(REWRITES.items()):
            skipped = quick and (index + number) % 5 not in QUICK
            source = None if skipped else rewrite(file.read_text())
            if source is not None:
                yield Control(name=name, case=program, source=source)


def other_data() -> Iterator[Control]:
    """Every program with other numbers, of the same shapes.

    Raises:
        ValueError: If a program draws its numbers otherwise than all do.
    """
    for program, file in PROGRAMS.items():
        source = file.read_text()
        if source.count(SEED) != 1:
            raise ValueError(f"expected {SEED} once in {file.name}, found it {source.count(SEED)} times")
        yield Control(name="other data", case=program, source=source.replace(SEED, OTHER_SEED))
