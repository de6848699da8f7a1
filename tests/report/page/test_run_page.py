"""What is on the page of a run, read from its elements; no number is counted on that is not written in the sample."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from ci.page.samples import sample_run
from jaxgate.ext.page.case_table import LEFT_OUT, MOST_LINES, TextBudget, finding_text, rows_of
from jaxgate.ext.page.run_page import Result, headline, run_page
from jaxgate.ext.page.side_by_side import side_by_side
from jaxgate.model.outcome import FindingRecord, RunRecord, TimeRecord
from jaxgate.model.verdict import CallTimes

LIBRARY = "window.vegaEmbed = async () => {};"


def shown(run, **about):
    """The page of one run."""
    return run_page([Result(run=run, **about)], library=about.pop("library", LIBRARY))


def changed(run, place=0, **changes):
    """A run with one case as it is wanted."""
    cases = list(run.cases)
    cases[place] = replace(cases[place], **changes)
    return replace(run, cases=tuple(cases))


def row_of(page, case):
    """The cells of a case's row, as text."""
    row = re.search(rf'<tr id="{re.escape(case)}">(.*?)</tr>', page, flags=re.DOTALL)[1]
    return [re.sub(r"<[^>]+>", "", cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, flags=re.DOTALL)]


def data_of(page):
    """What the page's script is given."""
    return json.loads(re.search(r'id="data">(.*?)</script>', page, flags=re.DOTALL)[1])


def test_a_row_says_what_the_terminal_says():
    """Verdict, ratio with its interval, worst finding, time with rate, and memory and compile time beside the baseline's."""
    run = sample_run(4)
    case = run.cases[0]
    figures = replace(
        case.figures,
        now={"peak_bytes": 3_140.0, "compile_ns": 87.7e6, "run_ns": 2e6},
        stored={"peak_bytes": 1_570.0, "compile_ns": 87.7e6},
    )
    finding = FindingRecord(kind="fact", name="temp_bytes", status="REGRESSED", now=4.2e6, against=2.1e6)
    time = TimeRecord(status="SLOWER", ratio=1.304, low=1.281, high=1.332)
    page = shown(
        changed(
            run, status="REGRESSED", fails=True, figures=figures, run_ns=2e6, findings=(finding,), time=time,
            amount=replace(case.amount, count=8, unit="samples", bus_factor=None),
        )
    )  # fmt: skip
    assert row_of(page, case.case) == [
        case.case, "REGRESSED", "1.30 × [1.28, 1.33]", "temp_bytes 4.2 MB against 2.1 MB = 2.00 ×",
        "2 ms 4 k samples/s", "3.14 kB 2.00 ×", "87.7 ms",
    ]  # fmt: skip


def test_the_interval_stands_on_one_axis():
    """One time of the baseline is in its middle; half and twice lie as far from it, and what is beyond at its ends."""
    places = []
    for ratio in (1.0, 2.0, 0.5, 64.0):
        case = replace(sample_run(1).cases[0], time=TimeRecord(status="SAME", ratio=ratio, low=ratio, high=ratio))
        places.append(rows_of([((case,), "", "")])[0].interval["at"])
    assert places == [50, 96, 4, 96]


def test_without_a_duel_the_row_says_why():
    """An identical program, or whatever else the reason is; unknown figures are no zeros."""
    run = changed(sample_run(2), time=TimeRecord(status="SAME", reason="identical program"), figures=None, run_ns=None)
    assert row_of(shown(run), run.cases[0].case)[2:] == ["identical program", "–", "–", "–"]


def test_a_target_shows_its_least_time():
    """It was not called: the roofline says what a call takes at least."""
    run = changed(sample_run(1), run_ns=None, roofline={"least_ns": 1.2e6})
    assert "≥ 1.2 ms" in row_of(shown(run), run.cases[0].case)


@pytest.mark.parametrize(
    ("changes", "kind", "line"),
    [
        ({}, "good", "jaxgate: 4 cases passed"),
        ({"green": False, "problems": ("x",)}, "bad", "jaxgate: no case of 4 failed, and the run is not green"),
        ({"green": False, "needs_commit": ("x",)}, "calm", "jaxgate: 4 cases judged or recorded, and the baselines are not committed"),
        ({"green": False, "needs_commit": ("x",), "unfit": ("y",)}, "bad", "jaxgate: no case of 4 failed, and the run is not green"),
        ({"cases": ()}, "bad", "jaxgate: no case was judged"),
    ],
)  # fmt: skip
def test_the_headline_says_how_it_ended(changes, kind, line):
    """Green is said of a green run only."""
    run = replace(sample_run(4), **changes)
    assert headline(run) == (kind, line)
    assert f'<div class="headline {kind}">' in shown(run)


