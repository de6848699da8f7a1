"""What a person reads: six lines for a red case, one line for every case, one line that counts them."""

import shlex
from dataclasses import replace
from functools import partial

import pytest
from support import factories
from support.factories import (
    CASE,
    ENVIRONMENT,
    FINGERPRINTS,
    TEST,
    changed_verdict,
    decision,
    measurement,
    record,
    reference,
)

from jaxgate.judge.verdict import judge, judge_invalid
from jaxgate.model.claim import claim
from jaxgate.model.computation import Amount
from jaxgate.model.decision import Status
from jaxgate.model.measurement import ExhaustedError, InvalidCaseError
from jaxgate.model.verdict import Cause, Finding, Origin, TimeVerdict
from jaxgate.report.summary import count, shared_differences, summary
from jaxgate.report.text import describe_finding, details, explain, in_short

LABELS = ["found", "time", "baseline", "culprit", "next"]


def judged(now=None, known=None, *, claims=(), **changes):
    """A strict verdict of the healthy measurement, or of another one."""
    return judge(CASE, claims, now or measurement(), known, strict=True, **changes)


def rows(verdict):
    """The explanation: its first line, and the labelled rows."""
    first, *rest = explain(verdict, test=TEST).splitlines()
    return first, {line.split()[0]: line.split(None, 1)[1] for line in rest}


def fact(name="temp_bytes", status=Status.SAME, now=None, against=None, **more):
    """A finding about a fact."""
    return Finding(kind="fact", name=name, status=status, now=now, against=against, **more)


verdict = partial(factories.verdict, run_ns=1500.0)


FACTS = {  # today's number, the baseline's, their ratio where there is one, and what would have passed
    "temp_bytes": (40_000, "temp_bytes 40 kB against 20 kB = 2.00 ×, allowed 25.1 kB"),
    "donated_bytes": (0, "donated_bytes 0 B against 16.4 kB = 0.00 ×, at least 16.4 kB"),
    "host_callbacks": (3, "host_callbacks 3 against 0, allowed 0"),
    "stablehlo_ops": (120, "stablehlo_ops 120 against 40 = 3.00 ×, allowed 80"),
    "constant_bytes": (65_536, "constant_bytes 65.5 kB against 0 B, allowed 1.02 kB"),
    # a line never says that 114 kB is too much where 114 kB is allowed
    "xla_bytes": (114_097, "xla_bytes 114,097 B against 100 kB = 1.14 ×, allowed 114,096 B"),
    "matmul_flops": (1_000_001, "matmul_flops 1,000,001 FLOP against 1,000,000 FLOP = 1.00 ×, allowed 1,000,000 FLOP"),
    "xla_flops": (None, "xla_flops: the baseline has it, today's measurement does not: it cannot be compared"),
}


@pytest.mark.parametrize("name", FACTS)
def test_the_numbers_of_a_fact(name):
    now, found = FACTS[name]
    assert rows(judged(measurement(facts={name: now}), record()))[1]["found"] == found


@pytest.mark.parametrize(
    ("formula", "found"),
    [
        ("compile_ns <= 0.5 * reference", "claim compile_ns ≤ 0.5 × reference: 50 ms against 80 ms = 0.62 × (why)"),
        ("temp_bytes <= 0.7 * reference", "claim temp_bytes ≤ 0.7 × reference: 20 kB against 25 kB = 0.80 × (why)"),
        ("host_callbacks == 1", "claim host_callbacks = 1: 0 against 1 = 0.00 × (why)"),
        ("output_bytes <= 0", "claim output_bytes ≤ 0: 16.4 kB against 0 B (why)"),
        ("output_bytes == aliased_bytes", "claim output_bytes = aliased_bytes: 16,388 B against 16,384 B = 1.00 × (why)"),
        ("matmul_flops == analytic_flops", "matmul_flops = analytic_flops: cannot be checked: analytic_flops is unknown on this backend"),
    ],
)  # fmt: skip
def test_the_numbers_of_a_claim(formula, found):
    """The formula, both numbers, their ratio, and why it is claimed; one that cannot be checked says what is missing."""
    known = reference(facts={"temp_bytes": 25_000}, phases={"compile_ns": 80_000_000})
    made = judged(measurement(reference=known), record(), claims=(claim(formula, "why"),))
    assert rows(made)[1]["found"] == found
    without = judged(measurement(reference=known), record(), claims=(claim(formula),))
    assert rows(without)[1]["found"] == found.removesuffix(" (why)")


