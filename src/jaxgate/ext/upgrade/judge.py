"""May I upgrade? What two environments recorded of one suite, held against each other. Pure.

The environment of today is *here*, the one that may take its place is *there*: a fact that is larger there got worse.
Facts come from one process of each side. Time and phases come from launches, as ``ext/upgrade/launches.py`` says: what is
slower there is slower in every launch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from math import log

from jaxgate.ext.upgrade.launches import judge_environment, may_be_slower
from jaxgate.ext.upgrade.model import CaseNote, Change, Group, Section, SideRecord, TimedCases, UpgradeReport
from jaxgate.judge.difference import Difference, environment_differences
from jaxgate.judge.facts import EDITED
from jaxgate.judge.verdict import why_untimed
from jaxgate.model.baseline import Baseline, Launches
from jaxgate.model.decision import Status
from jaxgate.model.measurement import Measurement
from jaxgate.model.verdict import Finding, Verdict

HIDES = 0.10
"""A slow-down that is worth to be mentioned where launches could hide it."""
NOTHING_SAID = "it was not recorded there, and nothing says why"
UNSTEADY = "two processes that compile the same program in the same environment have different ones"
_BROKEN = frozenset({Status.REGRESSED, Status.SLOWER, Status.INVALID})
_SECTIONS = {
    ("fact", Status.REGRESSED): Section.WORSE,
    ("fact", Status.IMPROVED): Section.BETTER,
    ("phase", Status.REGRESSED): Section.COMPILES_SLOWER,
    ("phase", Status.IMPROVED): Section.COMPILES_FASTER,
    ("time", Status.SLOWER): Section.RUNS_SLOWER,
    ("time", Status.FASTER): Section.RUNS_FASTER,
}
_CALLS = {Section.COMPILES_SLOWER: Section.RUNS_SLOWER, Section.COMPILES_FASTER: Section.RUNS_FASTER}
"""Of the one phase that is a part of each call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Both:
    """One case as both sides recorded it."""

    here: Baseline  # what this environment recorded
    there: Baseline  # what the other one did
    note_here: CaseNote  # what this one noted of it
    note_there: CaseNote  # what the other one noted

    @property
    def now(self) -> Measurement:
        """The other environment's measurement, which is held against this one's."""
        return self.there.as_measured(self.note_there.unknown)


def find_both(here: SideRecord, there: SideRecord) -> dict[str, Both]:
    """The cases that both sides recorded, by name."""
    return {
        case: Both(
            here=here.baselines[case],
            there=there.baselines[case],
            note_here=here.note(case),
            note_there=there.note(case),
        )
        for case in sorted(here.baselines.keys() & there.baselines.keys())
    }


def asks_for_launches(both: Both) -> bool:
    """Whether launches of both sides are needed: a call may spend something else, or a phase looks longer there."""
    return (differs_in_calls(both) and not untimed(both)) or may_be_slower([both.there], [both.here])


def differs_in_calls(both: Both) -> bool:
    """Whether a call may spend something else there: another executable, or what no executable shows."""
    now, before = both.now, both.here
    difference = Difference(now, before)
    ours, theirs = now.fingerprints.executable, before.fingerprints.executable
    alike = ours is not None and ours == theirs and difference.times_as_executable
    covered = not (now.eager or now.facts.host_callbacks or difference.changed_settings)
    return not (alike and covered and now.native_code == before.native_code)


def untimed(both: Both) -> bool:
    """Whether no clock judges the case anywhere."""
    return both.there.hardware.is_virtual or both.there.compiled_only


def judge_upgrade(
    here: SideRecord, there: SideRecord, launches: Mapping[str, Launches], *, tests: Collection[str], other: str
) -> UpgradeReport:
    """Hold everything that both sides recorded against each other.

    ``launches``, of the cases that were timed, have the other environment as ``here``. ``tests`` gate and were selected.
    """
    both = find_both(here, there)
    changes = [*_lost(here, there, tests), *_new_warnings(here, there)]
    timed = hides = 0
    for case, one in both.items():
        taken = launches.get(case)
        if taken is not None and taken.why_not:
            changes.append(Change(case=case, section=Section.UNKNOWN, what=taken.why_not))
        verdict = _judged(case, one, taken, other)
        changes += _changes(case, one, verdict)
        decision = verdict.time.decision if taken is not None else None
        timed += decision is not None
        settled = decision is None or decision.status in (Status.SLOWER, Status.FASTER)
        hides += decision is not None and not settled and decision.high > 1 + HIDES
    differ = {change.case for change in changes if change.section is not Section.WARNS}
    return UpgradeReport(
        other=other,
        differences=_differences(both),
        compared=tuple(both),
        same=tuple(case for case in both if case not in differ),
        groups=tuple(_grouped(changes)),
        times=TimedCases(
            asked=sum(differs_in_calls(one) and not untimed(one) for one in both.values()),
            timed=timed,
            untimed=sum(differs_in_calls(one) and untimed(one) for one in both.values()),
            launches=max((len(taken.here) for taken in launches.values()), default=0),
            could_hide=hides,
            lost=sum(bool(taken.why_not) for taken in launches.values()),
            claims=sum(claim.status is Status.UNDECIDED for one in both.values() for claim in one.note_there.claims),
        ),
    )


def _judged(case: str, both: Both, taken: Launches | None, other: str) -> Verdict:
    """The verdict of the other environment, held against this one, by facts and by launches where there are any."""
    now = both.now
    if taken is None or not taken.here or not taken.there:
        taken = Launches(here=(both.there,), there=(both.here,), why_not="")
    elif not why_untimed(taken.here[0].as_measured()):
        now = taken.here[0].as_measured(both.note_there.unknown)
    return judge_environment(case, (), now, taken, other=other, tolerances=both.note_there.tolerances)


