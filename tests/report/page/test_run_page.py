"""What is on the page of a run, read from its elements; no number is counted on that is not written in the sample."""

import html
import re
from dataclasses import replace

import pytest

from ci.page.samples import sample_run
from jaxgate.ext.growth.model import Grown
from jaxgate.ext.page.cases import LEFT_OUT, MOST_LINES, cut, finding_text
from jaxgate.ext.page.run_page import Result, headline, run_page
from jaxgate.model.outcome import FindingRecord, RunRecord, TimeRecord
from jaxgate.model.verdict import CallTimes


def shown(run, **about):
    """The page of one run."""
    return run_page([Result(run=run, **about)])


def changed(run, place=0, **changes):
    """A run with one case as it is wanted."""
    cases = list(run.cases)
    cases[place] = replace(cases[place], **changes)
    return replace(run, cases=tuple(cases))


def section(page, key):
    """A part of the page."""
    return page.partition(f'<section id="{key}"')[2].partition("</section>")[0]


def row_of(page, case):
    """The cells of a case's row, as text, without what opens."""
    row = re.search(rf'<tr><th scope="row" id="{re.escape(case)}">(.*?)</tr>', page, flags=re.DOTALL)[0]
    row = re.sub(r"<pre.*?</pre>", "", row, flags=re.DOTALL)
    return [re.sub(r"<[^>]+>", "", cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, flags=re.DOTALL)]


def details_of(page, case):
    """What a case shows once it is opened, as lines of words."""
    found = re.search(rf'id="{re.escape(case)}"><details>.*?<pre tabindex="0">(.*?)</pre>', page, flags=re.DOTALL)
    return [line.split() for line in html.unescape(found[1]).splitlines()]


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


@pytest.mark.parametrize(("ratio", "place"), [(1.0, 50.0), (2.0, 96.0), (0.5, 4.0), (64.0, 96.0), (0.0, 4.0)])
def test_the_interval_stands_on_one_axis(ratio, place):
    """One time of the baseline is in its middle; half and twice lie as far from it, and what is beyond at its ends."""
    page = shown(changed(sample_run(1), time=TimeRecord(status="SAME", ratio=ratio, low=ratio, high=ratio)))
    assert f'<circle cx="{place}"' in page


def test_a_fact_that_grows_otherwise_is_drawn_with_both_curves():
    run = sample_run(4)
    same = (4, 8, 16)
    now, stored = (
        {"layers": Grown(sizes=same, facts={"stablehlo_ops": same, "temp_bytes": one})} for one in ((1, 4, 16), same)
    )
    figures = replace(run.cases[0].figures, growth=now, stored_growth=stored)
    page = section(shown(changed(run, fails=True, figures=figures)), "failed")
    assert "temp_bytes over layers" in page
    assert "stablehlo_ops over layers" not in page


def test_a_case_is_no_part_of_the_page():
    """Its name may be that of a section: the link to it, and the section's, lead to different places."""
    page = shown(changed(changed(sample_run(3), case="cases"), 1, case="table"))
    ids = re.findall(r' id="([^"]*)"', page)
    assert len(set(ids)) == len(ids)
    assert {"cases", "case/cases", "table", "case/table"} <= set(ids)


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
    run = replace(sample_run(4), **changes)
    assert headline(run) == (kind, line)
    assert f'<header class="{kind}">' in shown(run)


def test_red_cases_come_first_and_are_counted():
    run = replace(sample_run(6, red=0), green=False)
    run = changed(run, 5, fails=True, status="REGRESSED")
    page = shown(run)
    assert "jaxgate: 1 of 6 cases failed" in page
    assert page.index(f'<th scope="row" id="{run.cases[5].case}"') < page.index(f'id="{run.cases[0].case}"')


def test_what_failed_is_read_without_a_script():
    """Its text, suspects, what moved with ratio, single calls, the difference with its signs, and the largest buffers."""
    page = shown(sample_run(8, red=2))
    failed = section(page, "failed")
    for text in (
        "culprit   argument state", "donated, not reused, no output", "2.00 ×", "fusion.3  model.py:41", "attention/softmax/sort", "+2 ms",
        "Single calls, taken in turn",
    ):  # fmt: skip
        assert text in failed
    assert '<span class="gone">-  %4 = add %3, %0</span>' in failed
    assert '<span class="add">+  %4 = transpose %3</span>' in failed
    assert 'href="./scan/model0-forward-over-4-steps-scan-vs-loop/report.md"' in failed


def test_a_green_run_has_no_such_part():
    assert "#failed" not in shown(sample_run(4))


def test_of_many_red_cases_the_first_are_told():
    page = shown(sample_run(60, red=53))
    assert "3 more failed; they are in the table." in page
    assert section(page, "failed").count('<details class="fold" open>') == 3


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