def test_other_findings_as_bad_are_named():
    """Three more of the same status by name, the rest by number; claims are called claims."""
    facts = {"temp_bytes": 10**6, "xla_bytes": 10**6, "output_bytes": 10**6}
    now = measurement(facts=facts | {"traces": 2})
    two = claim("argument_bytes <= 1")
    assert rows(judged(measurement(facts={"traces": 2}), record()))[1]["found"] == (
        "traces 2 against 1 = 2.00 ×, allowed 1; also claim traces = 1"
    )
    assert rows(judged(now, record()))[1]["found"].endswith("; also output_bytes, temp_bytes, xla_bytes and 1 more")
    assert rows(judged(now, record(), claims=(two,)))[1]["found"].endswith(" and 2 more")
    improved = measurement(facts={"temp_bytes": 40_000, "xla_flops": 10})  # is not "also" red
    assert "also" not in rows(judged(improved, record()))[1]["found"]


@pytest.mark.parametrize(
    ("error", "status", "largest"),
    [
        (InvalidCaseError("tracing the subject", "expected a float"), "INVALID", ""),
        (ExhaustedError("tracing the subject", "expected a float"), "RESOURCE_EXHAUSTED", ""),
        (ExhaustedError("tracing the subject", "expected a float", ("768 kB f32[3,256,256]", "b")), "RESOURCE_EXHAUSTED",
         "  largest   768 kB f32[3,256,256]\n"),
    ],
    ids=["a crash", "out of memory", "with a list"],
)  # fmt: skip
def test_what_could_not_be_measured_says_what_was_being_done(error, status, largest):
    """It has no time, baseline or culprit, and no way to accept it; the largest buffer where the compiler gave a list."""
    assert explain(judge_invalid(CASE, error), test=TEST) == (
        f"{status}  scan/rnn\n"
        "  found     tracing the subject: expected a float\n"
        f"{largest}"
        "  next      reproduce: pytest 'perf/test_scan.py::test_scan[rnn]'"
    )


@pytest.mark.parametrize(
    ("red", "offered"),
    [
        (judged(measurement(facts={"xla_bytes": None}), record()), True),
        (judged(known=record(), claims=(claim("output_bytes <= 0"),)), False),
    ],
    ids=["a metric that vanished", "a broken claim"],
)
def test_only_what_can_be_accepted_says_how(red, offered):
    """Recording again mends a metric that is gone for good; --perf-update refuses to record a broken claim."""
    next_row = rows(red)[1]["next"]
    assert next_row.startswith("reproduce: pytest 'perf/test_scan.py::test_scan[rnn]'")
    assert ("--perf-update" in next_row) is offered


@pytest.mark.parametrize("test", ["perf/test_x.py::test[a'b]", "perf/my dir/test_x.py::test[$HOME]", TEST])
def test_the_command_can_be_pasted(test):
    """Whatever the test is called, the shell gives pytest its id as one word."""
    last = explain(judged(measurement(facts={"xla_bytes": 10**6}), record()), test=test).splitlines()[-1]
    command = last.partition("reproduce: ")[2].partition("   accept")[0]
    assert shlex.split(command) == ["pytest", test]


def test_the_command_compiles_the_same_again():
    """Target and size stand in no test; also of a case that was never compiled, and so has no hardware."""
    options = "--perf-size full --perf-target tpu:v5e:2x4"
    red = judged(measurement(facts={"xla_bytes": 10**6}), record())
    for made in (red, judge_invalid(CASE, InvalidCaseError("tracing", "no"))):
        last = explain(made, test=TEST, compiled_as=options).splitlines()[-1]
        assert last.partition("   accept")[0] == f"  next      reproduce: pytest {shlex.quote(TEST)} {options}"


