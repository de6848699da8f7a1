"""Operations as a person reads them: three rows in the failure text, all of them in the report, and who leads."""

from dataclasses import replace

import pytest
from support import factories
from support.factories import CASE, TEST, measurement, record

from jaxgate.ext.profile.evidence import verdict_json
from jaxgate.ext.profile.model import Capture, Communication, OpRow, OpTable, RankTimes
from jaxgate.ext.profile.table import culprit_rows, markdown_table, rank_table, step_line, waited_for
from jaxgate.model.decision import Status
from jaxgate.model.verdict import Cause, Finding, Origin, TimeVerdict
from jaxgate.report.case_page import report
from jaxgate.report.text import explain

MS = 1_000_000
SORT = OpRow(name="softmax/sort", line="model.py:41", now_ns=3.1 * MS, other_ns=0.8 * MS)
GAP = OpRow(name="gap after softmax/sort", line="model.py:41", now_ns=0.2 * MS, other_ns=0.1 * MS, gap=True)
QUICKER = OpRow(name="dot_general", line="", now_ns=0.5 * MS, other_ns=0.6 * MS)
TABLE = OpTable(
    other="baseline", now_ns=4 * MS, other_ns=1.6 * MS, floor_ns=0.05 * MS, rows=(SORT, GAP, QUICKER), folded=7,
    folded_now_ns=0.2 * MS, folded_other_ns=0.1 * MS,
)  # fmt: skip
CAPTURE = Capture(folder="perf-artifacts/scan/rnn", table=TABLE, sides=("now", "baseline"), seconds=1.2)
SEEN = Cause(text="stablehlo.sort 0 → 1 at model.py:41", explains=frozenset({"xla_flops"}))
GUESS = replace(SEEN, sure=False)
ROOT = Cause(text="a dearer library routine: Cholesky → eigh", explains=frozenset({"run_ns"}), root=True)
AMOUNT = Cause(text="float32[8,8] x float32[8,8] 1 → 2", explains=frozenset({"matmul_flops"}))
ELSEWHERE = replace(GUESS, text="stablehlo.add 0 → 1 at model.py:411")
SPREAD = replace(CAPTURE, table=replace(TABLE, now_ns=8 * MS))
PAUSE = replace(CAPTURE, table=replace(TABLE, rows=(replace(GAP, now_ns=2.4 * MS), QUICKER)))
FACT = Finding(kind="fact", name="xla_flops", status=Status.REGRESSED, now=2, against=1, allowed=1)
TIME = Finding(kind="time", name="time", status=Status.SLOWER)


def red(*findings, causes=(SEEN,), capture=CAPTURE, status=Status.REGRESSED, slower=Status.SLOWER):
    """A red verdict with a capture, slower by a duel."""
    time = TimeVerdict(status=slower, reason="by a duel")
    return factories.verdict(
        status, *(findings or (FACT,)), time=time, causes=causes, capture=capture, origin=Origin(place="code")
    )


def told(verdict):
    """The rows between ``baseline`` and ``next`` of a failure text."""
    lines = explain(verdict, test=TEST).splitlines()
    labels = [line[2:11].strip() for line in lines]
    return list(zip(labels, lines, strict=True))[labels.index("baseline") + 1 : labels.index("next")]


def test_rows_are_aligned_and_say_their_part():
    """Name, line, then and now, and how much of the difference; what got quicker is no culprit."""
    assert culprit_rows(TABLE) == [
        "softmax/sort            model.py:41  800 µs → 3.1 ms  (+2.3 ms of +2.4 ms)",
        "gap after softmax/sort  model.py:41  100 µs → 200 µs  (+100 µs of +2.4 ms)",
    ]
    (row, _) = culprit_rows(replace(TABLE, other="reference"))  # more than the naive way takes is not more than before
    assert row.endswith("(+2.3 ms of +2.4 ms more than the reference)")
    (row,) = culprit_rows(replace(TABLE, rows=(replace(SORT, line=""),)))  # a column that nobody fills is left out
    assert row == "softmax/sort  800 µs → 3.1 ms  (+2.3 ms of +2.4 ms)"