def _changes(case: str, both: Both, verdict: Verdict) -> Iterator[Change]:
    # the code is the same: no guesses; of several causes of a fact the first stands
    causes = {fact: str(cause) for cause in reversed(verdict.causes) if cause.sure for fact in cause.explains}
    for finding in verdict.findings:
        section = _section(finding)
        if section is Section.UNKNOWN:
            why = UNSTEADY if finding.detail == EDITED else finding.detail
            yield Change(case=case, section=section, what=f"{finding.name}: {why}")
        elif section is not None:
            by_clock = finding.kind != "fact"
            yield Change(
                case=case,
                section=section,
                what=finding.name,
                here=finding.against,
                there=finding.now,
                detail=causes.get(finding.name, "") if section is Section.WORSE else "",
                decision=verdict.time.decision if by_clock and finding.kind == "time" else None,
            )
    if [leaf.aval for leaf in both.here.signature] != [leaf.aval for leaf in both.there.signature]:
        yield Change(
            case=case, section=Section.UNKNOWN, what="its arguments have other types there", detail=_types(both)
        )
    yield from _broken_claims(case, both)


def _section(finding: Finding) -> Section | None:
    """What kind of change a finding is; ``None`` if it is none."""
    if finding.status is Status.INVALID or (finding.kind == "fact" and finding.status is Status.UNDECIDED):
        return Section.UNKNOWN
    found = _SECTIONS.get((finding.kind, finding.status))
    return _CALLS.get(found, found) if found is not None and finding.name == "host_ns" else found


def _types(both: Both) -> str:
    pairs = zip(both.here.signature, both.there.signature, strict=False)
    return "; ".join([f"{now.path}: {old.aval} → {now.aval}" for old, now in pairs if old.aval != now.aval][:3])


def _broken_claims(case: str, both: Both) -> Iterator[Change]:
    """Claims that hold here, and are broken or not judged there."""
    theirs = {claim.name: claim for claim in both.note_there.claims}
    for claim in both.note_here.claims:
        there = theirs.get(claim.name)
        if there is None:
            yield Change(case=case, section=Section.UNKNOWN, what=f"claim {claim.name}: it was not judged there")
        elif there.status in _BROKEN and claim.status not in _BROKEN:
            yield Change(case=case, section=Section.WORSE, what=f"claim {claim.name}", detail=there.text)


def _lost(here: SideRecord, there: SideRecord, tests: Collection[str]) -> Iterator[Change]:
    """What cannot be compared: cases that are not recorded there, and tests that did not pass here either."""
    cases: dict[str, list[str]] = {}
    for case in here.baselines:
        cases.setdefault(here.note(case).test, []).append(case)
    for test in sorted(tests):
        ours = here.notes.tests.get(test)
        if ours is None or ours.outcome == "failed":
            why = "it was not run here" if ours is None else f"fails here already: {ours.why}"
            yield Change(case=test, section=Section.UNKNOWN, what=why, line="" if ours is None else ours.line)
            continue
        known = cases.get(test, [])
        if not known and ours.outcome == "passed":
            yield Change(case=test, section=Section.UNKNOWN, what="none of its gates was recorded here")
        theirs = there.notes.tests.get(test) or there.notes.tests.get(test.partition("::")[0])
        lost = [case for case in known if case not in there.baselines]
        if theirs is not None and theirs.outcome == "failed" and not lost:
            lost = known  # its gates were recorded, and it fails for another reason
        what, line = NOTHING_SAID, ""
        if theirs is not None and theirs.why:
            what, line = "skipped there: " * (theirs.outcome == "skipped") + theirs.why, theirs.line
        yield from (Change(case=case, section=Section.CANNOT_RUN, what=what, line=line) for case in lost)


def _new_warnings(here: SideRecord, there: SideRecord) -> Iterator[Change]:
    """What Python warns of there and not here, for each case of a test, or for the file."""
    for test, note in there.notes.tests.items():
        before = here.notes.tests.get(test)
        known = {(one.category, one.text) for one in before.warnings} if before else set()
        names = [case for case, about in there.notes.cases.items() if about.test == test] or [test]
        for one in note.warnings:
            if (one.category, one.text) not in known:
                what = f"{one.category}: {one.text}"
                yield from (Change(case=name, section=Section.WARNS, what=what, line=one.line) for name in names)


def _differences(both: Mapping[str, Both]) -> tuple[str, ...]:
    """What differs between the environments, by what all cases recorded of them; each line once."""
    found: dict[str, None] = {}
    for one in both.values():
        found.update(dict.fromkeys(environment_differences(one.there.environment, one.here.environment)))
    return tuple(found)


def _grouped(changes: Collection[Change]) -> Iterator[Group]:
    """Changes of one kind and one quantity, or one text, together; the gravest kind first, then what most cases share."""
    groups: dict[tuple[Section, str], list[Change]] = {}
    for change in changes:
        groups.setdefault((change.section, change.what), []).append(change)
    for (section, what), found in sorted(groups.items(), key=lambda item: (item[0][0], -len(item[1]), item[0][1])):
        yield Group(section=section, what=what, changes=tuple(sorted(found, key=_greatest_first)))


def _greatest_first(change: Change) -> tuple[float, str]:
    ratio = change.ratio
    return -abs(log(ratio)) if ratio else 0.0, change.case