def test_red_cases_come_first_and_are_counted():
    """In the table as in the headline."""
    run = replace(sample_run(6, red=0), green=False)
    run = changed(run, 5, fails=True, status="REGRESSED")
    page = shown(run)
    assert "jaxgate: 1 of 6 cases failed" in page
    assert page.index(f'<tr id="{run.cases[5].case}"') < page.index(f'<tr id="{run.cases[0].case}"')


def test_what_failed_is_read_without_a_script():
    """Its text, suspects, what moved with ratio, the difference with its signs, and the largest buffers."""
    run = sample_run(8, red=2)
    page = shown(run)
    failed = page[page.index('<section id="failed"') : page.index('<section id="cases"')]
    for text in (
        "culprit   argument state", "donated, not reused, no output", "2.00 ×", "fusion.3  model.py:41", "attention/softmax/sort", "+2 ms",
    ):  # fmt: skip
        assert text in failed
    assert '<span class="gone">-  %4 = add %3, %0</span>' in failed
    assert '<span class="add">+  %4 = transpose %3</span>' in failed
    assert 'href="./scan/model0-forward-over-4-steps-scan-vs-loop/report.md"' in failed


def test_a_green_run_has_no_such_part():
    """Nor a link to it."""
    assert 'id="failed"' not in shown(sample_run(4))


def test_problems_of_the_run_stand_in_the_header():
    """All kinds, each with its number; of many the first, and how many more."""
    run = replace(
        sample_run(2), green=False, unfit=("too little was decided",), problems=("gone.json is orphaned",),
        not_judged=tuple(f"test_{number}" for number in range(53)), needs_commit=("baselines/new.json",),
    )  # fmt: skip
    header = shown(run).partition("<main")[0]
    for text in (
        "too little was decided",
        "gone.json is orphaned",
        "Not judged: 53",
        "test_49",
        "… and 3 more",
        "baselines/new.json",
    ):
        assert text in header
    assert "test_50<" not in header


def unpacked(page, place=0):
    """Today's, stored and reference figures of a case, as the page's script reads them."""
    data = data_of(page)["cases"]
    case = data["cases"][place]
    names, (layout, *values) = data["names"], case["now"]
    now = {names[at]: value for at, value in zip(data["layouts"][layout], values, strict=True)}

    def other(key, bit):
        if not case["known"] & bit:
            return {}
        flat = case.get(key, [])
        side = {**now, **{names[at]: value for at, value in zip(flat[::2], flat[1::2], strict=True)}}
        return {name: value for name, value in side.items() if value is not None}

    return now, other("stored", 2), other("reference", 1)


def test_every_figure_comes_back_from_the_compact_data():
    """Of all three sides; what one of them does not know stays unknown, and what is equal is not written twice."""
    run = sample_run(3)
    figures = replace(
        run.cases[0].figures,
        now={"temp_bytes": 3140, "traces": 1, "run_ns": 81_839.961538},
        stored={"temp_bytes": 3140, "run_ns": 45_745.0, "dispatch_ns": 0},
        reference={"temp_bytes": 66_560},
    )
    page = shown(changed(run, figures=figures))
    now, stored, reference = unpacked(page)
    assert now == {"temp_bytes": 3140, "traces": 1, "run_ns": 81_840}
    assert stored == {"temp_bytes": 3140, "run_ns": 45_745, "dispatch_ns": 0}
    assert reference == {"temp_bytes": 66_560}


def test_sides_that_are_equal_or_absent_are_told_apart():
    """A baseline with the same figures is one; no baseline is none."""
    run = sample_run(2)
    same = replace(run.cases[0].figures, now={"traces": 1}, stored={"traces": 1}, reference={})
    assert unpacked(shown(changed(run, figures=same))) == ({"traces": 1}, {"traces": 1}, {})
    assert unpacked(shown(changed(run, figures=replace(same, stored={})))) == ({"traces": 1}, {}, {})


def test_single_calls_keep_four_digits():
    """As numbers and a power of ten; of many calls every so manieth, and no more than a chart can show."""
    run = sample_run(1)
    times = CallTimes(now=(123_456.0, 98_765.0), stored=tuple(float(time) for time in range(1, 1001)), in_turn=True)
    case = data_of(shown(changed(run, figures=replace(run.cases[0].figures, times=times))))["cases"]["cases"][0]
    now, stored, in_turn = case["calls"]
    assert now == [2, 2, 1235, 988]
    assert (stored[1], len(stored) - 2 <= 60) == (1000, True), "the page says how many of them are drawn"
    assert in_turn == 1


