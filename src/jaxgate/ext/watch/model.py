"""What the tests of a project make JAX compile, and what a lock file knows of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from jaxgate.model.numbers import Strict

IMPORT = "(import)"
"""Stands for a test where modules compile while they are imported."""


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """What is compiled: a function for some arguments.

    Both are the program's own: which call JAX explains depends on which test is the first.
    """

    function: str  # its name
    arguments: str  # types of the program's parameters

    @property
    def told(self) -> str:
        """The arguments for people."""
        return self.arguments or "no arguments"


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """One program that a test made JAX trace, lower and compile."""

    test: str
    function: str  # its name
    arguments: str
    program: str  # digest of what it does; empty where it was traced and not compiled
    facts: Mapping[str, int]  # of the executable, by name
    traced_s: float  # tracing and lowering
    compiled_s: float
    where: str  # the project's line that called it
    cause: str  # why it was traced, as far as JAX says; empty for the first time

    @property
    def key(self) -> Key:
        """The key in the lock file."""
        return Key(self.function, self.arguments)

    @property
    def named(self) -> str:
        """The function, and the line that called it."""
        return f"{self.function} at {self.where}" if self.where else self.function

    @property
    def seconds(self) -> float:
        """What making it took."""
        return self.traced_s + self.compiled_s


@dataclass(slots=True)
class Seen(Strict):
    """What one process saw."""

    tests: dict[str, float] = field(default_factory=dict)  # seconds of each
    made: list[Made] = field(default_factory=list)
    project: set[str] = field(default_factory=set)  # names of functions that are not JAX's own
    cleared: int = 0  # how often somebody emptied JAX's caches
    jax: str = ""  # the version
    hardware: str = ""  # where the tests ran
    jit_is_off: bool = False  # whether nothing is compiled

    def of_project(self) -> list[Made]:
        """The programs of the project's functions and of its libraries'."""
        return [one for one in self.made if one.program and one.function in self.project]

    def of_jax(self) -> list[Made]:
        """The programs of JAX's own functions: operations that are called outside of ``jit``."""
        return [one for one in self.made if one.program and one.function not in self.project]


def repeated(made: Iterable[Made], *, by_anybody: bool = True) -> list[Made]:
    """Programs that any test of the process, or their own test, had made already."""
    before: set[tuple[str, str, str]] = set()
    found = []
    for one in made:
        which = "" if by_anybody else one.test, one.function, one.program
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
    tests: frozenset[str]
    programs: Mapping[Key, Known]  # of the project's functions
    again: Mapping[str, int]  # how often JAX's own functions are compiled to a program that there was; those that are

    def knows(self, test: str) -> bool:
        """Whether a test is not new."""
        return test == IMPORT or test in self.tests


def lock_of(seen: Seen) -> Lock:
    """What is to be known of a run in one process."""
    ours = seen.of_project()
    facts = most_facts(ours)
    return Lock(
        jax=seen.jax,
        hardware=seen.hardware,
        tests=frozenset(seen.tests),
        programs={key: Known(count, facts[key]) for key, count in Counter(one.key for one in ours).items()},
        again=Counter(one.function for one in repeated(seen.of_jax())),
    )


def most_facts(made: Iterable[Made]) -> dict[Key, dict[str, int]]:
    """The most of each fact, by key."""
    found: dict[Key, dict[str, int]] = {}
    for one in made:
        most = found.setdefault(one.key, {})
        for name, value in one.facts.items():
            most[name] = max(value, most.get(name, value))
    return found


def merged(old: Lock, new: Lock, gone: Collection[str]) -> Lock:
    """What is known after a part of the tests ran: what the others compile stays, unless they are ``gone``."""
    left = old.tests - new.tests - set(gone)
    if not left or (old.jax, old.hardware) != (new.jax, new.hardware):
        return new
    programs = dict(old.programs)
    for key, known in new.programs.items():
        before = programs.get(key, known)
        facts = {name: max(value, before.facts.get(name, value)) for name, value in known.facts.items()}
        programs[key] = Known(max(known.compiles, before.compiles), facts)
    again = {name: max(old.again.get(name, 0), new.again.get(name, 0)) for name in {*old.again, *new.again}}
    return Lock(jax=new.jax, hardware=new.hardware, tests=left | new.tests, programs=programs, again=again)
