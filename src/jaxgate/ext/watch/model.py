"""What the tests of a project make JAX compile, and what a lock file knows of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from jaxgate.model.numbers import STRICT

IMPORT = "(import)"
"""Stands for a test where modules compile while they are imported."""


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """What is compiled: a function for some arguments."""

    function: str  # `file::name`
    arguments: str  # their types, and the values of static ones

    def __str__(self) -> str:
        """For people."""
        return f"{self.function}({self.arguments})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """One program that a test made JAX trace, lower and compile."""

    test: str
    function: str  # its name
    defined: str  # the file it stands in; empty where it is JAX's own, or JAX does not say
    arguments: str
    program: str  # fingerprint of the executable; empty where it was traced and not compiled
    facts: Mapping[str, int]  # of the executable, by name
    traced_s: float  # tracing and lowering
    compiled_s: float
    where: str  # the project's line that called it
    cause: str  # why it was traced, as far as JAX says; empty for the first time

    @property
    def key(self) -> Key:
        """What it is known by in the lock file."""
        return Key(f"{self.defined}::{self.function}", self.arguments)

    @property
    def is_known(self) -> bool:
        """Whether the lock file has it: no helper of JAX's own, which whoever is first compiles for all."""
        return bool(self.defined and self.program)

    @property
    def same(self) -> tuple[str, str]:
        """Programs with the same are equal."""
        return self.function, self.program

    @property
    def named(self) -> str:
        """Its function and the line that called it."""
        return f"{self.function} at {self.where}" if self.where else self.function

    @property
    def seconds(self) -> float:
        """What making it took."""
        return self.traced_s + self.compiled_s


@dataclass(slots=True)
class Seen:
    """What one process saw."""

    __pydantic_config__: ClassVar = STRICT

    tests: dict[str, float] = field(default_factory=dict)  # seconds of each
    made: list[Made] = field(default_factory=list)
    cleared: int = 0  # how often somebody emptied JAX's caches

    def compiles(self) -> Counter[Key]:
        """How often each key was compiled."""
        return Counter(one.key for one in self.made if one.is_known)


def repeated(made: Iterable[Made], *, by_anybody: bool = False) -> list[Made]:
    """Programs that their test, or any test of the process, had made already."""
    before: set[tuple[str, tuple[str, str]]] = set()
    found = []
    for one in made:
        which = "" if by_anybody else one.test, one.same
        if one.program and which in before:
            found.append(one)
        before.add(which)
    return found


@dataclass(frozen=True, slots=True)
class Known:
    """What a lock file knows of a key."""

    compiles: int  # how often one process compiles it
    facts: Mapping[str, int]  # the most of its programs


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """What the tests of a project compile."""

    jax: str  # the version
    hardware: str  # where facts were taken
    tests: Mapping[str, int]  # how often each makes a program that it had made already
    programs: Mapping[Key, Known]

    def again(self, test: str) -> int | None:
        """How often a test makes a program that it had made already; ``None`` for a new test."""
        return self.tests.get(test, 0 if test == IMPORT else None)


def lock_of(seen: Seen, *, jax: str, hardware: str) -> Lock:
    """What is to be known of a run in one process."""
    again = Counter(one.test for one in repeated(seen.made))
    facts = most_facts(seen.made)
    return Lock(
        jax=jax,
        hardware=hardware,
        tests={test: again[test] for test in seen.tests},
        programs={key: Known(count, facts[key]) for key, count in seen.compiles().items()},
    )


def most_facts(made: Iterable[Made]) -> dict[Key, dict[str, int]]:
    """The most of each fact, by key."""
    found: dict[Key, dict[str, int]] = {}
    for one in made:
        if one.is_known:
            most = found.setdefault(one.key, {})
            for name, value in one.facts.items():
                most[name] = max(value, most.get(name, value))
    return found


def merged(old: Lock, new: Lock, gone: Sequence[str]) -> Lock:
    """What is known after a part of the tests ran: what the others compile stays.

    Args:
        old: What was known.
        new: What the tests that ran compile.
        gone: Tests of ``old`` that are no more.
    """
    left = [test for test in old.tests if test not in new.tests and test not in gone]
    if not left or old.jax != new.jax or old.hardware != new.hardware:
        return new
    programs = dict(old.programs)
    for key, known in new.programs.items():
        before = programs.get(key, known)
        facts = {name: max(value, before.facts.get(name, value)) for name, value in known.facts.items()}
        programs[key] = Known(max(known.compiles, before.compiles), facts)
    tests = {**{test: old.tests[test] for test in left}, **new.tests}
    return Lock(jax=new.jax, hardware=new.hardware, tests=tests, programs=programs)
