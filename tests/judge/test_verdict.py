"""The verdict of a case: what decides it, what fails it, and that nothing missing is ever green under CI."""

from dataclasses import replace

import pytest
from support.factories import (
    CASE,
    ENVIRONMENT,
    FINGERPRINTS,
    HARDWARE,
    OTHER_CPU,
    PROVENANCE,
    SIGNATURE,
    decision,
    measurement,
    record,
)

from jaxgate.judge.difference import NO_SOURCE
from jaxgate.judge.policy import ARRIVAL_POLICIES, POLICIES
from jaxgate.judge.verdict import describe, judge, judge_invalid
from jaxgate.model.claim import claim
from jaxgate.model.decision import Status
from jaxgate.model.measurement import Argument, Culprits, ExhaustedError, InvalidCaseError
from jaxgate.model.numbers import Samples

HOLDS = claim("host_callbacks == 0")
BROKEN = claim("output_bytes <= 16_000", "it must stay small")
UNKNOWN = claim("temp_bytes <= reference")  # the measurement has no reference
STRICT = pytest.mark.parametrize("strict", [False, True], ids=["local", "strict"])


def verdict_of(now=None, known=None, *, claims=(), strict=True, **changes):
    """Judge today's measurement against a record; the healthy measurement by default."""
    return judge(CASE, claims, now or measurement(), known, strict=strict, **changes)


def rewritten(**changes):
    """A measurement of another program than the baseline's."""
    return measurement(fingerprints=replace(FINGERPRINTS, program="p1", source="s1"), **changes)


@STRICT
def test_identical_work_is_the_same(strict):
    """The first question: nothing differs, and time is the same by identity, with no clock asked."""
    verdict = verdict_of(measurement(), record(), claims=(HOLDS,), strict=strict)
    assert (verdict.case, verdict.hardware) == ("scan/rnn", HARDWARE)
    assert (verdict.status, verdict.fails) == (Status.SAME, False)
    assert {finding.status for finding in verdict.findings} == {Status.SAME}
    assert sum(finding.kind == "fact" for finding in verdict.findings) == len(POLICIES) + len(ARRIVAL_POLICIES)
    assert sum(finding.kind == "claim" for finding in verdict.findings) == 7
    assert (verdict.time.status, verdict.time.reason) == (Status.SAME, "identical program")
    assert (verdict.origin.place, verdict.origin.differences) == ("nothing changed", ())
    assert verdict.cost.run_ns == 1000.0  # bursts of 2000, 2200 and 1900 ns, two calls each
    assert verdict.baseline.recorded == ""


@STRICT
@pytest.mark.parametrize(
    ("facts", "status", "fails", "worst"),
    [
        ({"temp_bytes": 25_096}, Status.SAME, False, None),
        ({"temp_bytes": 25_097}, Status.REGRESSED, True, "temp_bytes"),
        ({"temp_bytes": 14_903}, Status.INVALID, True, "temp_bytes"),  # the same program: somebody edited the baseline
        ({"temp_bytes": 14_904}, Status.SAME, False, None),
        ({"matmul_flops": 1_000_001}, Status.REGRESSED, True, "matmul_flops"),
        ({"matmul_flops": 999_999}, Status.IMPROVED, False, "matmul_flops"),
        ({"aliased_bytes": 16_383}, Status.REGRESSED, True, "aliased_bytes"),
        ({"aliased_bytes": 16_385}, Status.INVALID, True, "aliased_bytes"),
        ({"donated_bytes": 16_385}, Status.IMPROVED, False, "donated_bytes"),
        ({"temp_bytes": None}, Status.INVALID, True, "temp_bytes"),
        ({"aliased_bytes": None}, Status.INVALID, True, "aliased_bytes"),
    ],
)
def test_one_planted_fact_decides(facts, status, fails, worst, strict):
    """The second question: a loss is red and a gain is reported, strict or not; a vanished metric is invalid."""
    verdict = verdict_of(measurement(facts=facts), record(), strict=strict)
    assert (verdict.status, verdict.fails) == (status, fails)
    if worst:
        assert (verdict.worst.name, verdict.worst.kind, verdict.worst.status) == (worst, "fact", status)


