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
    """A warning that Python gave while a test was collected or ran.

    Attributes:
        category: Its class: ``DeprecationWarning``.
        text: What it says, on one line.
        line: The project's line that led to it, ``file:line``; empty where none did.
    """

    category: str
    text: str
    line: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TestNote:
    """What became of one test, or of one file that was collected, on one side.

    Attributes:
        test: Its node id; of a file its path.
        outcome: How it ended.
        why: Why it did not pass, on one line.
        line: The project's line where that happened, ``file:line``; empty where it is not known.
        warnings: What Python warned of meanwhile.
    """

    __test__ = False  # no test of pytest's

    test: str
    outcome: Literal["passed", "failed", "skipped"]
    why: str = ""
    line: str = ""
    warnings: tuple[Warned, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimNote:
    """A claim of a case, judged on one side.

    Attributes:
        name: Its formula.
        status: The outcome.
        text: For people: the numbers.
    """

    name: str
    status: Status
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseNote:
    """What is known of a case on one side, and stands in no baseline.

    Attributes:
        case: ``family/sentence``.
        test: The node id of its test.
        claims: Its claims.
        tolerances: Facts that may move by another amount than the policy says.
        unknown: Facts that could not be had, each with the reason.
    """

    case: str
    test: str
    claims: tuple[ClaimNote, ...] = ()
    tolerances: tuple[Tolerance, ...] = ()
    unknown: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SideNotes:
    """What a process that recorded a side noted.

    Attributes:
        begun: Tests that it began, in order.
        tests: What became of them, and of files that could not be collected, by node id.
        cases: What it noted of cases, by name.
    """

    begun: tuple[str, ...] = ()
    tests: Mapping[str, TestNote] = field(default_factory=dict)
    cases: Mapping[str, CaseNote] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SideRecord:
    """All that one side recorded of the suite.

    Attributes:
        baselines: What it recorded, by case.
        notes: What it noted.
    """

    baselines: Mapping[str, Baseline]
    notes: SideNotes


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
        """Of the command."""
        return {Answer.YES: 0, Answer.NO: 1, Answer.UNKNOWN: 2}[self]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One thing that differs for one case.

    Attributes:
        case: The case; where a file cannot be imported, or warns, the file.
        section: What kind of difference it is.
        what: The quantity, or the error or warning, which several cases may share.
        here: The number in this environment, if it is one.
        there: The number in the other environment.
        line: The project's line that it is about, ``file:line``.
        detail: What else there is to say: a cause, the launches.
        decision: What launches said of the time.
    """

    case: str
    section: Section
    what: str
    here: float | None = None
    there: float | None = None
    line: str = ""
    detail: str = ""
    decision: Decision | None = None

    @property
    def ratio(self) -> float | None:
        """There to here; ``None`` where there is none."""
        return self.there / self.here if self.there is not None and self.here else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Changes that several cases share.

    Attributes:
        section: What kind they are.
        what: The quantity, or the error or warning.
        changes: One for each case, the greatest first.
    """

    section: Section
    what: str
    changes: tuple[Change, ...]

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
    """What launches could say.

    Attributes:
        asked: Cases of which a call may spend something else, so that launches are wanted.
        timed: Cases that were timed, those with a phase that looked longer among them.
        untimed: Cases whose programs differ, and that no clock judges, as for virtual devices.
        launches: The most of each side.
        could_hide: Cases, neither slower nor faster, of which a slow-down of a tenth could be hidden by the differences
            between launches.
        lost: Cases of which a launch failed: they are among what cannot be compared.
        claims: Claims on time, which are judged in neither environment.
    """

    asked: int = 0
    timed: int = 0
    untimed: int = 0
    launches: int = 0
    could_hide: int = 0
    lost: int = 0
    claims: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeReport:
    """The answer, and all that it rests on.

    Attributes:
        other: The other environment, as the user named it.
        differences: What differs between the environments, one a line.
        compared: The cases whose facts were compared.
        same: Those of them of which nothing differs beyond what may move.
        groups: All differences.
        times: What launches could say.
    """

    other: str
    differences: tuple[str, ...]
    compared: tuple[str, ...]
    same: tuple[str, ...]
    groups: tuple[Group, ...]
    times: TimedCases

    @property
    def cases(self) -> frozenset[str]:
        """All that were asked about: those that were compared, and those that could not be."""
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
        """The groups of one kind, those of most cases first."""
        return [group for group in self.groups if group.section is section]