@pytest.mark.parametrize(
    ("differences", "named"),
    [
        (tuple(f"flag{n} a → b" for n in range(6)), "flag0 a → b, flag1 a → b, flag2 a → b, flag3 a → b and 2 more"),
        ((), "nothing differs"),
    ],
)
def test_the_baseline_row_names_four_differences(differences, named):
    """Of many differences four are named and the rest counted; without one that is said."""
    origin = Origin(place="environment", differences=differences)
    made = verdict(Status.REGRESSED, described="abc of 2026-11-20", origin=origin)
    assert rows(made)[1]["baseline"] == f"abc of 2026-11-20; {named}"


def test_where_nothing_is_compared_no_cause_is_unknown():
    """Neither of a broken claim without a baseline nor of a case that could not be judged; what is known is told."""
    for status in (Status.REGRESSED, Status.INVALID, Status.NO_BASELINE, Status.STALE_BASELINE):
        assert "culprit" not in rows(verdict(status, described="", origin=None))[1]
    known = verdict(Status.STALE_BASELINE, origin=None, causes=(Cause(text="x64", explains=frozenset()),))
    assert rows(known)[1]["culprit"] == "x64"


@pytest.mark.parametrize(
    ("source", "place"),
    [
        ("s0", "JAX tracing and lowering"),
        (
            "s1",
            "not separable here (run again with the baseline's environment: pip install jax==0.10.2 jaxlib==0.10.2)",
        ),
    ],
)
def test_the_culprit_row_says_where_it_comes_from(source, place):
    """An unknown culprit is called so; causes that cannot be told apart come with the command that does it."""
    prints = replace(FINGERPRINTS, source=source, program="p1")
    now = measurement(facts={"temp_bytes": 10**6}, environment={**ENVIRONMENT, "jax": "0.12.0"}, fingerprints=prints)
    assert rows(judged(now, record()))[1]["culprit"] == f"cause unknown; comes from: {place}"


def test_time_that_was_not_taken_is_not_shown():
    row = rows(judged(measurement(samples=None, facts={"traces": 2}), record()))[1]
    assert row["time"] == "SAME: identical program"


DECISION = decision(ratio=1.2504, high=1.3016, sees=0.068, threshold=0.125)


def test_what_another_compiler_made_of_it_is_shown_with_what_was_recorded():
    """Three numbers where there are three: recorded, the baseline's program here, today."""
    recorded = replace(record().baseline.facts, temp_bytes=79_700_000)
    known = replace(record(facts={"temp_bytes": 13_600_000}), recorded=recorded)
    verdict = judged(measurement(facts={"temp_bytes": 16_800_000}), known)
    assert in_short(verdict) == (
        "6 claims hold · undecided: temp_bytes 16.8 MB against 13.6 MB = 1.24 ×, allowed 14.3 MB, recorded 79.7 MB · identical program"
    )


def test_what_the_compiler_alone_made_worse_is_the_environments():
    known = replace(record(facts={"xla_flops": 22_200}), recorded=replace(record().baseline.facts, xla_flops=19_000))
    verdict = judged(measurement(facts={"xla_flops": 22_200}), known)
    assert in_short(verdict) == (
        "6 claims hold · undecided: the baseline's own program has xla_flops 22.2 kFLOP here against 19 kFLOP recorded "
        "= 1.17 ×, allowed 19.3 kFLOP · identical program"
    )


def duelled(decision, confirmed=()):
    """A verdict whose time was settled by a duel."""
    numbers = {"now": decision.now_ns, "against": decision.baseline_ns, "allowed": 2060.0}
    found = Finding(kind="time", name="run_ns", status=decision.status, detail=decision.reason, **numbers)
    time = TimeVerdict(status=decision.status, reason=decision.reason, decision=decision, confirmed=confirmed)
    return verdict(decision.status, found, *CLAIMS, time=time, described="abc", origin=Origin(place="code"))


