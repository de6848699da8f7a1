"""What an upgrade does to a suite: what both environments recorded, and what differs between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Literal

from jaxgate.model.baseline import Baseline
from jaxgate.model.decision import Decision, Status
from jaxgate.model.workload import Tolerance


@dataclass(frozen=True, slots=True, kw_only=True)
class Warned:
    """A warning that Python gave while a test was collected or ran."""

    category: str  # its class: `DeprecationWarning`
    text: str  # what it says, on one line
    line: str  # the project's line that led to it, `file:line`; empty where none did


@dataclass(frozen=True, slots=True, kw_only=True)
class TestNote:
    """What became of one test, or of one file that was collected, on one side."""

    __test__ = False  # no test of pytest's

    test: str  # its node id; of a file its path
    outcome: Literal["passed", "failed", "skipped"]  # how it ended
    why: str = ""  # why it did not pass, on one line
    line: str = ""  # the project's line where that happened, `file:line`; empty where it is not known
    warnings: tuple[Warned, ...] = ()  # what Python warned of meanwhile


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimNote:
    """A claim of a case, judged on one side."""

    name: str  # its formula
    status: Status  # the outcome
    text: str  # for people: the numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseNote:
    """What is known of a case on one side, and stands in no baseline."""

    case: str  # `family/sentence`
    test: str  # the node id of its test
    claims: tuple[ClaimNote, ...] = ()  # its claims
    tolerances: tuple[Tolerance, ...] = ()  # facts that may move by another amount than the policy says
    unknown: Mapping[str, str] = field(default_factory=dict)  # facts that could not be had, each with the reason


@dataclass(frozen=True, slots=True, kw_only=True)
class SideNotes:
    """What a process that recorded a side noted."""

    begun: tuple[str, ...] = ()  # tests that it began, in order
    # what became of them, and of files that could not be collected, by node id
    tests: Mapping[str, TestNote] = field(default_factory=dict)
    cases: Mapping[str, CaseNote] = field(default_factory=dict)  # what it noted of cases, by name


@dataclass(frozen=True, slots=True, kw_only=True)
class SideRecord:
    """All that one side recorded of the suite."""

    baselines: Mapping[str, Baseline]  # what it recorded, by case
    notes: SideNotes  # what it noted

    def note(self, case: str) -> CaseNote:
        """What it noted of a case that it recorded."""
        return self.notes.cases.get(case) or CaseNote(case=case, test=self.baselines[case].test)


class Section(IntEnum):
    """What a change is, the gravest first."""

    CANNOT_RUN = 0
    WORSE = 1
    COMPILES_SLOWER = 2
    RUNS_SLOWER = 3
    UNKNOWN = 4
    WARNS = 5
    BETTER = 6
    COMPILES_FASTER = 7
    RUNS_FASTER = 8


BLOCKING = frozenset({Section.CANNOT_RUN, Section.WORSE, Section.COMPILES_SLOWER, Section.RUNS_SLOWER})
"""With any of these the answer is no."""


class Answer(StrEnum):
    """May I upgrade?"""

    YES = "yes"
    NO = "no"
    UNKNOWN = "not known"

    @property
    def exit_code(self) -> int:
        """Exit code of the command."""
        return {Answer.YES: 0, Answer.NO: 1, Answer.UNKNOWN: 2}[self]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One thing that differs for one case."""

    case: str  # the case; where a file cannot be imported, or warns, the file
    section: Section  # what kind of difference it is
    what: str  # the quantity, or the error or warning, which several cases may share
    here: float | None = None  # the number in this environment, if it is one
    there: float | None = None  # the number in the other environment
    line: str = ""  # the project's line that it is about, `file:line`
    detail: str = ""  # what else there is to say: a cause, the launches
    decision: Decision | None = None  # what launches said of the time

    @property
    def ratio(self) -> float | None:
        """There to here; ``None`` where there is none."""
        return self.there / self.here if self.there is not None and self.here else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Changes that several cases share."""

    section: Section  # what kind they are
    what: str  # the quantity, or the error or warning
    changes: tuple[Change, ...]  # one for each case, the greatest first

    @property
    def cases(self) -> tuple[str, ...]:
        """Each case once."""
        return tuple(dict.fromkeys(change.case for change in self.changes))

    @property
    def families(self) -> tuple[tuple[str, int], ...]:
        """How many of the cases are of each family, the most first."""
        counts: dict[str, int] = {}
        for case in self.cases:
            family = case.partition("/")[0]
            counts[family] = counts.get(family, 0) + 1
        return tuple(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))

    @property
    def lines(self) -> tuple[str, ...]:
        """The project's lines, each once."""
        return tuple(dict.fromkeys(change.line for change in self.changes if change.line))


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedCases:
    """What launches could say."""

    asked: int = 0  # cases of which a call may spend something else, so that launches are wanted
    timed: int = 0  # cases that were timed, those with a phase that looked longer among them
    untimed: int = 0  # cases whose programs differ, and that no clock judges, as for virtual devices
    launches: int = 0  # the most of each side
    # cases, neither slower nor faster, of which a slow-down of a tenth could be hidden by the differences between
    # launches
    could_hide: int = 0
    lost: int = 0  # cases of which a launch failed: they are among what cannot be compared
    claims: int = 0  # claims on time, which are judged in neither environment


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeReport:
    """The answer, and all that it rests on."""

    other: str  # the other environment, as the user named it
    differences: tuple[str, ...]  # what differs between the environments, one a line
    compared: tuple[str, ...]  # the cases whose facts were compared
    same: tuple[str, ...]  # cases of which nothing differs beyond what may move
    groups: tuple[Group, ...]  # all differences
    times: TimedCases  # what launches could say

    @property
    def cases(self) -> frozenset[str]:
        """All cases that were asked about, whether they could be compared or not."""
        lost = (group.cases for group in self.groups if group.section in (Section.CANNOT_RUN, Section.UNKNOWN))
        return frozenset(self.compared).union(*lost)

    @property
    def answer(self) -> Answer:
        """No, if anything is worse; yes only if all was compared."""
        found = {group.section for group in self.groups}
        if found & BLOCKING:
            return Answer.NO
        return Answer.YES if self.compared and Section.UNKNOWN not in found else Answer.UNKNOWN

    def of(self, section: Section) -> Sequence[Group]:
        """The groups of one kind; most cases come first."""
        return [group for group in self.groups if group.section is section]
