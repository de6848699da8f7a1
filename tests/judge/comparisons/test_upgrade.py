"""May I upgrade? Everything that would make the answer yes while it should not be is tried here."""

from dataclasses import replace

import pytest
from support.factories import CASE, ENVIRONMENT, FINGERPRINTS, PHASES, SIGNATURE, TEST, argument, baseline

from jaxgate.ext.upgrade.judge import asks_for_launches, differs_in_calls, find_both, judge_upgrade
from jaxgate.ext.upgrade.model import Answer, CaseNote, ClaimNote, Section, SideNotes, SideRecord, TestNote, Warned
from jaxgate.model.baseline import Launches
from jaxgate.model.decision import Status
from jaxgate.model.machine import HardwareKey
from jaxgate.model.numbers import Samples
from jaxgate.model.workload import Tolerance

NEW = {**ENVIRONMENT, "jax": "0.12.0"}
KNOWN = replace(FINGERPRINTS, executable="e" * 32)
QUIET = [1000_000, 1001_000, 1002_000, 1003_000, 1004_000]


def side(*baselines, notes=None, cases=()):
    """What a side recorded, its tests passed unless the notes say otherwise."""
    passed = {one.test: TestNote(test=one.test, outcome="passed") for one in baselines}
    tests = {**passed, **{note.test: note for note in notes or ()}}
    known = {one.case: CaseNote(case=one.case, test=one.test) for one in baselines} | {
        note.case: note for note in cases
    }
    return SideRecord(
        baselines={one.case: one for one in baselines}, notes=SideNotes(begun=tuple(tests), tests=tests, cases=known)
    )


def untimed(**changes):
    """What a process records without a clock."""
    return baseline(**{"samples": None, "fingerprints": KNOWN, **changes})


def judged(here, there, launches=None, tests=(TEST,)):
    """The report on two sides."""
    return judge_upgrade(here, there, launches or {}, tests=tests, other="jax==0.12.0")


def only(report):
    """The one group that there is."""
    (group,) = report.groups
    return group


def test_equal_sides_are_a_yes_that_names_what_differs_between_the_environments():
    """Nothing moved: yes, and the versions are said."""
    report = judged(side(untimed()), side(untimed(environment=NEW)))
    assert (report.answer, report.same, report.groups) == (Answer.YES, (CASE,), ())
    assert report.differences == ("jax 0.10.2 → 0.12.0",)
    assert report.answer.exit_code == 0


@pytest.mark.parametrize(
    ("facts", "section", "answer"),
    [
        ({"temp_bytes": 80_000}, Section.WORSE, Answer.NO),
        ({"temp_bytes": 10_000}, Section.BETTER, Answer.YES),
        ({"aliased_bytes": 0}, Section.WORSE, Answer.NO),
        ({"temp_bytes": None}, Section.UNKNOWN, Answer.UNKNOWN),
    ],
)
def test_a_fact_that_moves_is_worse_better_or_lost(facts, section, answer):
    """Each way has its answer; a fact that vanished there is never a yes."""
    report = judged(side(untimed()), side(untimed(facts=facts, environment=NEW)))
    group = only(report)
    assert (group.section, report.answer) == (section, answer)
    assert section is Section.UNKNOWN or group.changes[0].here == getattr(untimed().facts, next(iter(facts)))


def test_what_may_move_by_the_workloads_own_tolerance_is_the_same():
    """The case's tolerance, which no baseline keeps, takes the place of the policy's."""
    note = CaseNote(case=CASE, test=TEST, tolerances=(Tolerance(fact="temp_bytes", relative=9.0, why="measured"),))
    report = judged(side(untimed()), side(untimed(facts={"temp_bytes": 80_000}, environment=NEW), cases=[note]))
    assert report.answer is Answer.YES


@pytest.mark.parametrize(
    ("note", "what"),
    [
        (TestNote(test=TEST, outcome="failed", why="AttributeError: gone", line="a.py:3"), "AttributeError: gone"),
        (TestNote(test="perf/test_scan.py", outcome="failed", why="ImportError: maps"), "ImportError: maps"),
        (TestNote(test=TEST, outcome="skipped", why="no jax"), "skipped there: no jax"),
        (TestNote(test="other", outcome="passed"), "it was not recorded there, and nothing says why"),
    ],
)
def test_a_case_that_is_not_recorded_there_cannot_run(note, what):
    """Its test fails, its file cannot be imported, it is skipped, or nobody says why: no, with the reason and its line."""
    other = untimed(case="scan/other", test="perf/test_other.py::test_other")
    report = judged(side(untimed(), other), side(other, notes=[note]), tests=(TEST, other.test))
    group = only(report)
    assert (group.section, group.what, group.cases, report.answer) == (Section.CANNOT_RUN, what, (CASE,), Answer.NO)
    assert group.lines == ((note.line,) if note.line else ())
    assert report.cases == {CASE, "scan/other"}
    if note.test == TEST and note.outcome == "failed":  # a recording that is there all the same hides nothing
        both = judged(side(untimed()), side(untimed(environment=NEW), notes=[note]))
        assert (only(both).section, both.answer) == (Section.CANNOT_RUN, Answer.NO)


