"""May I upgrade? In the terminal, on the page and as JSON: the printed numbers, and nothing that a name could do."""

import json
from dataclasses import replace

import pytest

from jaxgate.ext.upgrade.model import Change, Group, Section, TimedCases, UpgradeReport
from jaxgate.ext.upgrade.text import upgrade_json, upgrade_lines, upgrade_page
from jaxgate.model.decision import Decision, Status

DECISION = Decision(
    status=Status.SLOWER, ratio=1.2, low=1.1, high=1.3, pairs=8, margin=0.03, sees=0.05, threshold=0.1,
    now_ns=1.2e6, baseline_ns=1e6, reason="every launch",
)  # fmt: skip


def group(section, what, *changes):
    """A group of changes, given as case and further fields."""
    found = tuple(Change(case=case, section=section, what=what, **more) for case, more in changes)
    return Group(section=section, what=what, changes=found)


REPORT = UpgradeReport(
    other="jax==0.12.0.1",
    differences=("jax 0.10.2 → 0.12.0.1", "jaxlib 0.10.2 → 0.12.0.1"),
    compared=("remat/a", "remat/b", "scan/c", "scan/d"),
    same=("scan/d",),
    groups=(
        group(Section.CANNOT_RUN, "ImportError: no maps", ("pmap/gone", {"line": "test_pmap.py:3"})),
        group(
            Section.WORSE,
            "xla_flops",
            ("remat/a", {"here": 19e9, "there": 22.2e9, "detail": "more is recomputed"}),
            ("scan/c", {"here": 100, "there": 105}),
        ),
        group(Section.RUNS_SLOWER, "run_ns", ("scan/c", {"here": 1e6, "there": 1.2e6, "decision": DECISION})),
        group(
            Section.BETTER,
            "temp_bytes",
            ("remat/a", {"here": 79.7e6, "there": 16.8e6}),
            ("remat/b", {"here": 4e6, "there": 2e6}),
        ),
    ),
    times=TimedCases(timed=3, untimed=1, launches=8, could_hide=2),
)


@pytest.mark.parametrize("width", [80, 120])
def test_the_terminal_has_the_answer_first_and_fits(width):
    """The answer with its figures, then each group with its number of cases; no line is wider than the terminal."""
    lines = upgrade_lines(REPORT, width)
    text = " ".join(" ".join(lines).split())
    assert text.startswith("no: 5 cases: 1 cannot run there, 2 worse, 1 slower, 2 better, 1 the same")
    assert "jax==0.12.0.1: jax 0.10.2 → 0.12.0.1; jaxlib 0.10.2 → 0.12.0.1" in text
    assert "1 ImportError: no maps at test_pmap.py:3 pmap/gone" in text
    assert "2 xla_flops larger (remat 1, scan 1) most: remat/a 19 GFLOP → 22.2 GFLOP = 1.17 ×" in text
    assert "2 temp_bytes smaller (remat 2) most: remat/a 79.7 MB → 16.8 MB = 0.21 ×" in text
    assert "1 run_ns longer scan/c 1 ms → 1.2 ms = 1.20 ×" in text
    assert "3 cases timed, in up to 8 launches of each side; of 2 cases a slow-down of 10% could hide" in text
    assert max(map(len, lines)) <= width


def test_an_answer_without_times_says_why():
    """Nothing timed is said; so is nothing compared."""
    calm = UpgradeReport(other="A=1", differences=(), compared=("a/b",), same=("a/b",), groups=(), times=TimedCases())
    lines = upgrade_lines(calm, 80)
    assert lines[:2] == ["yes: 1 case: 1 the same", "  A=1: nothing differs"]
    assert lines[-1] == "time: no case was timed: all executables are the same"


def test_the_page_has_each_case_with_its_numbers_and_what_accounts_for_it():
    """A fold for each group, a row for each case, the line of the project, the cause, the launches."""
    page = upgrade_page(REPORT)
    assert page.startswith("## ❌ May I upgrade to `jax==0.12.0.1`? no")
    assert "| `remat/a` | 79.7 MB | 16.8 MB | 0.21 × |" in page
    assert "| `remat/a` | 19 GFLOP | 22.2 GFLOP | 1.17 × | more is recomputed |" in page
    assert "| `pmap/gone` | test&#95;pmap.py&#58;3 |" in page
    assert "8 launches of each, 1.10 to 1.30 ×" in page
    assert "<summary>1 case the same</summary>" in page


def test_a_name_is_shown_and_does_nothing():
    """Names and errors come from whoever opened the pull request."""
    evil = group(Section.CANNOT_RUN, "<b>@all</b> | x", ("a/`b`|c", {"line": "[x](y):1"}))
    page = upgrade_page(
        UpgradeReport(other="`x`", differences=("<i>",), compared=(), same=(), groups=(evil,), times=TimedCases())
    )
    assert "<b>" not in page
    assert "@all" not in page
    assert "[x](y)" not in page
    assert "| `a/'b'\\|c` |" in page


def test_machines_get_every_number():
    """The answer, its exit code, and each case of each group."""
    found = json.loads(upgrade_json(REPORT))
    assert (found["answer"], found["exit_code"], found["compared"]) == ("no", 1, list(REPORT.compared))
    assert [one["section"] for one in found["groups"]] == ["cannot_run", "worse", "runs_slower", "better"]
    assert found["groups"][3]["cases"][0]["there"] == 16.8e6
    assert found["groups"][2]["cases"][0]["decision"]["low"] == 1.1


def test_what_no_clock_judged_is_said_where_nothing_was_timed():
    """Claims on time, and launches that failed: a yes must not look like more than it is."""
    times = TimedCases(asked=2, lost=2, claims=5)
    calm = UpgradeReport(other="A=1", differences=(), compared=("a/b",), same=("a/b",), groups=(), times=times)
    assert upgrade_lines(calm, 120)[-1] == "time: no case was timed: 2 cases lost a launch; 5 claims on time not judged"
    off = replace(calm, times=TimedCases(asked=2))
    assert upgrade_lines(off, 120)[-1].endswith(
        "2 cases may differ in time, and --benchmark-disable keeps the clock off"
    )
