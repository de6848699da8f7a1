"""The planted faults and the unchanged programs, run once in processes of their own; a test for each fault."""

from __future__ import annotations

from dataclasses import replace

import jax
import pytest

from jaxgate.judge.policy import POLICIES
from tests.mistakes import names
from tests.planted.faults import FAULTS
from tests.planted.harness import Bench, edited, source_of
from tests.planted.model import FAMILIES, PROGRAMS, Fault, Outcome, Score
from tests.planted.rewrites import REWRITES
from tests.planted.runner import run
from tests.planted.scoring import failures, markdown, summary

_FAULT = Fault(name="f", kind="memory", program="p", edits=(("a", "b"),), moves=frozenset({"temp_bytes"}), culprit="x")


@pytest.fixture(scope="module")
def score():
    """Everything that the quick run finds."""
    return run(quick=True)


_NAMES = pytest.mark.parametrize(
    "name", [pytest.param(fault.name, id=fault.name.replace(" ", "-")) for fault in FAULTS]
)


def _outcome(score, name):
    return next(outcome for outcome in score.faults if outcome.name == name)


@_NAMES
def test_a_fault_is_caught(score, name):
    """A planted mistake turns its case red, by a fact that the mistake moves."""
    outcome = _outcome(score, name)
    assert outcome.caught, f"{outcome.status} {outcome.moved}: {outcome.line}; {outcome.why}"


@_NAMES
def test_the_cause_of_a_fault_comes_first(score, name):
    """The first culprit line names what was planted: the argument, the operation, the parameter, the line."""
    outcome = _outcome(score, name)
    assert outcome.blamed, f"{outcome.line}; {outcome.why}"


def test_no_unchanged_program_alarms(score):
    """Renamed, reordered, reformatted and differently spelled programs are left alone, at least 200 of them."""
    assert len(score.unchanged) >= 200
    assert [f"{o.name} of {o.program}: {o.why}" for o in score.unchanged if not o.caught] == []


def test_every_change_was_tried_on_some_program(score):
    """No change of source is listed without ever applying."""
    assert {outcome.name for outcome in score.unchanged} == set(REWRITES)


def test_every_program_and_family_has_a_fault():
    """No base program and no family stands there for nothing."""
    assert {fault.program for fault in FAULTS} == {file.stem for file in PROGRAMS.glob("*.py")}
    assert {fault.kind for fault in FAULTS} == set(FAMILIES)
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)


def test_every_fact_of_the_policy_is_moved_by_a_fault(score):
    """No row of the policy table is without a mistake that turns it red; on CPU the code's size is not told.

    The largest batch is asked for by cases of the catalogue: ``tests/plants/remat.py`` moves it.
    """
    moved = {fact for outcome in score.faults for fact in outcome.moved}
    assert {policy.name for policy in POLICIES} - moved == {"code_bytes", "largest_batch"}


@pytest.mark.parametrize(
    "wrong", [{"culprit": ""}, {"edits": ()}, {"moves": frozenset()}, {"status": "INVALID"}, {"kind": "odd"}]
)
def test_a_fault_that_no_outcome_could_miss_is_refused(wrong):
    """Without an edit, a culprit or a fact that must move, a fault would prove nothing."""
    with pytest.raises(ValueError, match="expected"):
        replace(_FAULT, **wrong)


def test_an_edit_that_does_not_fit_is_refused():
    """A fault whose text is gone from its program is an error, not a program without a fault."""
    with pytest.raises(ValueError, match=r"expected 'nowhere' once in low_rank\.py, found 0"):
        edited(replace(_FAULT, program="low_rank", edits=(("nowhere", "x"),)))


def test_a_real_change_would_alarm(tmp_path):
    """The check of unchanged programs sees a change: a fault run through it is an alarm with its fact."""
    fault = next(fault for fault in FAULTS if fault.name == "all logits are returned beside the classes")
    outcome = Bench(tmp_path).leave("changed", fault.program, edited(fault))
    assert not outcome.caught
    assert outcome.moved == ("output_bytes",)
    assert "REGRESSED output_bytes" in outcome.why


def test_a_program_left_as_it_is_counts_for_nothing(tmp_path):
    """A change that does not change the text is an error: it would only pad the score."""
    bench = Bench(tmp_path)
    with pytest.raises(ValueError, match=r"nothing leaves low_rank\.py as it is"):
        bench.leave("nothing", "low_rank", source_of("low_rank"))


def test_a_setting_made_by_one_program_does_not_reach_the_next(tmp_path):
    """64-bit mode, switched on by a fault, is off again afterwards."""
    fault = next(fault for fault in FAULTS if fault.name == "64-bit mode and a table of numpy")
    assert Bench(tmp_path).plant(fault).caught
    assert not jax.config.jax_enable_x64


@pytest.mark.parametrize(
    ("line", "right"),
    [
        ("stablehlo.sort 0 → 1 at a.py:12", True),
        ("stablehlo.sort 0 → 1 at a.py:123", False),
        ("stablehlo.add 0 → 1 at a.py:12", False),
        ("stablehlo.add 0 → 1 at sort.py:7; add at a.py:12", False),
        ("", False),
    ],
)
def test_a_culprit_needs_word_and_place(line, right):
    """The operation and the line must both be named; the name of a file is no operation, line 123 is not line 12."""
    assert names(line, "sort", ("a.py:12",)) is right


def test_the_score_counts_what_is_wrong():
    """What was missed, blamed wrongly or alarmed is counted and told."""
    right = Outcome(name="a", kind="memory", program="p", status="REGRESSED", caught=True, blamed=True, line="temp")
    blamed = replace(right, name="b", blamed=False, line="cause | unknown", why="expected /x/")
    missed = replace(right, name="c", status="SAME", caught=False, blamed=False, line="")
    quiet = Outcome(name="moved", kind="unchanged", program="p", caught=True, identical=True)
    alarm = replace(quiet, caught=False, identical=False, why="REGRESSED traces")
    found = Score(faults=(right, blamed, missed), unchanged=(quiet, alarm), seconds=3.2, versions="jax 1")
    assert summary(found) == [
        "faults caught            2 of 3 (67%)",
        "first culprit line right 1 of 3 (33%); by its first clause alone 0 of 3 (0%)",
        "unchanged, no alarm      1 of 2 (50%); 1 found identical, so that no clock is asked",
        "jax 1, 3 s",
    ]
    assert [text.split("  ")[0] for text in failures(found)] == ["MISBLAMED", "MISSED", "ALARM"]
    page = markdown(found)
    assert "| memory | b | misblamed | – | `cause ¦ unknown` |" in page
    assert "| memory | c | missed | – | – |" in page
    assert "- moved of p.py: REGRESSED traces" in page