def test_a_slow_down_is_explained():
    """Both times and their ratio; then ratio, interval, pairs, margin, and what would have been seen."""
    first, row = rows(duelled(DECISION, confirmed=(1.24, 1.2616)))
    assert first == "SLOWER  scan/rnn  on cpu-amd-epyc-1"
    assert list(row) == LABELS
    assert row["found"] == "a call takes 2.5 µs against 2 µs = 1.25 ×, allowed 2.06 µs"
    seen = "detectable slow-down 6.8% (asked for 12.5%)"
    assert row["time"].startswith(f"SLOWER: 1.250 × [1.200, 1.302], n=20, margin 3.0%; {seen}")
    assert row["time"].endswith("20 of 20 pairs were more than 3.0% slower; in fresh processes 1.240 ×, 1.262 ×")
    assert "fresh" not in rows(duelled(DECISION))[1]["time"]  # not yet confirmed
    assert row["culprit"] == "cause unknown; comes from: code"
    assert row["next"].endswith("accept: add --perf-update")


@pytest.mark.parametrize(
    ("status", "ratio", "reason", "text"),
    [
        (Status.SAME, 1.004, "detectable slow-down 6.8%", "1.00 × the baseline, detectable slow-down 6.8%"),
        (Status.UNDECIDED, 1.04, "detectable slow-down 20%", "1.04 × the baseline, detectable slow-down 20%"),
        # a win can be kept: otherwise the next change may give it away unseen
        (Status.FASTER, 0.8, "20 of 20", "refresh with --perf-update · 0.80 × the baseline, 20 of 20"),
    ],
)
def test_a_duel_in_short(status, ratio, reason, text):
    """The ratio and what the duel could have seen; a slow-down with its numbers."""
    assert in_short(duelled(replace(DECISION, status=status, ratio=ratio, reason=reason))) == f"4 claims hold · {text}"
    assert in_short(duelled(DECISION)) == "a call takes 2.5 µs against 2 µs = 1.25 ×, allowed 2.06 µs"


@pytest.mark.parametrize(
    ("finding", "text"),
    [
        (Finding(kind="case", name="running", status=Status.INVALID, detail="found NaN"), "running: found NaN"),
        (Finding(kind="baseline", name="none", status=Status.NO_BASELINE, detail="There is none."), "There is none."),
        (fact("traces", Status.REGRESSED, 2, 1, allowed=1), "traces 2 against 1 = 2.00 ×, allowed 1"),
        (fact("kernels", Status.REGRESSED, 600, 167, allowed=417.5), "kernels 600 against 167 = 3.59 ×, allowed 417"),
        (fact("batch", Status.REGRESSED, 3, 10, allowed=8.5), "batch 3 against 10 = 0.30 ×, at least 9"),
    ],
)
def test_a_finding_as_a_phrase(finding, text):
    """Numbers where there are some, else the name of what was checked and the detail."""
    assert describe_finding(finding) == text


CLAIMS = tuple(
    Finding(kind="claim", name=f"{name} = 0", status=Status.SAME, now=0, against=0, allowed=0)
    for name in ("traces", "compiles", "sampled_traces", "sampled_compiles")
)


def test_what_holds_says_how_far_it_is_from_breaking():
    """The case's own claims, where somebody asks; those of every case say nothing by their numbers."""
    numbers = {"now": 618, "against": 76, "allowed": 304}
    own = Finding(kind="claim", name="stablehlo_ops ≥ 4 × reference", status=Status.SAME, detail="why", **numbers)
    found = details(factories.verdict(findings=(own, *CLAIMS)))
    assert found == ["holds: claim stablehlo_ops ≥ 4 × reference: 618 against 76 = 8.13 × (why)"]


LOST = fact("temp_bytes", Status.REGRESSED, 40_000, 20_000, allowed=25_096)
TRACE = {"now": 622e6, "against": 230.6e6, "allowed": 560e6, "detail": "it was not confirmed"}
SLOW_TRACE = Finding(kind="phase", name="trace_ns", status=Status.UNDECIDED, **TRACE)
NONE = Finding(kind="baseline", name="no baseline", status=Status.NO_BASELINE, detail="No baseline for `scan/rnn`.")