@pytest.mark.parametrize("there", [side(), side(untimed(environment=NEW))])
def test_what_fails_here_already_leaves_the_answer_open(there):
    """It cannot be held against the upgrade, and nobody knows what the upgrade does to it."""
    here = side(notes=[TestNote(test=TEST, outcome="failed", why="broken today")])
    report = judged(here, there)
    assert (only(report).what, report.answer) == ("fails here already: broken today", Answer.UNKNOWN)


def test_a_test_that_was_not_run_here_and_an_empty_suite_are_never_a_yes():
    """Nothing compared is nothing known; so is a test of the selection without a word."""
    assert judged(side(), side(), tests=()).answer is Answer.UNKNOWN
    report = judged(side(untimed()), side(untimed()), tests=(TEST, "perf/test_x.py::test_lost"))
    assert (only(report).what, report.answer) == ("it was not run here", Answer.UNKNOWN)


@pytest.mark.parametrize(
    ("here", "there", "answer"),
    [
        (Status.SAME, Status.REGRESSED, Answer.NO),
        (Status.REGRESSED, Status.REGRESSED, Answer.YES),
        (Status.EXPECTED, Status.SAME, Answer.YES),
        (Status.SAME, None, Answer.UNKNOWN),
    ],
)
def test_claims_are_held_on_both_sides(here, there, answer):
    """One that breaks there blocks, one that is broken here, too, does not; one that vanished is not known."""

    def note(status):
        claims = () if status is None else (ClaimNote(name="temp_bytes ≤ 9", status=status, text="10 against 9"),)
        return CaseNote(case=CASE, test=TEST, claims=claims)

    report = judged(side(untimed(), cases=[note(here)]), side(untimed(environment=NEW), cases=[note(there)]))
    assert report.answer is answer


def test_other_arguments_there_are_another_computation():
    """A default type that changed: its facts cannot be held against those of today."""
    other = (argument("state['w']", "float64[64,64]", 32768, donated=True), SIGNATURE[1])
    report = judged(side(untimed()), side(untimed(signature=other, environment=NEW)))
    group = only(report)
    assert (group.section, report.answer) == (Section.UNKNOWN, Answer.UNKNOWN)
    assert group.changes[0].detail == "state['w']: float32[64,64] → float64[64,64]"


def test_a_cause_stands_beside_what_it_explains_alone():
    """Wider products do not make Python call more often."""
    more = {"collectives": 9, "collective_bytes": 9_000_000}
    report = judged(side(untimed()), side(untimed(facts={**more, "python_calls": 900}, environment=NEW)))
    details = {group.what: group.changes[0].detail for group in report.groups if group.section is Section.WORSE}
    assert "python_calls" in details
    assert not any("python" in text.lower() for name, text in details.items() if name.startswith("collective"))


def test_claims_on_time_are_counted_as_not_judged():
    """No clock ran in the process that judged claims."""
    claim = ClaimNote(name="run_ns <= reference", status=Status.UNDECIDED, text="not judged")
    note = CaseNote(case=CASE, test=TEST, claims=(claim,))
    report = judged(side(untimed(), cases=[note]), side(untimed(environment=NEW), cases=[note]))
    assert (report.answer, report.times.claims) == (Answer.YES, 1)


def test_the_same_warning_of_several_cases_is_one_group_and_no_block():
    """A warning that is given here, too, is none of the upgrade's."""
    warned = Warned(category="DeprecationWarning", text="use jax.tree.map", line="a.py:7")
    old = Warned(category="UserWarning", text="as ever", line="a.py:1")
    tests = [f"perf/test_scan.py::test_{name}" for name in "ab"]
    cases = [untimed(case=f"scan/{name}", test=test) for name, test in zip("ab", tests, strict=True)]
    here = side(*cases, notes=[TestNote(test=test, outcome="passed", warnings=(old,)) for test in tests])
    there = side(*cases, notes=[TestNote(test=test, outcome="passed", warnings=(warned, old)) for test in tests])
    report = judged(here, there, tests=tests)
    group = only(report)
    assert (group.what, group.cases, group.lines) == (
        "DeprecationWarning: use jax.tree.map",
        ("scan/a", "scan/b"),
        ("a.py:7",),
    )
    assert (report.answer, report.same) == (Answer.YES, ("scan/a", "scan/b"))


