"""A run as a page of a pull request: how it ended in words, what moved, what to do; and nothing that a name could break."""

import html
import json
import re
from dataclasses import replace

import pytest
from support import factories
from support.factories import CASE, TEST, changed_verdict

from jaxgate.ext.profile.model import Capture, OpRow, OpTable
from jaxgate.model.decision import Status
from jaxgate.model.outcome import RESULTS_SCHEMA, Outcome
from jaxgate.model.verdict import Cause, Finding, Origin, TimeVerdict
from jaxgate.report.pull_request import error_commands, pull_request_page
from jaxgate.report.results import results_json

WORSE = Finding(
    kind="fact", name="temp_bytes", status=Status.REGRESSED, now=4_200_000, against=2_100_000, allowed=2_200_000
)
SAME = Finding(kind="fact", name="traces", status=Status.SAME, now=1, against=1)


def verdict(status=Status.SAME, *findings, **changes):
    """A verdict made by hand; the bad ones fail."""
    return factories.verdict(status, *(findings or (SAME,)), **changes)


RED = verdict(Status.REGRESSED, WORSE, SAME)
GREEN = verdict(case="scan/other")


def outcome(*verdicts, **changes):
    """A run."""
    whole = Outcome(
        verdicts=verdicts,
        tests={each.case: TEST for each in verdicts},
        texts={each.case: f"{each.status}  {each.case}\n  next      reproduce" for each in verdicts if each.fails},
        exit_status=int(any(each.fails for each in verdicts)),
    )
    return replace(whole, **changes)


@pytest.mark.parametrize(
    ("run", "headline"),
    [
        (outcome(GREEN), "✅ jaxgate: 1 case passed"),
        (outcome(GREEN, verdict(case="a/b")), "✅ jaxgate: 2 cases passed"),
        (outcome(RED, GREEN), "❌ jaxgate: 1 of 2 cases failed"),
        (outcome(), "❌ jaxgate: no case was judged"),
        (outcome(GREEN, not_judged=(TEST,)), "❌ jaxgate: no case of 1 failed, and the run is not green"),
        (outcome(GREEN, problems=("orphan",)), "❌ jaxgate: no case of 1 failed, and the run is not green"),
        (outcome(GREEN, exit_status=2), "❌ jaxgate: no case of 1 failed, and the run is not green"),
    ],
    ids=["one", "two", "red", "nothing", "not judged", "problem", "unfit"],
)
def test_the_headline_says_how_it_ended(run, headline):
    """Green only where something was judged, everything selected was, and nothing else is wrong."""
    assert pull_request_page(run).splitlines()[0] == f"## {headline}"
    assert run.green == headline.startswith("✅")


def test_what_moved_stands_in_a_table_failures_first():
    """Words as well as icons; what is the same, or undecided, is counted only."""
    half = Finding(kind="fact", name="xla_flops", status=Status.IMPROVED, now=1_000, against=2_000)
    better = verdict(Status.IMPROVED, half, case="scan/better")
    page = pull_request_page(outcome(better, GREEN, verdict(Status.UNDECIDED, case="scan/open"), RED))
    assert [line for line in page.splitlines() if line.startswith("|")] == [
        "| verdict | case | what moved most | now | before | |",
        "|---|---|---|--:|--:|--:|",
        f"| ❌ REGRESSED | `{CASE}` | `temp_bytes` | 4.2 MB | 2.1 MB | 2.00 × |",
        "| ✅ IMPROVED | `scan/better` | `xla_flops` | 1 kFLOP | 2 kFLOP | 0.50 × |",
    ]
    assert "1 SAME, 1 IMPROVED, 1 UNDECIDED, 1 REGRESSED on `cpu-amd-epyc-1`." in page


def test_a_slow_down_shows_its_times():
    duel = factories.decision(ratio=1.5, now_ns=3_000_000, baseline_ns=2_000_000)
    slow = verdict(Status.SLOWER, time=TimeVerdict(status=Status.SLOWER, reason="slower", decision=duel))
    assert "| ❌ SLOWER | `scan/rnn" in pull_request_page(outcome(replace(slow, case="scan/rnn")))
    assert "time of a call | 3 ms | 2 ms | 1.50 × |" in pull_request_page(outcome(slow))


