"""What a run leaves for machines, and that it can be read back."""

import json
from dataclasses import replace

import pytest
from support.factories import CASE, ENVIRONMENT, TEST, changed_verdict, measurement, record, reference

from jaxgate.judge.figures import figures_of
from jaxgate.judge.verdict import judge
from jaxgate.keep.results import UnreadableResultsError, parse_results, read_results
from jaxgate.model.computation import Amount
from jaxgate.model.duel import Duel
from jaxgate.model.outcome import Outcome, Point, Scaling
from jaxgate.report.results import results_json

DUEL = Duel(
    now_ns=((2_000, 2_400), (2_200, 2_100)), baseline_ns=((1_000, 1_100), (1_200, 1_300)), calls_per_burst=2, seed=0
)
DISTURBED = {"temp_bytes": 40_000}


def outcome(*, duel=DUEL, **changes):
    """A run of one case whose temporaries doubled."""
    now, stored = measurement(facts=DISTURBED, **changes), record()
    verdict = replace(judge(CASE, [], now, stored, strict=False), figures=figures_of(now, stored, duel))
    return Outcome(
        verdicts=(verdict,), tests={CASE: TEST}, texts={CASE: "text"}, run="r", moment="2026-11-25T02:30:00+00:00"
    )


def read(whole):
    """What is read of it."""
    return parse_results(json.loads(results_json(whole)))


def test_every_number_comes_back():
    """Facts, sums, phases and times stand under their names; units are those of the measurement."""
    (case,) = read(outcome(reference=reference())).cases
    figures = case.figures
    assert (figures.now["temp_bytes"], figures.stored["temp_bytes"]) == (40_000, 20_000)
    assert figures.now["peak_bytes"] == 18432 + 16388 - 16384 + 40_000
    assert figures.now["compile_ns"] == 50_000_000
    assert figures.now["run_ns"] == 1_000
    assert figures.now["sent_bytes"] == 0
    assert "traces" in figures.now
    assert "traces" not in figures.reference  # None: not known, never 0
    assert figures.environment == ENVIRONMENT
    assert (figures.baseline.folder, figures.baseline.date) == ("cpu-amd-epyc-1-jax-0.10", "2026-11-20")
    assert figures.times == figures_of(measurement(), record(), DUEL).times


@pytest.mark.parametrize(
    ("duel", "now", "stored", "in_turn"),
    [(DUEL, (1_000, 1_050), (500, 600), True), (None, (1_000, 1_100, 950), (1_000, 1_100, 950), False)],
    ids=["a half-round counts with the least of its bursts", "without a duel they are of two days"],
)
def test_times_are_those_of_single_calls(duel, now, stored, in_turn):
    times = figures_of(measurement(), record(), duel).times
    assert (times.now, times.stored, times.in_turn) == (now, stored, in_turn)


def test_a_case_without_baseline_or_clock_has_what_is_known():
    found = figures_of(measurement(samples=None), None)
    assert (found.stored, found.reference, found.baseline, found.times.now) == ({}, {}, None, ())
    assert "run_ns" not in found.now


def test_an_environment_stands_once():
    whole = outcome()
    both = replace(whole, verdicts=(*whole.verdicts, replace(whole.verdicts[0], case="scan/other")))
    assert json.loads(results_json(both))["environments"] == [ENVIRONMENT]
    assert [case.figures.environment for case in read(both).cases] == [ENVIRONMENT] * 2


def test_what_else_a_page_shows_comes_back():
    verdict = changed_verdict(outcome().verdicts[0], amount=Amount(count=8, unit="samples", series="weak"))
    points = (Point(devices=1, per_second=1.5, efficiency=1.0), Point(devices=2, per_second=2.5, efficiency=0.83))
    found = read(
        replace(outcome(), verdicts=(verdict,), scaling=(Scaling(series="weak", unit="samples", points=points),))
    )
    (case,) = found.cases
    assert case.findings[0].name == "temp_bytes"
    assert case.findings[0].now == 40_000
    assert "temp_bytes" in case.text
    assert case.amount.series == found.scaling[0].series == "weak"
    assert found.scaling[0].points == points
    assert (found.run, found.moment, case.test) == ("r", "2026-11-25T02:30:00+00:00", TEST)


def test_a_case_that_could_not_be_measured_has_no_figures():
    whole = outcome()
    bare = replace(whole, verdicts=(replace(whole.verdicts[0], figures=None, hardware=None),))
    assert read(bare).cases[0].figures is None


def test_results_of_an_earlier_jaxgate_are_read():
    content = json.loads(results_json(outcome()))
    for later in ("run", "moment", "environments"):
        del content[later]
    for later in ("figures", "text", "changes", "allocations", "amount"):
        del content["cases"][0][later]
    found = parse_results(content)
    assert (found.run, found.cases[0].figures, found.cases[0].case) == ("", None, CASE)


def with_run_ns(content, value):
    """The same with another time of its case."""
    content["cases"][0]["figures"]["now"]["run_ns"] = value
    return content


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (lambda content: [], "expected the results.json of a run"),
        (lambda content: content | {"schema": 2}, "expected schema 1, found 2"),
        (lambda content: content | {"cases": {}}, "expected lists"),
        (lambda content: content | {"cases": [{"case": 1}]}, "cases.0"),
        (lambda content: content | {"environments": []}, "expected the place of an environment"),
        (lambda content: content | {"green": "yes"}, "green"),
        (lambda content: with_run_ns(content, float("inf")), "finite number"),
        (lambda content: with_run_ns(content, float("nan")), "run_ns"),
    ],
)
def test_anything_else_is_refused_with_its_key(broken, says):
    content = broken(json.loads(results_json(outcome())))
    with pytest.raises(UnreadableResultsError, match=says):
        parse_results(content)


def test_a_file_names_itself_in_its_error(tmp_path):
    half = tmp_path / "results.json"
    half.write_text(results_json(outcome())[:200])
    for path in (half, tmp_path, tmp_path / "none.json"):
        with pytest.raises(UnreadableResultsError, match=str(path)):
            read_results(path)
    half.write_text(results_json(outcome()))
    assert read_results(half).cases[0].case == CASE