@STRICT
def test_another_program_without_a_duel_is_undecided(strict):
    """A changed program whose facts are the same is not called the same; it does not fail either."""
    now = measurement(fingerprints=replace(FINGERPRINTS, program="p1"))
    verdict = verdict_of(now, record(), strict=strict)
    assert (verdict.status, verdict.fails) == (Status.UNDECIDED, False)
    assert verdict.time.reason == f"program changed [{NO_SOURCE}] and no duel was run"
    assert verdict.origin.place == "options or values that the function's source does not have"


@pytest.mark.parametrize(("strict", "fails"), [(False, False), (True, True)], ids=["local", "strict"])
def test_no_baseline_fails_only_when_strict(strict, fails):
    """Without a baseline nothing is compared: a warning at home, red under CI; where other hardware has one, that is told."""
    verdict = verdict_of(claims=(HOLDS,), strict=strict)
    assert (verdict.status, verdict.fails) == (Status.NO_BASELINE, fails)
    assert (verdict.worst.kind, verdict.worst.name) == ("baseline", "no baseline")
    assert verdict.worst.detail == "No baseline for `scan/rnn` on `cpu-amd-epyc-1`."
    assert (verdict.time.status, verdict.time.reason) == (Status.NO_BASELINE, "nothing to compare with")
    assert (verdict.origin, verdict.baseline.described) == (None, "")
    assert [finding.kind for finding in verdict.findings] == ["baseline", *["claim"] * 7]
    elsewhere = verdict_of(elsewhere=("gpu-nvidia-h200-1", "tpu-v5e-4")).worst.detail
    assert elsewhere.endswith("on `cpu-amd-epyc-1`; there is one for `gpu-nvidia-h200-1`, `tpu-v5e-4`.")


W, BATCH = SIGNATURE
LARGER = (replace(W, aval="float32[65,64]", nbytes=16640), replace(BATCH, aval="float32[80,64]", nbytes=20480))
KEY = Argument(path="key", aval="uint32[2]", nbytes=8, donated=False)
STALE = {
    "dtype": ((replace(W, aval="bfloat16[64,64]"), BATCH), "state['w']: float32[64,64] then, bfloat16[64,64] now"),
    "shape": ((W, replace(BATCH, aval="float32[7,64]")), "batch: float32[8,64] then, float32[7,64] now"),
    "order": (SIGNATURE[::-1], "batch: float32[64,64] then, float32[8,64] now"),
    "fewer": (SIGNATURE[:1], "2 arrays then, 1 now: batch is gone"),
    "larger": (LARGER, "batch: float32[8,64] then, float32[80,64] now; and 1 more"),
    "more": ((*SIGNATURE, KEY), "2 arrays then, 3 now: key is new"),
    "none": ((), "2 arrays then, 0 now: batch is gone; state['w'] is gone"),
}


@pytest.mark.parametrize("change", STALE)
@pytest.mark.parametrize(("strict", "fails"), [(False, False), (True, True)], ids=["local", "strict"])
def test_a_stale_baseline_fails_only_when_strict(change, strict, fails):
    """Other shapes, types or numbers of arguments cannot be fed to the old program: nothing is compared."""
    signature, said = STALE[change]
    now = measurement(signature=signature, facts={"temp_bytes": 10**9})
    verdict = verdict_of(now, record(), strict=strict)
    assert (verdict.status, verdict.fails) == (Status.STALE_BASELINE, fails)
    assert (verdict.worst.kind, verdict.worst.name) == ("baseline", "stale baseline")
    assert verdict.worst.detail == f"the arguments changed since it was recorded ({said})"
    assert verdict.time.reason == "the old program takes other arguments"
    assert verdict.origin is None
    assert {finding.kind for finding in verdict.findings} == {"baseline", "claim"}
    assert verdict.baseline.described == "0123456789 of 2026-11-20 (jax 0.10.2, n=3)"


WIDE = tuple(replace(leaf, aval=leaf.aval.replace("32", "64"), nbytes=2 * leaf.nbytes) for leaf in SIGNATURE)


