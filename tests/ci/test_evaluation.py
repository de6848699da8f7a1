"""The evaluation: rules of others, what must hold, what is kept, and the page; each must be able to say no."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import jax
import pytest
from support.corpora import nightly

from ci.evaluation import broken as breaking
from ci.evaluation.elsewhere import lend, of_elsewhere, one_core, run_pytest, write_project
from ci.evaluation.looking import look
from ci.evaluation.page import compared, page, pictures, table, where_not
from ci.evaluation.parts import of_planted, of_power
from ci.evaluation.result import Requirement, Result, read
from ci.evaluation.rules import Look, alarms
from tests.faults.model import Outcome
from tests.faults.programs import FAULTS, OTHER_SEED, PROGRAMS, SEED, other_data
from tests.faults.runner import Bench

HLO = 'HloModule jit_f\n\nENTRY main {\n  ROOT add = f32[] add(x, y), metadata={op_name="add" source_line=3}\n}\n'
ELSEWHERE = "592fcf569b of 2026-11-22 (jax 0.10.2, n=20), borrowed from cpu-another-machine-1"
CALM = Look(times_ns=(100, 101, 102, 103, 104, 105) * 4, hlo=HLO, memory_bytes=1000)
TIMED = ("mean:5%", "mean:10%", "asv", "benchstat")

GOOD = Outcome(name="a", kind="memory", case="one", caught=True, blamed=True, moved=("temp_bytes",))
QUIET = Outcome(name="b", kind="unchanged", case="one", caught=True, identical=True)

WANTED = ("planted", "peers", "elsewhere", "unchanged", "power", "attacks", "broken")
OF = {"commit": "abc", "python": "3.11.7", "machine": "2 cores, x86_64"}
PLANTED = {
    "small": [9, 10],
    "small_blamed": [9, 10],
    "unchanged": [20, 20],
    "other_data": [4, 4],
    "seconds_a_program": 0.5,
}
RULE = {"caught": [3, 10], "look_different": [2, 20], "other_data": [1, 4], "same": [1, 20]}


def result(part: str, rows: dict, *, held: bool = True) -> Result:
    """What a part found."""
    return Result(
        part=part,
        requirements=(Requirement(what="it is so", held=held),),
        rows=rows,
        seconds=60,
        of=OF,
        date="2026-11-24",
    )


QUIET_RULE = {**RULE, "look_different": [0, 20], "other_data": [0, 4], "same": [0, 20]}


def measured(rule: dict, *, alarms: int = 1) -> dict[str, Result]:
    """The parts from which the gate is compared with one rule."""
    elsewhere = {"jaxgate": [0, 4], "rules": {"by time": [alarms, 4]}}
    peers = {"rules": {"by time": rule}, "seconds_a_program": 0.7}
    return {
        name: result(name, rows) for name, rows in (("planted", PLANTED), ("peers", peers), ("elsewhere", elsewhere))
    }


def names(found: dict[str, bool]) -> set[str]:
    """The words by which the rules that alarm are known here."""
    words = (*TIMED, "golden", "memory_analysis")
    return {word for word in words for rule, alarm in found.items() if alarm and word in rule}


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (CALM, set()),
        (replace(CALM, times_ns=tuple(round(1.07 * each) for each in CALM.times_ns)), {"mean:5%", "benchstat"}),
        (replace(CALM, times_ns=tuple(2 * each for each in CALM.times_ns)), set(TIMED)),
        (replace(CALM, times_ns=tuple(each // 2 for each in CALM.times_ns)), set()),
        (replace(CALM, hlo=HLO.replace("source_line=3", "source_line=9")), set()),
        (replace(CALM, hlo=HLO.replace("add(x", "multiply(x")), {"golden"}),
        (replace(CALM, memory_bytes=1099), set()),
        (replace(CALM, memory_bytes=1101), {"memory_analysis"}),
        (replace(CALM, hlo=None, memory_bytes=None), set()),
        (Look(failed="ValueError: no"), {*TIMED, "golden", "memory_analysis"}),
    ],
    ids=[
        "same",
        "7 % slower",
        "twice",
        "faster",
        "moved lines",
        "other text",
        "9.9 % more",
        "10.1 % more",
        "eager",
        "fails",
    ],
)
def test_what_the_rules_of_others_say(after, expected):
    """Each alarms for what it looks at, and for nothing else; a program that fails fails everywhere."""
    assert names(alarms(CALM, after)) == expected


def test_a_program_that_never_ran_is_no_comparison():
    """Or every rule would have caught whatever was planted in it."""
    with pytest.raises(ValueError, match="expected a program that runs before the change, found TypeError: no"):
        alarms(Look(failed="TypeError: no"), CALM)


def test_a_setting_of_one_program_does_not_reach_the_next(tmp_path):
    """Or all that is looked at later is another program: 64-bit mode made false alarms of half of the unchanged ones."""
    bench = Bench(tmp_path)
    (fault,) = (fault for fault in FAULTS if fault.name == "64-bit mode and a table of numpy")
    looks = [
        look(bench, fault.path, fault.case, source)
        for source in (fault.path.read_text(), fault.planted(), fault.path.read_text())
    ]
    assert [each.failed for each in looks] == ["", "", ""]
    by_program = {"golden", "memory_analysis"}
    assert names(alarms(looks[0], looks[1])) & by_program == by_program
    assert names(alarms(looks[0], looks[2])) & by_program == set()
    assert not jax.config.jax_enable_x64


def test_a_harmless_change_that_does_not_run_is_no_false_alarm():
    """It would be one of every tool, and the fault of the harness."""
    with pytest.raises(ValueError, match="expected a program that runs after a harmless change, found TypeError: no"):
        alarms(CALM, Look(failed="TypeError: no"), harmless=True)


@pytest.mark.parametrize(
    ("false", "seen", "held"),
    [
        ((0, 105), (24, 25), [True, True]),
        ((5, 100), (9, 10), [True, True]),
        ((6, 100), (8, 10), [False, False]),
        ((0, 0), (0, 0), [False, False]),
    ],
    ids=["as measured", "at the limit", "beyond it", "nothing tried"],
)
def test_what_must_hold_of_duels(false, seen, held):
    """One in twenty may alarm at first sight, nine in ten must see a fifth of extra work; no duel proves nothing."""
    assert [each.held for each in of_power(false, seen)] == held


@pytest.mark.parametrize(
    ("cases", "held"),
    [
        ([("SAME", False, ELSEWHERE), ("SAME", False, ELSEWHERE)], True),
        ([("SAME", False, ELSEWHERE)], False),
        ([("SAME", False, ELSEWHERE), ("SAME", False, "")], False),
        ([("SAME", False, ELSEWHERE), ("UNDECIDED", False, ELSEWHERE)], True),
        ([("SAME", False, ELSEWHERE), ("REGRESSED", True, ELSEWHERE)], False),
    ],
    ids=["as measured", "one is missing", "one has a baseline of its own", "undecided", "red"],
)
def test_what_must_hold_on_another_machine(cases, held):
    """Both programs were judged by a baseline of it, and neither is red."""
    found = [{"status": status, "fails": fails, "baseline": recorded} for status, fails, recorded in cases]
    assert of_elsewhere(found, 2).held is held
    assert not of_elsewhere([], 0).held


@nightly
def test_a_mistake_is_red_by_a_baseline_of_another_machine(tmp_path):
    """Or the part would pass whatever the gate says there: planted after the baselines became those of other hardware."""
    programs = {"low_rank": PROGRAMS["low_rank"]}
    write_project(tmp_path, programs)
    run_pytest(tmp_path, "--perf-update", expected=0)
    lend(tmp_path / "baselines")
    (fault,) = (fault for fault in FAULTS if fault.name == "the thin matrices are multiplied first")
    (tmp_path / "low_rank.py").write_text(fault.planted())
    cases = run_pytest(tmp_path, expected=1)
    found = of_elsewhere(cases, 1)
    assert not found.held
    assert found.what.startswith("1 of 1 unchanged programs are red")


def test_another_machine_has_one_core():
    """For processes that are started meanwhile; afterwards all is as before."""

    def seen() -> int:
        script = "import os; print(len(os.sched_getaffinity(0)))"
        return int(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout)

    before = seen()
    with one_core():
        assert seen() == 1
    assert seen() == before


def test_other_data_is_another_text_of_each_program():
    """Of the same program: all that differs is the seed of its numbers."""
    found = list(other_data())
    assert {each.case for each in found} == {*PROGRAMS}
    assert all(each.source.replace(OTHER_SEED, SEED) == each.path.read_text() != each.source for each in found)


@pytest.mark.parametrize(
    ("faults", "controls", "failing"),
    [
        ([GOOD], [QUIET], 0),
        ([GOOD, replace(GOOD, caught=False, blamed=False)], [QUIET], 2),
        ([GOOD, replace(GOOD, blamed=False)], [QUIET], 1),
        ([replace(GOOD, identical=True)], [QUIET], 1),
        ([GOOD], [QUIET, replace(QUIET, caught=False)], 1),
        ([], [], 4),
    ],
    ids=["all well", "missed", "misblamed", "called identical", "alarm", "nothing tried"],
)
def test_what_must_hold_of_planted_mistakes(faults, controls, failing):
    """One outcome that is wrong is enough, and nothing is proved by nothing."""
    assert sum(not requirement.held for requirement in of_planted(faults, controls)) == failing


@pytest.mark.parametrize(
    ("broke", "mistake", "failing"),
    [
        (
            "an identical program is seen everywhere",
            "the thin matrices are multiplied first",
            "are not called the same program",
        ),
        ("the last culprit comes first", "the thin matrices are multiplied first", "name the planted cause"),
        ("tolerances are ten times as wide", "the running total is a product with a triangle", ""),
        ("tolerances are ten times as wide", "classes are found by sorting", "planted mistakes are red"),
    ],
)
def test_a_broken_engine_does_not_pass(tmp_path, broke, mistake, failing):
    """One mistake is enough, if it is one that the break hides: the third is not. As the engine is, nothing else fails."""
    (fault,) = (fault for fault in FAULTS if fault.name == mistake)
    change = Outcome(name="", kind="", case="", caught=True, blamed=True, moved=("temp_bytes",))

    def failed(folder: str) -> str:
        (tmp_path / folder).mkdir()
        outcome = Bench(tmp_path / folder).plant(fault)
        return "; ".join(each.what for each in of_planted([outcome, change], [QUIET]) if not each.held)

    assert failed("sound") == ""
    with breaking.BREAKS[broke]():
        found = failed("broken")
    assert failing in found
    assert bool(found) == bool(failing)


def test_results_are_kept_for_their_commit_alone(tmp_path):
    """What was measured with other versions or at another commit is measured again."""
    written = result("power", {"false": [0, 21]})
    written.write(tmp_path)
    assert read("power", tmp_path) == written
    assert read("power", tmp_path, of=OF) == written
    assert read("power", tmp_path, of={**OF, "commit": "def"}) is None
    assert read("peers", tmp_path) is None


@pytest.mark.parametrize(("requirements", "held"), [((), False), ((True,), True), ((True, False), False)])
def test_a_part_without_a_requirement_holds_nothing(requirements, held):
    found = replace(result("power", {}), requirements=tuple(Requirement(what="", held=each) for each in requirements))
    assert found.held is held


def test_the_table_has_the_gate_first():
    head, _, gate, peer = table(compared(measured(RULE)))
    assert head.endswith(
        "looks different | false alarms: other data | false alarms: the same again | false alarms: another machine | s a program |"
    )
    assert gate == "| **jaxgate** | 9 of 10 | 9 of 10 | 0 of 20 | 0 of 4 | none: identical | 0 of 4 | 0.5 |"
    assert peer == "| by time | 3 of 10 | – | 2 of 20 | 1 of 4 | 1 of 20 | 1 of 4 | 0.7 |"


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        (RULE, "Against each of them: more mistakes caught, and fewer false alarms."),
        ({**RULE, "caught": [9, 10]}, "- by time catches as many mistakes: 90% against 90%."),
        (QUIET_RULE, "- by time has as few false alarms: 0.0% against 0.0%."),
    ],
)
def test_the_page_says_where_the_gate_is_not_better(rule, says):
    assert where_not(compared(measured(rule, alarms=int(rule is not QUIET_RULE)))) == [says]


def test_an_alarm_on_another_machine_is_one_as_any():
    """A rule that is quiet here alone has not as few."""
    assert where_not(compared(measured(QUIET_RULE))) == [
        "Against each of them: more mistakes caught, and fewer false alarms."
    ]


def test_the_page_and_its_pictures():
    """All that was measured, by Python line; what did not hold stands out."""
    kept = {
        "py311": {
            **measured(RULE),
            "power": result("power", {"false": [0, 21], "seen": {"3%": [1, 5], "20%": [5, 5]}}, held=False),
        },
        "py312": {},
    }
    text = page(kept, WANTED)
    assert "## Python 3.11" in text
    assert "## Python 3.12" not in text
    assert "| power | it is so | **no** |" in text
    assert "2026-11-24, 2 cores, x86_64: commit abc, python 3.11.7." in text
    assert "Took 4 minutes." in text
    assert "Not measured: unchanged, attacks, broken." in text
    drawn = pictures(kept)
    assert set(drawn) == {"evaluation-peers.png", "evaluation-power.png"}
    assert all(content.startswith(b"\x89PNG") for content in drawn.values())


def test_nothing_measured_is_no_page():
    with pytest.raises(ValueError, match="nothing was measured; run: make evaluate"):
        page({"py311": {}}, WANTED)


def test_parts_of_two_commits_are_no_page():
    """It would give the figures of one beside the name of the other."""
    kept = {
        "py311": {"power": result("power", {}), "broken": replace(result("broken", {}), of={**OF, "commit": "def"})}
    }
    with pytest.raises(
        ValueError, match=r"expected parts of one commit, .* found power of .*'abc'.* and broken of .*'def'"
    ):
        page(kept, WANTED)
