"""What a run says of second opinions: once, and who could not be asked."""

import json

from support.factories import verdict

from jaxgate.ext.opinion.model import SWITCHED_OFF, Opinion, OpinionBy
from jaxgate.ext.opinion.terminal import opinion_lines
from jaxgate.ext.targets.model import Target
from jaxgate.model.decision import Status
from jaxgate.model.outcome import Outcome
from jaxgate.report.results import results_json
from jaxgate.report.text import explain

AGREED = [
    verdict(case="a/first", opinion=Opinion(by=OpinionBy.INTERPRETER, apart=1e-7)),
    verdict(case="a/second", opinion=Opinion(by=OpinionBy.SECOND_COMPILE, apart=0.0)),
    verdict(case="a/third", opinion=Opinion(by=OpinionBy.SECOND_COMPILE, apart=0.0)),
]
UNASKED = verdict(case="a/fourth", opinion=Opinion(why_not="it runs on several processes"))
OTHER = verdict(case="a/fifth", opinion=Opinion(why_not="its program calls Python, and would do so once more"))


def test_one_sentence_says_who_was_asked_about_how_many():
    """Cases that nobody was to be asked about are not counted."""
    assert opinion_lines([*AGREED, verdict(case="a/same")], each=False) == [
        "SECOND OPINION on 3 new results: 1 by StableHLO's reference interpreter, 2 by a second compile without library fusions"
    ]


def test_nothing_is_said_where_nothing_is_new_or_nobody_wants_it():
    """That what was compiled for a target was not called is said in a line of its own."""
    off = verdict(opinion=Opinion(why_not=SWITCHED_OFF))
    there = Target.parse("tpu:v5e:2x4").hardware(8)
    uncalled = verdict(hardware=there, opinion=Opinion(why_not="compiled for tpu:v5e:2x4"))
    assert opinion_lines([verdict(), off, uncalled], each=True) == []


def test_what_was_not_checked_is_counted_and_told_with_v():
    """One reason stands in the sentence; several are listed on request."""
    one = "SECOND OPINION on 1 new result: 1 not checked: it runs on several processes"
    assert opinion_lines([UNASKED], each=False) == [one]
    assert opinion_lines([UNASKED, OTHER], each=False) == [
        "SECOND OPINION on 2 new results: 2 not checked (-v says why)"
    ]
    assert opinion_lines([UNASKED, OTHER], each=True) == [
        "SECOND OPINION on 2 new results: 2 not checked",
        "  a/fourth: it runs on several processes",
        "  a/fifth: its program calls Python, and would do so once more",
    ]


def test_a_result_that_was_compared_in_part_is_no_whole_one():
    """It is counted, and the results that were left alone are listed on request."""
    partly = verdict(case="a/sixth", opinion=Opinion(by=OpinionBy.INTERPRETER, apart=0.0, left_alone=("result[0]",)))
    (line,) = opinion_lines([partly], each=False)
    assert line.endswith("1 in part, as float error moves the rest far (-v lists it)")
    assert opinion_lines([partly], each=True)[1:] == ["  a/sixth: not result[0]"]


def test_results_have_the_opinion_of_each_case():
    """With its reason where there is none; null where nobody was to be asked."""
    outcome = Outcome(verdicts=(AGREED[0], UNASKED, verdict(case="a/same")), tests={}, texts={})
    first, second, third = json.loads(results_json(outcome))["cases"]
    assert first["opinion"] == {
        "by": "StableHLO's reference interpreter", "why_not": "", "left_alone": [], "apart": 1e-7, "seconds": 0.0, "wrong": "",
    }  # fmt: skip
    assert second["opinion"]["why_not"] == "it runs on several processes"
    assert third["opinion"] is None


def test_a_wrong_result_has_the_command_that_reduces_it():
    """No baseline makes it right, so none is offered."""
    wrong = Opinion(by=OpinionBy.INTERPRETER, apart=3.0, wrong="result: the compiler's result differs")
    red = verdict(case="a/b", status=Status.INVALID, fails=True, opinion=wrong)
    for elsewhere, reproduce in (
        ("", "pytest 'test_a.py::b'"),
        ("--perf-against main", "pytest 'test_a.py::b' --perf-against main"),
    ):
        text = explain(red, test="test_a.py::b", elsewhere=elsewhere)
        assert f"reproduce: {reproduce}   reduce: jaxgate repro 'a/b' --reduce" in text
        assert "--perf-update" not in text