@pytest.mark.parametrize(
    ("signature", "name", "said"),
    [
        (WIDE, "jax_enable_x64", "recorded under other settings: jax_enable_x64 False → True"),
        ((*WIDE, WIDE[0]), "jax_enable_x64", "perhaps recorded under other settings: jax_enable_x64 False → True"),
        (WIDE, "jax_default_prng_impl", "recorded under other settings: jax_default_prng_impl False → True"),
        (WIDE, "jax_compilation_cache_dir", None),
        (WIDE, "python", None),
    ],
    ids=["x64", "and an argument more", "another generator", "a setting that makes no array", "no setting"],
)
def test_a_setting_is_the_cause_of_other_arguments(signature, name, said):
    """What the baseline was recorded under stands in it; a setting that acts while arrays are made is named."""
    known = record(environment=ENVIRONMENT | {name: "False"})
    verdict = verdict_of(measurement(signature=signature, environment=ENVIRONMENT | {name: "True"}), known)
    assert verdict.status is Status.STALE_BASELINE
    assert [str(cause) for cause in verdict.causes] == ([said] if said else [])


@pytest.mark.parametrize(
    "change", [{"path": "params['kernel']"}, {"nbytes": 1}, {"donated": False}], ids=["path", "nbytes", "donated"]
)
def test_a_renamed_argument_is_not_stale(change):
    """Names are for people: the old program still takes these arguments, so facts are compared."""
    now = measurement(signature=(replace(SIGNATURE[0], **change), SIGNATURE[1]), facts={"temp_bytes": 25_097})
    verdict = verdict_of(now, record())
    assert (verdict.status, verdict.worst.name) == (Status.REGRESSED, "temp_bytes")


@STRICT
@pytest.mark.parametrize(
    ("claim", "status"), [(BROKEN, Status.REGRESSED), (UNKNOWN, Status.INVALID)], ids=["broken", "unknown"]
)
@pytest.mark.parametrize(
    "known",
    [None, record(), record(signature=SIGNATURE[:1]), record(hardware=OTHER_CPU, borrowed=True)],
    ids=["no baseline", "baseline", "stale", "borrowed"],
)
def test_claims_gate_whatever_the_baseline(claim, status, known, strict):
    """A broken claim is red, one that cannot be checked is invalid: with a baseline or without, strict or not."""
    verdict = verdict_of(known=known, claims=(HOLDS, claim), strict=strict)
    assert (verdict.status, verdict.fails) == (status, True)
    assert (verdict.worst.kind, verdict.worst.name, verdict.worst.status) == ("claim", str(claim), status)


def test_claims_of_every_case_gate_without_own_ones():
    """A retrace is red in a case that claims nothing and has no baseline."""
    now = measurement(facts={"traces": 2}, culprits=Culprits(retraces=("batch: float32[8] → float32[7]",)))
    verdict = verdict_of(now, strict=False)
    assert (verdict.status, verdict.fails) == (Status.REGRESSED, True)
    assert verdict.worst.name == "traces = 1"
    assert str(verdict.causes[0]) == "batch: float32[8] → float32[7]"


def test_a_recorded_fault_stays_a_fault():
    """A baseline that was recorded with a broken claim does not make the claim hold."""
    facts = {"traces": 2}
    verdict = verdict_of(measurement(facts=facts), record(facts=facts))
    assert (verdict.status, verdict.fails, verdict.worst.kind) == (Status.REGRESSED, True, "claim")


def test_a_stale_baseline_does_not_name_culprits():
    """Growth against a program with other arguments says nothing about the broken claim."""
    stated = claim("matmul_flops <= 1")
    verdict = verdict_of(known=record(signature=SIGNATURE[:1], matmuls={"old": 1}), claims=(stated,))
    assert str(verdict.causes[0]) == "3 × float32[8,64] x float32[64,64]"


def test_other_arguments_are_the_first_guess_where_work_is_too_much():
    """A batch that grew explains work that a claim forbids better than the program's operations do, yet not surely."""
    stated = claim("xla_flops <= 1")
    verdict = verdict_of(known=record(signature=SIGNATURE[:1]), claims=(stated,))
    said = "perhaps the arguments changed since it was recorded (1 arrays then, 2 now: batch is new)"
    assert str(verdict.causes[0]) == said
    assert not [cause for cause in verdict_of(known=record(), claims=(stated,)).causes if "arguments" in str(cause)]