def test_a_part_is_never_more_than_its_whole():
    """Where others got quicker, it is a part of all that grew, and the step is told beside it."""
    quicker = replace(QUICKER, other_ns=2.1 * MS)
    table = replace(TABLE, now_ns=3 * MS, rows=(SORT, quicker), folded_now_ns=0.3 * MS, folded_other_ns=0.2 * MS)
    assert culprit_rows(table) == [
        "softmax/sort  model.py:41  800 µs → 3.1 ms  (+2.3 ms of +2.4 ms that grew, the step +1.4 ms)"
    ]
    less = replace(table, folded_now_ns=0)  # what was folded got quicker, too
    assert culprit_rows(less)[0].endswith("(+2.3 ms of +2.3 ms that grew, the step +1.4 ms)")


def test_parts_are_together_no_more_than_their_whole():
    """Two rows that fit one by one, and not together: others got quicker."""
    other = replace(SORT, name="softmax/exp")
    table = replace(TABLE, now_ns=4.6 * MS, rows=(SORT, other, replace(QUICKER, other_ns=2.2 * MS)))
    assert all(row.endswith("that grew, the step +3 ms)") for row in culprit_rows(table))


def test_a_long_name_keeps_its_end():
    """The primitive and its nearest scopes say most."""
    table = replace(TABLE, rows=(replace(SORT, name=f"{'layer/' * 20}sort"),))
    (row,) = culprit_rows(table)
    assert row.startswith("…")
    assert row.split("  ")[0].endswith("/layer/sort")
    assert len(row.split("  ")[0]) == 48


@pytest.mark.parametrize(
    ("verdict", "labels", "first"),
    [
        (red(), ["culprit", "profile", "", "bundle"], "stablehlo.sort 0 → 1"),
        (red(causes=(GUESS,)), ["culprit", "", "program", "bundle"], "softmax/sort  "),
        (red(causes=(GUESS,), slower=Status.UNDECIDED), ["culprit", "profile", "", "bundle"], "perhaps "),
        (red(causes=(GUESS,), capture=replace(CAPTURE, table=replace(TABLE, other="reference"))), ["culprit", "profile", "", "bundle"], "perhaps "),
        (red(causes=()), ["culprit", "", "program", "bundle"], "softmax/sort  "),
        (red(TIME, status=Status.SLOWER), ["culprit", "", "program", "bundle"], "softmax/sort  "),
        (red(TIME, status=Status.SLOWER, causes=(ROOT,)), ["culprit", "profile", "", "bundle"], "a dearer library routine"),
        (red(TIME, status=Status.SLOWER, capture=SPREAD), ["culprit", "profile", "", "bundle"], "stablehlo.sort 0 → 1"),
        (red(FACT, TIME, causes=(AMOUNT,)), ["culprit", "profile", "", "bundle"], "float32[8,8]"),
        (red(causes=(ELSEWHERE,)), ["culprit", "profile", "", "bundle"], "perhaps stablehlo.add"),
        (red(TIME, status=Status.SLOWER, causes=(ELSEWHERE,)), ["culprit", "", "program", "bundle"], "softmax/sort  "),
        (red(causes=(GUESS,), capture=PAUSE), ["culprit", "profile", "bundle"], "perhaps "),
        (red(TIME, status=Status.SLOWER, causes=(GUESS,), capture=PAUSE), ["culprit", "profile", "bundle"], "perhaps "),
        (red(FACT, TIME), ["culprit", "profile", "", "bundle"], "stablehlo.sort 0 → 1"),
        (red(capture=replace(CAPTURE, table=None)), ["culprit", "bundle"], "stablehlo.sort 0 → 1"),
        (red(causes=(GUESS,), capture=replace(CAPTURE, table=replace(TABLE, now_ns=MS))), ["culprit", "bundle"], "perhaps "),
        (red(capture=None), ["culprit"], "stablehlo.sort 0 → 1"),
    ],
    ids=["seen", "guessed", "guessed, not slower", "guessed, beside the reference", "unknown", "only time", "built otherwise", "only time, many rows", "more products", "guessed elsewhere", "only time, guessed elsewhere", "a pause", "only time, a pause", "a fact and time", "not read", "not longer", "no bundle"],
)  # fmt: skip
def test_who_leads(verdict, labels, first):
    """Facts lead; operations do where nothing else was seen, where a guess names their line, or where only a clock is red.

    A pause between operations never leads before anything else.
    """
    rows = told(verdict)
    assert [label for label, _ in rows] == labels
    assert rows[0][1][12:].startswith(first)