def test_each_failure_is_a_fold_with_its_text():
    """The text has the commands to reproduce and to accept."""
    page = pull_request_page(outcome(RED))
    assert f"<details><summary>❌ REGRESSED <code>{CASE}</code></summary>\n\n```text\nREGRESSED  {CASE}\n  next" in page
    assert page.count("<details>") == page.count("</details>") == 1


def test_edits_of_baselines_are_shown_as_such():
    """A change that moves its own goal posts is seen to."""
    page = pull_request_page(outcome(GREEN, baseline_edits=("M\tbaselines/cpu/scan/rnn.json",)))
    assert "This change edits 1 baseline files: what is green may be green because of that" in page
    assert "M\tbaselines/cpu/scan/rnn.json" in page
    assert "baselines" not in pull_request_page(outcome(GREEN))
    unknown = outcome(GREEN, baseline_edits=None)  # a checkout without history: silence would say that there are none
    assert "Whether this change edits baselines is not known" in pull_request_page(unknown)
    assert json.loads(results_json(unknown))["baseline_edits"] is None


def test_what_differs_in_the_environment_is_counted():
    moved = Origin(place="environment", differences=("jax 0.10.2 → 0.12.0.1", "program changed"))
    page = pull_request_page(outcome(replace(GREEN, origin=moved), replace(RED, origin=moved)))
    assert "jax 0.10.2 → 0.12.0.1  (2 cases)" in page
    assert "program changed  (" not in page


def test_what_was_not_judged_and_what_is_wrong_is_listed():
    page = pull_request_page(outcome(GREEN, not_judged=("perf/test_a.py::test_b",), problems=("an orphan",)))
    assert "❌ **1 not judged**: `perf/test_a.py::test_b`" in page
    assert "- ❌ an orphan" in page


HOSTILE = "a|b`c</code></details><script>x</script>\n# owned\n```\n@team https://evil"


def test_hostile_names_cannot_break_out():
    """Of a cell, a code span, a fold, a block: whoever opens the pull request chooses the names of tests."""
    bad = verdict(Status.INVALID, Finding(kind="case", name="", status=Status.INVALID, detail=HOSTILE), case=HOSTILE)
    run = outcome(
        bad,
        not_judged=(HOSTILE,),
        problems=(HOSTILE,),
        baseline_edits=(HOSTILE,),
        judge_edits=(HOSTILE,),
        texts={HOSTILE: f"INVALID\n{HOSTILE}"},
    )
    page = pull_request_page(run)
    blocks = re.findall(r"^(`{4,})text\n.*?\n\1$", page, flags=re.MULTILINE | re.DOTALL)
    outside = re.sub(r"^(`{4,})text\n.*?\n\1$", "", page, flags=re.MULTILINE | re.DOTALL)
    assert len(blocks) == 3
    assert "\n# owned" not in outside
    spans = re.sub(r"`[^`\n]*`|<code>[^<]*</code>", "", outside)  # in code nothing is a mention, or a link
    assert "<script>" not in spans
    assert "@team" not in spans
    assert "https://" not in spans
    assert spans.count("<details>") == spans.count("</details>") == 3
    (row,) = [line for line in outside.splitlines() if line.startswith("| ❌ INVALID")]
    assert len(re.findall(r"(?<!\\)\|", row)) == 7


def test_long_runs_stay_within_what_github_takes():
    """Hundreds of failures: the first are shown, the others counted."""
    many = [verdict(Status.REGRESSED, WORSE, case=f"scan/{number}") for number in range(500)]
    page = pull_request_page(outcome(*many, baseline_edits=tuple(f"M\tb/{n}.json" for n in range(500))))
    assert all(f"… and {more}" in page for more in ("460 more", "480 more that failed", "450 more"))
    assert len(page) < 65_536
    assert "… and 10 more" in pull_request_page(outcome(*(undecided("program changed") for _ in range(50))))