def test_the_worst_finding_comes_first():
    """Invalid before regressed before improved before the same."""
    facts = {"xla_flops": None, "temp_bytes": 10**6, "largest_batch": 1024, "traces": 2}
    verdict = verdict_of(measurement(facts=facts), record(), claims=(BROKEN, UNKNOWN))
    assert verdict.status is Status.INVALID
    assert [(finding.status, finding.kind, finding.name) for finding in verdict.findings[:7]] == [
        (Status.INVALID, "fact", "xla_flops"),
        (Status.INVALID, "claim", "temp_bytes ≤ reference"),
        (Status.REGRESSED, "fact", "traces"),
        (Status.REGRESSED, "fact", "temp_bytes"),
        (Status.REGRESSED, "claim", "traces = 1"),
        (Status.REGRESSED, "claim", "output_bytes ≤ 16000"),
        (Status.IMPROVED, "fact", "largest_batch"),
    ]
    assert {finding.status for finding in verdict.findings[7:]} == {Status.SAME}
    universal, own, phases = 6, 2, 1  # of an identical program only the trace is a phase to judge
    assert len(verdict.findings) == len(POLICIES) + len(ARRIVAL_POLICIES) + universal + own + phases


@pytest.mark.parametrize(
    ("changes", "allocations"),
    [
        ({"unknown": {"allocations": "it is not reported"}}, ("not known: it is not reported",)),
        ({}, ()),
        ({"culprits": Culprits(allocations=("768 kB",))}, ("768 kB",)),
    ],
)
def test_why_the_buffers_are_not_known_is_told(changes, allocations):
    """A list that was asked for and could not be had is not an empty one."""
    assert verdict_of(measurement(**changes)).evidence.allocations == allocations


@pytest.mark.parametrize(
    ("error", "status", "allocations"),
    [
        (InvalidCaseError("running the subject", "found NaN"), Status.INVALID, ()),
        (ExhaustedError("running the subject", "found NaN"), Status.RESOURCE_EXHAUSTED, ()),
        (ExhaustedError("running the subject", "found NaN", ("768 kB", "4 kB")), Status.RESOURCE_EXHAUSTED, ("768 kB", "4 kB")),
    ],
    ids=["a crash", "out of memory", "with a list"],
)  # fmt: skip
def test_a_case_that_could_not_be_measured_fails(error, status, allocations):
    """Whatever the settings; stage and reason are kept, and what takes the memory, where that ran out."""
    verdict = judge_invalid("scan/rnn", error)
    assert (verdict.case, verdict.status, verdict.fails, verdict.hardware) == ("scan/rnn", status, True, None)
    assert (verdict.cost.run_ns, verdict.evidence.allocations) == (None, allocations)
    (finding,) = verdict.findings
    assert (finding.kind, finding.status, finding.name) == ("case", status, "running the subject")
    assert finding.detail == "found NaN"
    assert (verdict.time.status, verdict.time.reason) == (Status.UNDECIDED, "not judged")


@pytest.mark.parametrize(("callbacks", "status"), [(0, Status.SAME), (1, Status.REGRESSED)])
def test_a_measurement_without_samples_is_judged_by_its_facts(callbacks, status):
    """With timing switched off facts still gate; no time is shown."""
    found = verdict_of(measurement(samples=None, facts={"host_callbacks": callbacks}), record())
    assert (found.status, found.fails, found.cost.run_ns) == (status, status is Status.REGRESSED, None)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "0123456789 of 2026-11-20 (jax 0.10.2, n=3)"),
        ({"provenance": replace(PROVENANCE, dirty=True)}, "0123456789+changes of 2026-11-20 (jax 0.10.2, n=3)"),
        ({"provenance": replace(PROVENANCE, commit=None)}, "2026-11-20, outside git (jax 0.10.2, n=3)"),
        ({"environment": {"python": "3.11"}}, "0123456789 of 2026-11-20 (jax ?, n=3)"),
        (
            {"samples": Samples(bursts_ns=(5, 5, 5, 5, 5), calls_per_burst=1), "environment": {"jax": "0.12.0"}},
            "0123456789 of 2026-11-20 (jax 0.12.0, n=5)",
        ),
    ],
    ids=["plain", "dirty", "outside git", "no jax", "other"],
)
def test_a_baseline_is_described_in_a_line(changes, expected):
    """Commit, whether it was clean, date, jax and number of samples."""
    assert describe(record(**changes)) == expected
    assert verdict_of(known=record(**changes)).baseline.described == expected


