"""What an attack is, and how one ends: held, fooled, or not run, which is never held."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from string import ascii_lowercase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scratch_project import Gated, Workshop


FACTS = "--benchmark-disable"
"""Facts decide, and nothing is timed."""


class Outcome(StrEnum):
    """How an attack ended."""

    HELD = "held"
    FOOLED = "FOOLED"
    NOT_RUN = "could not run"


@dataclass(frozen=True)
class Seen:
    """How an attack ended, and the line of what was seen."""

    outcome: Outcome
    what: str


class CannotRunError(Exception):
    """An attack could not be carried out, so nothing is known of its verdict."""


@dataclass(frozen=True)
class Attack:
    """One attack."""

    number: str  # its number among the known attacks, with a letter for each form
    title: str  # what is done, in a few words
    run: Callable[[Workshop], Seen]  # carries it out with a workshop, and says what was seen

    def chosen(self, word: str) -> bool:
        """Whether ``-k WORD`` means this one: its number, with or without the letter, or a part of its title."""
        if word[:1].isdigit():
            return word in (self.number, self.number.rstrip(ascii_lowercase))
        return word.casefold() in self.title.casefold()


NOT_SEEN = frozenset({"SAME", "FASTER", "IMPROVED"})
"""Verdicts that say of a change for the worse that it is none, whatever the exit code."""


@dataclass(frozen=True)
class Change:
    """A change of one gated case: for the worse, which must not pass, or a harmless one, which must."""

    before: Mapping[str, str]  # the project's files that are recorded: relative path to text
    after: Mapping[str, str] = field(default_factory=dict)  # files that the change writes
    held: Collection[str] = ("REGRESSED",)  # verdicts that are right
    arguments: tuple[str, ...] = ()  # pytest's, when it is recorded and gated
    then: tuple[str, ...] = (FACTS,)  # pytest's further ones, where the change is gated
    environ: Mapping[str, str] = field(default_factory=dict)  # variables of the job, set by the change
    unchanged: tuple[str, ...] = ("SAME",)  # verdicts that the project may have before the change
    # words that the printed text must have besides; a right verdict without them is still wrong
    expected: tuple[str, ...] = ()
    harmless: bool = False  # the change makes nothing worse

    def __call__(self, workshop: Workshop) -> Seen:
        """Record, gate what is unchanged, change, and gate."""
        then = (*self.arguments, *self.then, "--perf-max-undecided=1")
        project = workshop.recorded(self.before, self.arguments, then=then, statuses=self.unchanged)
        for name, text in self.after.items():
            project.write(name, text)
        run = project.gate(*then, **self.environ)
        return passes(run) if self.harmless else seen_of(run, self.held, self.expected)


def one_file(
    before: str, *edits: tuple[str, str], then: tuple[str, ...] = (FACTS,), unchanged: tuple[str, ...] = ("SAME",)
) -> Change:
    """A change of the one test file: each edit replaces a text that is in it once."""
    after = before
    for old, new in edits:
        if after.count(old) != 1:
            raise ValueError(f"expected {old!r} once")
        after = after.replace(old, new)
    return Change({"test_case.py": before}, {"test_case.py": after}, then=then, unchanged=unchanged)


def seen_of(run: Gated, held: Collection[str], expected: Iterable[str] = ()) -> Seen:
    """Judge the verdict of a change for the worse, and the exit code that goes with it."""
    status, reason = run.status, run.reason
    what = f"{status}, exit {run.code}: {reason}"
    lacking = [word for word in expected if word not in run.text]
    if status in held and lacking:
        return Seen(Outcome.FOOLED, f"{what} (says nothing of {', '.join(lacking)})")
    if status in held:
        red = status in {"REGRESSED", "SLOWER", "INVALID"}
        return Seen(Outcome.HELD if bool(run.code) == red else Outcome.FOOLED, what)
    if run.code == 0 or status in NOT_SEEN:
        return Seen(Outcome.FOOLED, what)
    raise CannotRunError(f"expected {' or '.join(held)}, found {what}")


def passes(run: Gated) -> Seen:
    """Judge a run in which nothing is worse."""
    what = f"{run.statuses}, exit {run.code}: {run.last if run.code else run.statuses}"
    return Seen(Outcome.HELD if run.code == 0 and run.statuses == "SAME" else Outcome.FOOLED, what)


def told(right: object, what: str) -> Seen:
    """An attack that is held where something is true."""
    return Seen(Outcome.HELD if right else Outcome.FOOLED, what)