def test_long_texts_are_cut_and_say_so():
    """A page of many red cases stays small: what comes first is shown, and the rest is in the bundles."""
    budget = TextBudget(10)
    assert budget.lines(["12345", "67890", "x"]) == ["12345", "67890", f"… 1 more lines {LEFT_OUT}"]
    assert budget.text("y") == f"… 1 more lines {LEFT_OUT}"
    assert len(TextBudget().lines(["x"] * 5000)) == MOST_LINES + 1


def test_a_page_of_2000_cases_stays_small():
    """Without the library, which has 0.9 MB: 5 MB are the limit of all, also where very many fail with long texts."""
    run = sample_run(2000, red=300)
    long = tuple(replace(case, text=case.text + "x" * 5000, changes=("+ y" * 1000,) * 9) for case in run.cases)
    assert len(shown(run).encode()) < 4_000_000
    assert len(shown(replace(run, cases=long)).encode()) < 4_100_000


def test_without_the_library_a_page_says_how_to_have_charts():
    """And has all tables."""
    page = run_page([Result(run=sample_run(40))], library="")
    assert "pip install &#39;jaxgate[page]&#39;" in page
    assert "Numbers of scan/model0-forward-over-N-steps-scan-vs-loop" in page
    assert "pip install" not in shown(sample_run(40))


def test_two_results_stand_side_by_side():
    """The cases of both, with their hardware; the same case twice has two fragments."""
    sides = [
        Result(run=sample_run(8, hardware=name, seed=seed), name=name)
        for seed, name in enumerate(("tpu-v5e", "gpu-h200"))
    ]
    page = run_page(sides, library=LIBRARY)
    assert "jaxgate: 2 results side by side" in page
    case = sides[0].run.cases[0].case
    assert row_of(page, case)[2] == "tpu-v5e"
    assert row_of(page, f"{case}@gpu-h200")[2] == "gpu-h200"
    assert "Peak memory, gpu-h200" in page


def test_side_by_side_takes_cases_that_both_have():
    """One that only one of them has is in the table of all cases."""
    one, other = sample_run(3).cases, sample_run(2).cases
    (group,) = side_by_side({"a": one, "b": other})
    assert [row[0] for row in group.table.rows] == [case.case for case in other]
    assert side_by_side({"a": one[2:], "b": other}) == ()


def test_a_finding_without_numbers_says_its_reason():
    """A claim, a baseline that is stale."""
    assert (
        finding_text(FindingRecord(kind="baseline", name="", status="STALE", detail="of other arguments"))
        == "baseline: of other arguments"
    )
    assert finding_text(FindingRecord(kind="fact", name="traces", status="X", now=3, against=0)) == "traces 3 against 0"


def test_a_run_of_an_earlier_jaxgate_has_a_page():
    """Without moment, commit and figures."""
    case = replace(sample_run(1).cases[0], figures=None, hardware=None, amount=None)
    page = shown(RunRecord(schema=1, jaxgate="0.1.0", green=True, gate_exit=0, cases=(case,)))
    assert "unknown" in page
    assert case.case in page


def test_each_case_names_its_own_environment_and_folder():
    """By the numbers of the page's list, also where a red case of a later result comes first; and its own --logdir."""
    calm, red = sample_run(1), sample_run(1, red=1)
    other = replace(red.cases[0].figures, environment={"jax": "0.12.0"})
    first = Result(run=calm, name="a", folder="a", logdir="here/a")
    second = Result(
        run=changed(red, figures=other, bundle="x", profiled=("now",)), name="b", folder="b", logdir="here/b"
    )
    page = run_page([first, second], library="")
    assert "jaxgate tensorboard --logdir here/b" in page
    assert "--logdir here/a" not in page
    environments = [first.run.cases[0].figures.environment, other.environment]
    assert page.index(environments[0]["jax"]) < page.index("0.12.0")
    assert [case["environment"] for case in data_of(page)["cases"]["cases"]] == [1, 0]


@pytest.mark.parametrize("profiled", [(), ("now",)])
def test_only_where_a_case_was_profiled_are_there_profiles_to_open(profiled):
    """One that was compiled for a target has none; its report and its bundle are there all the same."""
    red = changed(sample_run(1, red=1), bundle="x", profiled=profiled)
    page = run_page([Result(run=red, logdir="here")], library="")
    (case,) = data_of(page)["cases"]["cases"]
    assert ("jaxgate tensorboard --logdir here" in page) is bool(profiled)
    assert ("logdir" in case) is bool(profiled)
    assert "its bundle" in page
    assert "bundle" in case