def test_what_a_call_may_spend_differently_asks_for_launches():
    """Another executable, none that is known, other inputs, flags, native code or Python: the clock is asked."""

    def both(**changes):
        return find_both(side(untimed()), side(untimed(**{"environment": NEW, **changes})))[CASE]

    assert not differs_in_calls(both())
    for changes in (
        {"fingerprints": replace(KNOWN, executable="f" * 32)},
        {"fingerprints": replace(KNOWN, executable=None)},
        {"fingerprints": replace(KNOWN, inputs="i1")},
        {"environment": {**NEW, "XLA_FLAGS": "--xla_x=1"}},
        {"native_code": {"f": "lib 1"}},
        {"facts": {"host_callbacks": 1}},
        {"eager": True},
    ):
        assert differs_in_calls(both(**changes)), changes
        assert asks_for_launches(both(**changes))


def test_virtual_devices_are_not_timed_and_said():
    """They share their cores: a program that differs there is counted, and no launch is asked for."""
    virtual = HardwareKey(platform="cpu", device_kind="AMD EPYC", devices=8)
    here, there = untimed(hardware=virtual), untimed(hardware=virtual, fingerprints=FINGERPRINTS, environment=NEW)
    assert not asks_for_launches(find_both(side(here), side(there))[CASE])
    assert judged(side(here), side(there)).times.untimed == 1


def test_a_phase_that_looks_longer_there_asks_for_launches():
    """One process each is a suspicion only, and is no finding by itself."""
    long = untimed(phases=replace(PHASES, compile_ns=150_000_000), environment=NEW)
    assert asks_for_launches(find_both(side(untimed()), side(long))[CASE])
    assert judged(side(untimed()), side(long)).answer is Answer.YES


def launched(there, here=QUIET, **changes):
    """Launches of the other environment against those of this one, by their times."""

    def taken(times, **more):
        return tuple(untimed(samples=Samples(bursts_ns=(round(time),), calls_per_burst=1), **more) for time in times)

    return Launches(here=taken(there, environment=NEW, **changes), there=taken(here), why_not="")


@pytest.mark.parametrize(
    ("factor", "sections", "answer"),
    [(1.5, [Section.RUNS_SLOWER], Answer.NO), (0.5, [Section.RUNS_FASTER], Answer.YES), (1.0, [], Answer.YES)],
)
def test_a_call_that_is_slower_in_every_launch_blocks(factor, sections, answer):
    """Slower throughout is no, faster throughout is said, neither is the same."""
    launches = {CASE: launched([time * factor for time in QUIET])}
    report = judged(side(untimed()), side(untimed(environment=NEW)), launches)
    assert ([group.section for group in report.groups], report.answer) == (sections, answer)
    assert (report.times.timed, report.times.launches) == (1, 5)


def test_launches_that_overlap_accuse_nobody_and_say_what_they_could_hide():
    """One launch of each, half as long again: nothing is decided, and it is counted as what could hide."""
    report = judged(side(untimed()), side(untimed(environment=NEW)), {CASE: launched([1500_000, 900_000], QUIET[:2])})
    assert report.answer is Answer.YES
    assert report.times.could_hide == 1


def test_compiling_that_takes_longer_in_every_launch_blocks():
    """The phase has its own section, and the time of a call none."""
    slow = launched(QUIET, phases=replace(PHASES, compile_ns=200_000_000))
    report = judged(side(untimed()), side(untimed(environment=NEW)), {CASE: slow})
    group = only(report)
    assert (group.section, group.what, report.answer) == (Section.COMPILES_SLOWER, "compile_ns", Answer.NO)


def test_a_fact_that_differs_between_processes_of_one_environment_is_not_known():
    """The same program, compiled alike, has another number: it says nothing of an upgrade."""
    report = judged(side(untimed()), side(untimed(facts={"temp_bytes": 2_000})))
    assert only(report).what.startswith("temp_bytes: two processes that compile the same program")
    assert report.answer is Answer.UNKNOWN


def test_groups_have_the_greatest_first_and_count_their_families():
    """temp_bytes smaller in three cases of two families: one group, the largest win first."""
    sizes = {"remat/a": 10_000, "remat/b": 2_000, "scan/c": 12_000}
    tests = {case: f"perf/test.py::test[{case}]" for case in sizes}
    here = [untimed(case=case, test=tests[case]) for case in sizes]
    there = [
        untimed(case=case, test=tests[case], facts={"temp_bytes": size}, environment=NEW)
        for case, size in sizes.items()
    ]
    group = only(judged(side(*here), side(*there), tests=tuple(tests.values())))
    assert (group.section, group.what) == (Section.BETTER, "temp_bytes")
    assert group.cases == ("remat/b", "remat/a", "scan/c")
    assert group.families == (("remat", 2), ("scan", 1))
    assert group.changes[0].ratio == pytest.approx(0.1)