HALF, NOTHING = fact("temp_bytes", Status.IMPROVED, 10_000, 20_000), fact("aliased_bytes", Status.IMPROVED, 16384, 0)
MORE = replace(NONE, status=Status.STALE_BASELINE, detail="1 array more")
OPEN = TimeVerdict(status=Status.UNDECIDED, reason="inputs changed")
REFRESH = "refresh with --perf-update · identical program"
IN_SHORT = {
    "same": (verdict(Status.SAME, *CLAIMS), "4 claims hold · identical program"),
    "undecided": (verdict(Status.UNDECIDED, *CLAIMS, time=OPEN), "4 claims hold · inputs changed"),
    "a phase is undecided": (
        verdict(Status.UNDECIDED, SLOW_TRACE, *CLAIMS),
        "4 claims hold · undecided: trace_ns 622 ms against 231 ms = 2.70 ×, allowed 560 ms "
        "(it was not confirmed) · identical program",
    ),
    "improved": (verdict(Status.IMPROVED, HALF, *CLAIMS), f"4 claims hold · improved: temp_bytes 0.50 × · {REFRESH}"),
    "improved from nothing": (
        verdict(Status.IMPROVED, NOTHING, HALF),
        f"0 claims hold · improved: aliased_bytes, temp_bytes 0.50 × · {REFRESH}",
    ),
    "regressed": (verdict(Status.REGRESSED, LOST, *CLAIMS), "temp_bytes 40 kB against 20 kB = 2.00 ×, allowed 25.1 kB"),
    "no baseline": (verdict(Status.NO_BASELINE, NONE, *CLAIMS), "4 claims hold · no baseline on this hardware"),
    "created": (verdict(Status.SAME, NONE, *CLAIMS, recorded="created"), "4 claims hold"),
    "stale": (verdict(Status.STALE_BASELINE, MORE, *CLAIMS), "1 array more"),
}


@pytest.mark.parametrize(("made", "text"), IN_SHORT.values(), ids=IN_SHORT)
def test_a_verdict_in_short(made, text):
    """The reason in a few words: what holds, what improved, or what is wrong."""
    assert in_short(made) == text


MANY = [
    verdict(Status.SAME, *CLAIMS),
    verdict(Status.REGRESSED, LOST, *CLAIMS, case="remat/transformer-8", run_ns=12_340_000.0),
    verdict(Status.NO_BASELINE, NONE, *CLAIMS, case="vmap/mlp", run_ns=None),
    verdict(Status.IMPROVED, *CLAIMS, case="a/b", recorded="refreshed"),
]


def test_the_summary_is_aligned():
    """One line per case, in order: word, case, time and reason each begin in one column, the time to the right."""
    lines = summary(MANY, width=None)
    assert [status for status, _, _ in lines] == ["SAME", "REGRESSED", "NO_BASELINE", "IMPROVED"]
    assert [word + rest for _, word, rest in lines] == [
        "SAME         scan/rnn              1.5 µs  4 claims hold · identical program",
        "REGRESSED    remat/transformer-8  12.3 ms  temp_bytes 40 kB against 20 kB = 2.00 ×, allowed 25.1 kB",
        "NO_BASELINE  vmap/mlp                      4 claims hold · no baseline on this hardware",
        "REFRESHED    a/b                   1.5 µs  4 claims hold · identical program",
    ]
    assert {len(word) for _, word, _ in lines} == {11}


ELSEWHERE = ("hardware cpu-a-1 → cpu-b-1", "flax 0.12.8 → 0.12.12", "jax 0.10.2 → 0.12.0")


def undecided(*differences, changed=""):
    """A case whose line names differences of its environment."""
    reason = f"environment and hardware changed{changed} and no duel was run"
    time = TimeVerdict(status=Status.UNDECIDED, reason=reason)
    return verdict(Status.UNDECIDED, time=time, origin=Origin(place="environment", differences=differences))


def test_what_differs_for_all_cases_is_not_in_each_line():
    """It is said once, above them; what differs for one alone stays in its line."""
    own = (*ELSEWHERE[1:], "jax_enable_x64 False → True")
    first = undecided("program changed", *ELSEWHERE, changed=" [flax 0.12.8 → 0.12.12, jax 0.10.2 → 0.12.0]")
    second = undecided(*own, changed=" [jax_enable_x64 False → True, flax 0.12.8 → 0.12.12 and 1 more]")
    assert shared_differences([first, second, verdict(Status.INVALID, origin=None)]) == ELSEWHERE[1:]
    lines = [rest for _, _, rest in summary([first, second], width=None)]
    assert lines[0].endswith("environment and hardware changed and no duel was run")
    assert lines[1].endswith("environment and hardware changed [jax_enable_x64 False → True] and no duel was run")