def test_a_borrowed_baseline_is_described_as_such():
    """Numbers of another machine are never taken for this machine's: said in the line, placed, no identity."""
    verdict = verdict_of(known=record(hardware=OTHER_CPU, borrowed=True))
    where = "borrowed from cpu-intel-xeon-1-jax-0.10"
    assert verdict.baseline.described == f"0123456789 of 2026-11-20 (jax 0.10.2, n=3, {where})"
    assert (verdict.hardware, verdict.origin.place) == (HARDWARE, "environment")
    assert verdict.origin.differences == ("hardware cpu-intel-xeon-1 → cpu-amd-epyc-1",)
    assert (verdict.time.status, verdict.time.reason) == (Status.UNDECIDED, "hardware changed and no duel was run")
    assert (verdict.status, verdict.fails) == (Status.UNDECIDED, False)


@STRICT
@pytest.mark.parametrize(
    ("status", "fails"),
    [(Status.SLOWER, True), (Status.SAME, False), (Status.FASTER, False), (Status.UNDECIDED, False)],
)
def test_the_duel_of_a_changed_program_decides(status, fails, strict):
    """With all facts the same, time is the verdict: a slow-down is red, a speed-up and a doubt are not."""
    verdict = verdict_of(rewritten(), record(), strict=strict, decision=decision(status, reason="the reason"))
    assert (verdict.status, verdict.fails, verdict.time.status) == (status, fails, status)
    (found,) = [finding for finding in verdict.findings if finding.kind == "time"]
    assert (found.name, found.status, found.detail) == ("run_ns", status, "the reason")
    assert (found.now, found.against, found.allowed) == (2500.0, 2000.0, 2060.0)
    assert verdict.time.decision == decision(status, reason="the reason")


def test_facts_outrank_time():
    """A regressed fact decides over a slow-down; neither a speed-up nor a doubt makes up for it."""
    now = rewritten(facts={"matmul_flops": 2_000_000})
    slower = verdict_of(now, record(), decision=decision(Status.SLOWER))
    assert [finding.name for finding in slower.findings[:2]] == ["matmul_flops", "run_ns"]
    assert (slower.status, slower.fails) == (Status.REGRESSED, True)
    faster = verdict_of(now, record(), decision=decision(Status.FASTER))
    assert (faster.status, faster.fails) == (Status.REGRESSED, True)
    open_time = verdict_of(now, record())
    assert (open_time.status, open_time.time.status) == (Status.REGRESSED, Status.UNDECIDED)


def test_a_slow_down_names_what_grew():
    """A slower program whose facts stay within their tolerances still has a first suspect."""
    now = rewritten(operations={"stablehlo.add 8x64xf32": 50}, facts={"stablehlo_ops": 53})
    verdict = verdict_of(now, record(), decision=decision(Status.SLOWER))
    assert verdict.worst.kind == "time"
    assert str(verdict.causes[0]).startswith("perhaps stablehlo.add 8x64xf32 37 → 50")


@pytest.mark.parametrize("known", [None, record(signature=SIGNATURE[:1])], ids=["no baseline", "stale"])
def test_a_duel_cannot_stand_in_for_a_baseline(known):
    """Without a comparable baseline the verdict says so, whatever else was timed."""
    verdict = verdict_of(rewritten(), known, decision=decision(Status.SAME))
    assert verdict.status in {Status.NO_BASELINE, Status.STALE_BASELINE}
    assert verdict.fails
    assert "time" not in {finding.kind for finding in verdict.findings}