def test_a_case_opens_with_all_its_figures():
    """Of all three sides; what one of them does not know stays unknown."""
    run = sample_run(3)
    figures = replace(
        run.cases[0].figures,
        now={"temp_bytes": 3140, "traces": 1, "run_ns": 2e6},
        stored={"temp_bytes": 3140, "run_ns": 1e6, "dispatch_ns": 0},
        reference={"temp_bytes": 66_560},
    )
    lines = details_of(shown(changed(run, figures=figures)), run.cases[0].case)
    assert lines[0] == ["test", *run.cases[0].test.split()]
    assert lines[-5:] == [
        ["now", "baseline", "ratio", "reference"],
        ["temp_bytes", "3.14", "kB", "3.14", "kB", "66.6", "kB"],
        ["traces", "1", "–", "–"],
        ["run_ns", "2", "ms", "1", "ms", "2.00", "×", "–"],
        ["dispatch_ns", "–", "0", "ns", "–"],
    ]


def test_calls_of_two_days_decide_nothing():
    """The chart says so, and a time that is no number is left out."""
    run = sample_run(1, red=1)
    times = CallTimes(now=(2e6, float("inf")), stored=(1e6,), in_turn=False)
    page = shown(changed(run, figures=replace(run.cases[0].figures, times=times)))
    assert "Single calls, taken on two days, which decides nothing" in page
    assert "now 1 calls, median 2 ms" in page


@pytest.mark.parametrize("number", [float("inf"), float("-inf"), float("nan")])
def test_a_number_that_is_none_is_no_end_of_the_page(number):
    """Whoever wrote the results may have put one anywhere: it is shown or left out, and nothing is drawn of it."""
    run = sample_run(8, red=1)
    cases = [
        replace(
            case,
            run_ns=number,
            time=replace(case.time, ratio=number, low=number, high=number),
            findings=(FindingRecord(kind="fact", name="traces", status="REGRESSED", now=number, against=number),),
            roofline={"least_ns": number},
            figures=replace(case.figures, now=dict.fromkeys(case.figures.now, number), stored={"temp_bytes": number}),
        )
        for case in run.cases
    ]
    points = tuple(replace(point, per_second=number) for point in run.scaling[0].points)
    run = replace(run, cases=tuple(cases), scaling=(replace(run.scaling[0], points=points),))
    page = run_page([Result(run=run, name="a"), Result(run=sample_run(8), name="b")])
    assert 'id="cases"' in page
    assert not re.search(r'd="[^"]*(inf|nan)', page)


def test_long_texts_are_cut_and_say_so():
    """A page of many red cases stays small: what comes first is shown, and the rest is in the bundles."""
    assert cut(["x" * 11_990, "12345", "678901", "x"])[1:] == ["12345", f"… 2 more lines {LEFT_OUT}"]
    assert len(cut(["x"] * 5000)) == MOST_LINES + 1
    assert cut(["a", "b"]) == ["a", "b"]


def test_a_page_of_2000_cases_stays_small():
    """5 MB are the limit of all, also where very many fail with long texts."""
    run = sample_run(2000, red=300)
    long = tuple(replace(case, text=case.text + "x" * 5000, changes=("+ y" * 1000,) * 9) for case in run.cases)
    page = shown(replace(run, cases=long))
    assert len(page.encode()) < 5_000_000
    assert "its figures are in results.json" in page


def test_two_results_stand_side_by_side():
    """The cases of both, with their hardware; the same case twice has two fragments."""
    sides = [
        Result(run=sample_run(8, hardware=name, seed=seed), name=name)
        for seed, name in enumerate(("tpu-v5e", "gpu-h200"))
    ]
    page = run_page(sides)
    assert "jaxgate: 2 results side by side" in page
    case = sides[0].run.cases[0].case
    assert row_of(page, case)[2] == "tpu-v5e"
    assert row_of(page, f"{case}~2")[2] == "gpu-h200"
    assert "peak memory, gpu-h200" in page


def test_side_by_side_takes_cases_that_both_have():
    """One that only one of them has is in the table of all cases."""
    three, two = sample_run(3), sample_run(2)
    beside = section(run_page([Result(run=three, name="a"), Result(run=two, name="b")]), "beside")
    assert re.findall(r'<tr><th scope="row">(.*?)</th>', beside) == [case.case for case in two.cases]
    apart = replace(three, cases=three.cases[2:])
    assert 'id="beside"' not in run_page([Result(run=apart, name="a"), Result(run=two, name="b")])


def test_a_finding_without_numbers_says_its_reason():
    assert (
        finding_text(FindingRecord(kind="baseline", name="", status="STALE", detail="of other arguments"))
        == "baseline: of other arguments"
    )
    assert finding_text(FindingRecord(kind="fact", name="traces", status="X", now=3, against=0)) == "traces 3 against 0"


def test_a_run_of_an_earlier_jaxgate_has_a_page():
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
    page = run_page([first, second])
    assert "jaxgate tensorboard --logdir here/b" in page
    assert "--logdir here/a" not in page
    name = calm.cases[0].case
    assert "Environment 1: jax 0.12.0" in page
    assert ["environment", "1"] in details_of(page, name)
    assert ["environment", "2"] in details_of(page, f"{name}~2")


@pytest.mark.parametrize("profiled", [(), ("now",)])
def test_only_where_a_case_was_profiled_are_there_profiles_to_open(profiled):
    """One that was compiled for a target has none; its report and its bundle are there all the same."""
    page = shown(changed(sample_run(1, red=1), bundle="x", profiled=profiled), logdir="here")
    assert ("jaxgate tensorboard --logdir here" in page) is bool(profiled)
    assert "its bundle" in page