def test_annotations_are_one_line_each():
    """A line end would end the command and begin another; ten at most."""
    commands = list(error_commands(outcome(replace(RED, case="a\n::set-env name=x::y, 100%"), *[RED] * 12)))
    assert len(commands) == 10
    assert commands[0].startswith("::error title=REGRESSED a%0A%3A%3Aset-env name=x%3A%3Ay%2C 100%25::")
    assert all("\n" not in command for command in commands)
    assert "file=" not in commands[0]
    (placed,) = error_commands(outcome(RED, lines={RED.case: "a,b.py:17"}))
    assert placed.startswith("::error file=a%2Cb.py,line=17,title=REGRESSED ")
    assert commands[1].endswith("::temp_bytes 4.2 MB against 2.1 MB = 2.00 ×, allowed 2.2 MB")


def test_results_are_versioned_data():
    """How it ended, and of each case what was not the same, with its operations and its bundle."""
    table = OpTable(
        other="baseline", now_ns=5_000_000, other_ns=1_000_000, floor_ns=1_000,
        rows=(OpRow(name="sort", line="model.py:4", now_ns=4_000_000, other_ns=0),), folded=0, folded_now_ns=1_000_000,
        folded_other_ns=1_000_000,
    )  # fmt: skip
    capture = Capture(folder="perf-artifacts/scan/rnn", table=table)
    cause = Cause(text="sort 0 → 1", explains=frozenset({"temp_bytes"}), sure=False)
    found = json.loads(
        results_json(outcome(changed_verdict(RED, capture=capture, causes=(cause,)), GREEN, problems=("an orphan",)))
    )
    assert (found["schema"], found["green"], found["exit_status"]) == (RESULTS_SCHEMA, False, 1)
    assert found["problems"] == ["an orphan"]
    red, green = found["cases"]
    assert (red["case"], red["test"], red["status"], red["fails"]) == (CASE, TEST, "REGRESSED", True)
    assert [finding["name"] for finding in red["findings"]] == ["temp_bytes"]
    assert red["causes"] == ["perhaps sort 0 → 1"]
    assert red["operations"][0]["name"] == "sort"
    assert red["bundle"] == "perf-artifacts/scan/rnn"
    assert (green["findings"], green["operations"], green["bundle"]) == ([], [], "")


def undecided(*differences, case=CASE):
    """A case whose time was not decided."""
    why = TimeVerdict(status=Status.UNDECIDED, reason="the budget for duels is spent (--perf-budget)")
    return verdict(Status.UNDECIDED, case=case, time=why, origin=Origin(place="code", differences=differences))


def test_a_changed_program_that_was_not_timed_is_not_passed_over():
    """The headline counts them, a fold names each with its reason, and the others stand apart."""
    run = outcome(undecided("program changed", "source changed"), undecided("jax 1 → 2", case="scan/other"), GREEN)
    page = pull_request_page(run)
    assert page.startswith("## ⚠️ jaxgate: 3 cases passed, and the time of 1 changed program was not decided\n")
    assert "The program changed, and its time was not decided: 1 case" in page
    assert f"\n{CASE}: " in page
    assert "the budget for duels is spent" in page
    assert "Undecided, and nothing that is seen of the program changed: 1 case" in page
    assert json.loads(results_json(run))["undecided_changed"] == [CASE]
    assert run.green


@pytest.mark.parametrize(
    "text", ["@org/everyone", "#123", "org/repo#1", "me@evil.example", "www.evil.example", "![x](u)"]
)
def test_words_call_nobody_and_lead_nowhere(text):
    """Where GitHub shows them: it looks for these in what is shown, whatever each letter was written as."""
    (line,) = (line for line in pull_request_page(outcome(GREEN, problems=(text,))).splitlines() if "- ❌" in line)
    shown = html.unescape(line)
    assert not re.search(r"@\w|#\d", shown)
    assert not re.search(r"www\.|!\[", line)