def test_the_bundle_says_what_is_missing():
    """Why there is no profile stands where somebody would look for it."""
    capture = Capture(folder="perf-artifacts/scan/rnn", notes=("now: no space left on device",))
    assert (
        told(red(capture=capture))[-1][1]
        == "  bundle    perf-artifacts/scan/rnn/report.md (now: no space left on device)"
    )
    nowhere = Capture(folder="", notes=("no bundle was written: no space left on device",))
    assert told(red(capture=nowhere))[-1][1] == "  bundle    none (no bundle was written: no space left on device)"


def test_the_table_adds_up():
    assert markdown_table(TABLE).splitlines() == [
        "| operation | line | baseline | now | difference |",
        "|---|---|--:|--:|--:|",
        "| `softmax/sort` | `model.py:41` | 800 µs | 3.1 ms | +2.3 ms |",
        "| `gap after softmax/sort` | `model.py:41` | 100 µs | 200 µs | +100 µs |",
        "| `dot_general` |  | 600 µs | 500 µs | −100 µs |",
        "| *7 rows that differ by less than the measured floor of 50 µs* | | 100 µs | 200 µs | +100 µs |",
        "| **step** | | **1.6 ms** | **4 ms** | **+2.4 ms** |",
    ]
    assert step_line(TABLE) == "a profiled step takes 4 ms, that of the baseline 1.6 ms"


def test_one_side_alone_has_one_column():
    table = replace(
        TABLE, other="", other_ns=0, rows=(replace(QUICKER, other_ns=0), replace(SORT, other_ns=0)), folded=1
    )
    assert markdown_table(table).splitlines() == [
        "| operation | line | now |",
        "|---|---|--:|",
        "| `softmax/sort` | `model.py:41` | 3.1 ms |",
        "| `dot_general` |  | 500 µs |",
        "| *1 row that takes less than the measured floor of 50 µs* | | 200 µs |",
        "| **step** | | **4 ms** |",
    ]
    assert step_line(table) == "a profiled step takes 4 ms"


def test_a_hostile_name_cannot_break_out_of_the_table():
    """Bars, backticks and line ends of a scope stay within their cell."""
    table = replace(TABLE, rows=(replace(SORT, name="a|b`c\n| d"),))
    assert "| `a\\|b'c \\| d` | `model.py:41` |" in markdown_table(table)


def test_a_hostile_text_cannot_break_out_of_its_block():
    """A fence in the failure text does not end the block."""
    page = report(red(), measurement(), record(), "REGRESSED\n```\n# mine", [], logdir="a b")
    assert "\n````text\nREGRESSED\n```\n# mine\n````\n" in page


def test_the_report_says_what_is_in_the_bundle():
    """Only files that are there, each with its meaning; the cost; how to open the profiles."""
    page = report(red(), measurement(), record(), "REGRESSED", ["now.hlo.txt", "verdict.json", "unknown"], logdir="a b")
    assert page.startswith(f"# REGRESSED: {CASE}\n\n```text\nREGRESSED\n```")
    assert "- [`now.hlo.txt`](now.hlo.txt): today's program as compiled here" in page
    assert "baseline.hlo.txt" not in page
    assert "unknown" not in page
    assert "Captured in 1.2 s." in page
    assert "$ jaxgate tensorboard --logdir 'a b'\n" in page
    assert "| `temp_bytes` |" in page


def test_the_verdict_as_data_has_its_schema():
    assert verdict_json(red()).startswith('{\n  "schema": 2,\n  "case": ')


def rank(number, step, waits):
    """A step on a rank."""
    moving = None if waits is None else Communication(total_ns=waits, exposed_ns=waits)
    return RankTimes(rank=f"rank {number}", step_ns=step, communication=moving, waits_in="psum  train.py:9")


def test_ranks_stand_side_by_side():
    assert rank_table([rank(0, 100.0, 90.0), rank(1, 100.0, None)]).splitlines()[2:] == [
        "| rank 0 | 100 ns | 10 ns | 90 ns | `psum train.py:9` |",
        "| rank 1 | 100 ns |  |  | `psum train.py:9` |",
    ]


@pytest.mark.parametrize(
    ("waits", "says"),
    [
        ((90.0, 20.0, 60.0), "the others wait for rank 1, which works longest"),
        ((90.0, 88.0), ""),
        ((90.0, None), ""),
        ((90.0,), ""),
    ],
    ids=["one works longest", "all wait alike", "one is not known", "one rank"],
)
def test_who_waits_least_is_who_the_others_wait_for(waits, says):
    assert waited_for([rank(number, 100.0, one) for number, one in enumerate(waits)]) == says
