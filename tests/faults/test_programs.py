"""Mistakes planted into small programs, and what a fault, an outcome and a score are."""

from dataclasses import replace

import jax
import pytest
from support.corpora import nightly, one_of

from jaxgate.judge.policy import POLICIES
from jaxgate.report.pull_request import in_the_diff
from tests.faults.model import FAMILIES, Fault, Outcome, Score
from tests.faults.programs import FAULTS, PROGRAMS
from tests.faults.runner import Bench
from tests.faults.scoring import failures, lines, markdown, names, summary

UNMOVED = {"block_bytes", "code_bytes", "largest_batch"}
"""The code's size is not told on CPU; kernels, and cases that ask for the largest batch, are in the catalogue (``catalogue/kernels.py``,
``catalogue/remat.py``)."""

_FAULT = Fault(name="f", kind="memory", case="p", edits=(("a", "b"),), moves=frozenset({"temp_bytes"}), culprit="x")


@pytest.mark.parametrize("fault", one_of(FAULTS, 3))
def test_a_fault_is_caught_and_its_cause_comes_first(bench, fault):
    """It turns its case red by a fact that it moves; the first line names the argument, the operation, the line."""
    outcome = bench.plant(fault)
    assert outcome.caught, outcome
    assert outcome.blamed, outcome
    edited = fault.edited()
    shown = {f"{fault.path.name}:{line}" for line in edited}
    assert not outcome.at or in_the_diff(outcome.at, {fault.path.name: edited}) in shown, outcome


def test_every_program_and_family_has_a_fault():
    """No base program and no family stands there for nothing."""
    assert {fault.case for fault in FAULTS} == set(PROGRAMS)
    assert {fault.kind for fault in FAULTS} == set(FAMILIES)
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)


BESIDES = {
    "a function is jitted anew in every step": {"sampled_compiles", "sampled_traces"},
    "the parameters visit the host in every step": {"host_reads"},
    "a debug print is left in": {"jax_calls"},
    "the parameters are stored on every device": {"replicated_bytes"},
}
"""Facts that no fault is there to move, each by a fault that moves it besides."""


def test_every_fact_of_the_policy_is_to_be_moved_by_a_fault(bench):
    """No row of the policy table is without a mistake that is to turn it red."""
    meant = {fact for fault in FAULTS for fact in fault.moves}.union(*BESIDES.values())
    assert {policy.name for policy in POLICIES} - meant == UNMOVED
    named = {fault.name: fault for fault in FAULTS}
    for name, besides in BESIDES.items():
        assert besides <= set(bench.plant(named[name]).moved)


@nightly
def test_every_fact_of_the_policy_is_moved_by_a_fault(bench):
    moved = {fact for fault in FAULTS for fact in bench.plant(fault).moved}
    assert {policy.name for policy in POLICIES} - moved == UNMOVED


@pytest.mark.parametrize(
    "wrong", [{"culprit": ""}, {"edits": ()}, {"moves": frozenset()}, {"status": "INVALID"}, {"kind": "odd"}]
)
def test_a_fault_that_no_outcome_could_miss_is_refused(wrong):
    """Without an edit, a culprit or a fact that must move, a fault would prove nothing."""
    with pytest.raises(ValueError, match="expected"):
        replace(_FAULT, **wrong)


def test_an_edit_that_does_not_fit_is_refused():
    """A fault whose text is gone from its program is an error, not a program without a fault."""
    with pytest.raises(ValueError, match=r"expected 'nowhere' once in .*/low_rank\.py, found 0"):
        replace(_FAULT, case="low_rank", edits=(("nowhere", "x"),)).planted()


def test_a_setting_made_by_one_program_does_not_reach_the_next(tmp_path):
    """64-bit mode, switched on by a fault, is off again afterwards, and so is what makes compiling quick."""
    fault = next(fault for fault in FAULTS if fault.name == "64-bit mode and a table of numpy")
    before = dict(jax.config.values)
    assert Bench(tmp_path).plant(fault).caught
    assert not jax.config.jax_enable_x64
    assert dict(jax.config.values) == before


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
    right = Outcome(name="a", kind="memory", case="p", status="REGRESSED", caught=True, blamed=True, line="temp")
    blamed = replace(right, name="b", blamed=False, line="cause | unknown", why="expected /x/")
    missed = replace(right, name="c", status="SAME", caught=False, blamed=False, line="")
    quiet = Outcome(name="moved", kind="unchanged", case="p", caught=True, identical=True)
    alarm = replace(quiet, caught=False, identical=False, why="REGRESSED traces")
    found = Score(faults=(right, blamed, missed), unchanged=(quiet, alarm), seconds=3.2, versions="jax 1")
    assert summary(found) == [
        "faults caught              2 of 3 (67%)",
        "first culprit clause right 1 of 3 (33%)",
        "unchanged, no alarm        1 of 2 (50%); 1 found identical, so that no clock is asked",
        "jax 1, 3 s",
    ]
    assert [text.partition(" ")[0] for text in lines(found)] == ["right", "misblamed", "missed"]
    assert [text.split("  ")[0] for text in failures(found)] == ["MISBLAMED", "MISSED", "ALARM"]
    page = markdown(found)
    assert "| memory | b | misblamed | – | `cause ¦ unknown` |" in page
    assert "| memory | c | missed | – | – |" in page
    assert "- moved of p.py: REGRESSED traces" in page