def test_of_a_single_case_all_stays_in_its_line():
    """There is nothing to share, and of several that differ otherwise neither."""
    one = undecided(*ELSEWHERE, changed=" [flax 0.12.8 → 0.12.12, jax 0.10.2 → 0.12.0]")
    assert shared_differences([one]) == ()
    assert shared_differences([one, undecided()]) == ()
    assert "[flax 0.12.8" in summary([one], width=None)[0][2]


def printed(verdicts, width):
    """The lines as they stand in a terminal."""
    return [word + rest for _, word, rest in summary(verdicts, width=width)]


@pytest.mark.parametrize("width", [90, 72, 70, 56, 40, 39, 20, 12])  # the first line has 70 columns
def test_calm_lines_are_cut_to_the_width(width):
    """One that was cut ends with an ellipsis, one that fits is left alone; below 40 columns nothing is wrapped."""
    calm = [MANY[0], replace(MANY[0], case="scan/longer")]
    for before, after in zip(printed(calm, None), printed(calm, width), strict=True):
        assert after == (before if len(before) <= width else before[: width - 1].rstrip(" ·") + "…")
    assert width >= 40 or not any("\n" in line for line in printed(MANY, width))


@pytest.mark.parametrize("width", [90, 72, 57, 40])
def test_what_is_not_calm_is_whole(width):
    """It goes on below, indented, in as many columns; every word of it is there."""
    before, after = printed(MANY, None)[1], printed(MANY, width)[1]
    first, *more = after.split("\n")
    assert first.startswith("REGRESSED    remat/transformer-8  12.3")
    assert all(len(line) <= width for line in (first, *more))
    assert all(line.startswith("      ") for line in more)
    assert after.split() == before.split()


def test_a_ratio_keeps_its_sign():
    wrapped = [line.strip() for width in range(40, 140) for line in printed(MANY, width)[1].split("\n")]
    assert any("×" in line for line in wrapped)
    assert not any(line.startswith("×") for line in wrapped)


def test_rates_are_left_out_before_anything_is_cut():
    """What was decided is worth more columns than how many tokens that makes a second."""
    long = changed_verdict(MANY[0], amount=Amount(count=64, unit="tokens"))
    (whole,) = printed([long], None)
    assert "42.7 M tokens/s" in whole
    assert printed([long], len(whole)) == [whole]
    (short,) = printed([long], len(whole) - 1)
    assert short.endswith("4 claims hold · identical program")
    assert "tokens" not in short


@pytest.mark.parametrize("width", [11, 8, 1])
def test_a_terminal_narrower_than_the_words(width):
    """Where nothing but the word has room, nothing follows it."""
    assert [rest.strip(" …") for _, _, rest in summary(MANY, width=width)] == ["", "", "", ""]


def test_a_summary_of_nothing_is_empty():
    assert summary([], width=80) == []


@pytest.mark.parametrize(
    ("statuses", "text"),
    [
        ([Status.SAME], "1 case: 1 SAME"),
        ([Status.REGRESSED, Status.SAME, Status.SAME], "3 cases: 2 SAME, 1 REGRESSED"),
        (
            list(reversed(Status)),
            "12 cases: 1 SAME, 1 FASTER, 1 IMPROVED, 1 EXPECTED, 1 UNDECIDED, 1 WAIVED, 1 NO_BASELINE, 1 STALE_BASELINE, "
            "1 SLOWER, 1 REGRESSED, 1 INVALID, 1 RESOURCE_EXHAUSTED",
        ),
    ],
)
def test_the_count(statuses, text):
    """How many cases have each status, the worst last, none of them left out."""
    assert count([verdict(status) for status in statuses]) == text


def test_a_slow_down_beside_a_regression_says_that_it_was_not_repeated():
    """A case that is red by its facts is not run again; its time is shown as what it is, unconfirmed."""
    now = measurement(facts={"temp_bytes": 90_000}, fingerprints=replace(FINGERPRINTS, program="p1"))
    red = judged(now, record(), decision=DECISION)
    assert red.status is Status.REGRESSED
    assert "not repeated in fresh processes, the case is red without it" in explain(red, test="t.py::t")
