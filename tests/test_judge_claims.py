"""Claims: what must hold on any hardware; what cannot be checked is invalid, what can never break is refused."""

from __future__ import annotations

import pytest
from factories import SIGNATURE, baseline, measurement, reference

from jaxgate.judge.claims import check_claims, universal_claims
from jaxgate.model import Claim, Culprits, Status, at_least, at_most, equal

UNIVERSAL = ("traces", "compiles", "sampled_traces", "sampled_compiles")


def check(claim, now, before=None):
    """The finding of one claim; those of every case come first and must hold."""
    *universal, found = check_claims((claim,), now, before)
    assert [f.status for f in universal] == [Status.SAME] * 4
    return found


@pytest.mark.parametrize(
    ("claim", "formula"),
    [
        (at_most(0.5, "compile_ns"), "compile_ns ≤ 0.5 × reference"),
        (at_most(1.0, "temp_bytes"), "temp_bytes ≤ reference"),
        (at_least(2, "matmul_flops"), "matmul_flops ≥ 2 × reference"),
        (at_least(1, "aliased_bytes", of="donated_bytes"), "aliased_bytes ≥ donated_bytes"),
        (at_most(1.1, "xla_flops", of="analytic_flops"), "xla_flops ≤ 1.1 × analytic_flops"),
        (equal("matmul_flops", to="analytic_flops"), "matmul_flops = analytic_flops"),
        (equal("host_callbacks", to=0), "host_callbacks = 0"),
        (at_most(4096, "constant_bytes", of="one"), "constant_bytes ≤ 4096"),
    ],
)
def test_a_claim_reads_as_a_formula(claim, formula):
    """The name of a claim in a report is its formula."""
    assert str(claim) == formula
    reads = measurement(reference=reference(), analytic_flops=1_000_000)
    assert check(claim, reads).name == formula


@pytest.mark.parametrize(
    ("claim", "now", "status"),
    [
        (at_most(0.5, "temp_bytes"), 10_000, Status.SAME),
        (at_most(0.5, "temp_bytes"), 10_001, Status.REGRESSED),
        (at_most(0.5, "temp_bytes"), 0, Status.SAME),
        (at_least(2.0, "temp_bytes"), 40_000, Status.SAME),
        (at_least(2.0, "temp_bytes"), 39_999, Status.REGRESSED),
        (at_least(2.0, "temp_bytes"), 50_000, Status.SAME),
        (equal("temp_bytes", to="reference"), 20_000, Status.SAME),
        (equal("temp_bytes", to="reference"), 20_001, Status.REGRESSED),
        (equal("temp_bytes", to="reference"), 19_999, Status.REGRESSED),
        (at_most(0.29, "temp_bytes"), 5_800, Status.SAME),  # 0.29 of 20000 is 5799.999… in binary
        (at_most(0.29, "temp_bytes"), 5_801, Status.REGRESSED),
    ],
)
def test_a_claim_against_the_reference(claim, now, status):
    """The subject is held against the same quantity of the reference, 20000 bytes, times the factor."""
    found = check(claim, measurement(facts={"temp_bytes": now}, reference=reference()))
    assert (found.kind, found.status, found.now, found.against) == ("claim", status, now, 20_000)


@pytest.mark.parametrize(
    ("claim", "status", "now", "against", "allowed"),
    [
        (at_most(16_388, "output_bytes", of="one"), Status.SAME, 16_388, 16_388, 16_388),
        (at_most(16_387, "output_bytes", of="one"), Status.REGRESSED, 16_388, 16_387, 16_387),
        (at_least(1, "donated_bytes", of="one"), Status.SAME, 16_384, 1, 1),
        (equal("host_callbacks", to=0), Status.SAME, 0, 0, 0),
        (equal("constant_bytes", to=1), Status.REGRESSED, 0, 1, 1),
        (equal("aliased_bytes", to="donated_bytes"), Status.SAME, 16_384, 16_384, 16_384),
        (equal("output_bytes", to="aliased_bytes"), Status.REGRESSED, 16_388, 16_384, 16_384),
        (at_most(2, "output_bytes", of="aliased_bytes"), Status.SAME, 16_388, 16_384, 32_768),
        (equal("matmul_flops", to="analytic_flops"), Status.SAME, 1_000_000, 1_000_000, 1_000_000),
        (at_most(1.0, "xla_flops", of="analytic_flops"), Status.REGRESSED, 1_100_000, 1_000_000, 1_000_000),
        # arguments 18432 + outputs 16388 + temporaries 20000 - aliased 16384
        (at_most(38_436, "peak_bytes", of="one"), Status.SAME, 38_436, 38_436, 38_436),
        (at_most(38_435, "peak_bytes", of="one"), Status.REGRESSED, 38_436, 38_435, 38_435),
    ],
)
def test_a_claim_against_numbers(claim, status, now, against, allowed):
    """A plain number, another quantity of the subject, a closed formula, a derived number: each is found."""
    found = check(claim, measurement(analytic_flops=1_000_000))
    assert (found.status, found.now, found.against, found.allowed) == (status, now, against, allowed)


@pytest.mark.parametrize(
    ("claim", "status", "now", "against"),
    [
        (at_most(0.5, "compile_ns"), Status.SAME, 50_000_000, 100_000_000),
        (at_most(0.4, "compile_ns"), Status.REGRESSED, 50_000_000, 100_000_000),
        (at_most(0.7, "peak_bytes"), Status.SAME, 38_436, 58_436),
        (at_most(0.6, "peak_bytes"), Status.REGRESSED, 38_436, 58_436),
    ],
)
def test_a_claim_about_phases_and_derived_numbers(claim, status, now, against):
    """Phases and the footprint are found on both sides."""
    known = reference(facts={"temp_bytes": 40_000}, phases={"compile_ns": 100_000_000})
    found = check(claim, measurement(reference=known))
    assert (found.status, found.now, found.against) == (status, now, against)


def test_equality_of_counts_is_exact():
    """One FLOP more than the closed formula is a difference, however large the numbers."""
    large = 50_000_000_000
    claim = equal("matmul_flops", to="analytic_flops")
    assert check(claim, measurement(facts={"matmul_flops": large}, analytic_flops=large)).status is Status.SAME
    found = check(claim, measurement(facts={"matmul_flops": large + 1}, analytic_flops=large))
    assert found.status is Status.REGRESSED


def test_why_a_claim_is_made_goes_with_it():
    """The author's half-sentence is in the finding."""
    claim = at_most(0, "output_bytes", of="one", why="nothing comes back")
    assert check(claim, measurement()).detail == "nothing comes back"


@pytest.mark.parametrize(
    ("claim", "facts", "known", "missing"),
    [
        (at_most(0.5, "temp_bytes"), {}, None, "reference"),
        (at_least(0.0, "temp_bytes"), {}, None, "reference"),
        (at_most(1.0, "temp_bytes"), {}, reference(facts={"temp_bytes": None}), "reference"),
        (at_most(1.0, "compile_ns"), {}, reference(phases={"compile_ns": None}), "reference"),
        (at_most(1.0, "peak_bytes"), {}, reference(facts={"aliased_bytes": None}), "reference"),
        (at_most(1.0, "traces"), {}, reference(), "reference"),
        (at_most(1.0, "temp_bytes"), {"temp_bytes": None}, reference(), "temp_bytes"),
        (at_most(1e9, "temp_bytes", of="one"), {"temp_bytes": None}, None, "temp_bytes"),
        (at_most(1e9, "peak_bytes", of="one"), {"output_bytes": None}, None, "peak_bytes"),
        (equal("host_callbacks", to=0), {"host_callbacks": None}, None, "host_callbacks"),
        (
            equal("aliased_bytes", to="donated_bytes"),
            {"aliased_bytes": None, "donated_bytes": None},
            None,
            "aliased_bytes",
        ),
        (equal("aliased_bytes", to="donated_bytes"), {"donated_bytes": None}, None, "donated_bytes"),
        (equal("matmul_flops", to="analytic_flops"), {}, None, "analytic_flops"),
    ],
)
def test_what_cannot_be_checked_is_invalid(claim, facts, known, missing):
    """An unknown number on either side never passes, and is named."""
    found = check(claim, measurement(facts=facts, reference=known))
    assert (found.status, found.against) == (Status.INVALID, None)
    assert found.detail.startswith("cannot be checked: ")
    assert missing in found.detail


def test_a_case_without_reference_is_not_blamed_on_the_backend():
    """A claim about a reference that was never given says that, so that the author knows what to add."""
    found = check(at_most(0.5, "temp_bytes"), measurement())
    assert "reference" in found.detail
    assert "backend" not in found.detail


@pytest.mark.parametrize(
    ("quantity", "other"),
    [
        ("tmp_bytes", "reference"),
        ("temp_bytes", "refrence"),
        ("analytic_flops", "reference"),
        ("reference", "one"),
        ("one", "one"),
        ("run_time", "reference"),
        ("", "reference"),
    ],
)
def test_an_unknown_quantity_is_refused_when_the_claim_is_made(quantity, other):
    """A misspelt quantity stops the author, not the first reader of a green report."""
    with pytest.raises(ValueError, match="cannot be checked") as caught:
        at_most(1.0, quantity, of=other)
    message = str(caught.value)
    assert f"a claim about {quantity!r} against {other!r}" in message
    assert "expected one of: " in message
    assert "temp_bytes" in message


@pytest.mark.parametrize(
    ("claim", "because"),
    [
        (lambda: at_most(float("inf"), "temp_bytes"), "no number is above infinity"),
        (lambda: at_least(float("-inf"), "temp_bytes"), "no number is below minus infinity"),
        (lambda: equal("temp_bytes", to="temp_bytes"), "a number equals itself"),
        (lambda: at_most(1.0, "temp_bytes", of="temp_bytes"), "a number is at most itself"),
        (lambda: at_most(float("nan"), "temp_bytes"), "nothing compares with NaN"),
        (lambda: Claim(quantity="temp_bytes", relation="<"), "a relation that is not one of the three"),
    ],
    ids=["inf", "-inf", "itself", "at most itself", "nan", "relation"],
)
def test_a_claim_that_says_nothing_is_refused(claim, because):
    """A claim that can never break, or never hold, is refused when it is made."""
    with pytest.raises(ValueError):  # noqa: PT011 - the wording is free
        pytest.fail(f"{claim()!r} was accepted: {because}")


def test_the_claims_of_every_case():
    """One trace, one compile, silence in the steady state: checked for each case, first, and beside its own."""
    findings = list(check_claims((equal("host_callbacks", to=0),), measurement(), None))
    assert [(f.name, f.status) for f in findings] == [
        ("traces = 1", Status.SAME),
        ("compiles = 1", Status.SAME),
        ("sampled_traces = 0", Status.SAME),
        ("sampled_compiles = 0", Status.SAME),
        ("host_callbacks = 0", Status.SAME),
    ]
    assert [claim.quantity for claim in universal_claims(measurement())] == list(UNIVERSAL)


@pytest.mark.parametrize(
    ("name", "value", "expected_traces", "allowed"),
    [
        ("traces", 2, 1, 1),
        ("traces", 0, 1, 1),
        ("traces", 1, 2, 2),
        ("traces", 3, 2, 2),
        ("compiles", 2, 1, 1),
        ("compiles", 1, 2, 2),
        ("sampled_traces", 1, 1, 0),
        ("sampled_compiles", 1, 1, 0),
        ("sampled_traces", 1, 2, 0),
    ],
)
def test_a_case_that_traces_otherwise_than_expected_is_red(name, value, expected_traces, allowed):
    """More or fewer traces than the case states break a claim, with no baseline needed."""
    facts = {"traces": expected_traces, "compiles": expected_traces} | {name: value}
    found = list(check_claims((), measurement(facts=facts, expected_traces=expected_traces), None))
    (broken,) = [f for f in found if f.status is not Status.SAME]
    assert (broken.name, broken.status) == (f"{name} = {allowed}", Status.REGRESSED)
    assert (broken.now, broken.against, broken.allowed) == (value, allowed, allowed)


def test_a_case_may_state_that_it_traces_twice():
    """Two traces are green where the case expects two."""
    found = check_claims((), measurement(facts={"traces": 2, "compiles": 2}, expected_traces=2), None)
    assert {f.status for f in found} == {Status.SAME}


@pytest.mark.parametrize("name", UNIVERSAL)
def test_unknown_counters_are_invalid(name):
    """A case whose traces were not counted is not green."""
    found = {f.name.split(" ")[0]: f for f in check_claims((), measurement(facts={name: None}), None)}
    assert found[name].status is Status.INVALID
    assert f"{name} is unknown" in found[name].detail
    assert [found[other].status for other in UNIVERSAL if other != name] == [Status.SAME] * 3


def test_a_broken_claim_names_the_retrace():
    """The argument that caused the retrace is the culprit, also without a baseline."""
    line = "batch: float32[8,64] → float32[7,64]"
    found = list(check_claims((), measurement(facts={"traces": 2}, culprits=Culprits(retraces=(line,))), None))
    assert [f.culprit for f in found] == [line, "", "", ""]


@pytest.mark.parametrize(
    ("before", "culprit"),
    [
        (None, "most of the program: 96 × stablehlo.add at model.py:21"),
        (baseline(), "stablehlo.add 37 → 96 at model.py:21"),
    ],
    ids=["no baseline", "baseline"],
)
@pytest.mark.parametrize("quantity", ["compile_ns", "lower_ns", "trace_ns", "stablehlo_ops"])
def test_a_broken_claim_about_compile_time_names_an_operation(quantity, before, culprit):
    """With a baseline the operation that grew, without one the operation that makes up most of the program."""
    now = measurement(
        operations={"stablehlo.add": 96, "stablehlo.dot_general": 3},
        culprits=Culprits(operation_lines={"stablehlo.add": "model.py:21"}),
        reference=reference(facts={"stablehlo_ops": 10}),
    )
    found = check(at_most(0.1, quantity), now, before)
    assert (found.status, found.culprit) == (Status.REGRESSED, culprit)


def test_a_line_that_is_unknown_is_not_invented():
    """The heaviest operation is named also where its line is not known."""
    found = check(at_most(1, "compile_ns", of="one"), measurement())
    assert found.culprit == "most of the program: 37 × stablehlo.add at ?"


@pytest.mark.parametrize(
    ("signature", "culprit"),
    [
        (SIGNATURE, "donated but not all reused: state['w'] (16,384 bytes)"),
        (SIGNATURE[1:], "nothing is donated"),
    ],
    ids=["not reused", "not donated"],
)
def test_a_broken_claim_about_donation_names_the_arguments(signature, culprit):
    """Donation that is not used names what was donated; where nothing was, it says so."""
    now = measurement(facts={"aliased_bytes": 0}, signature=signature)
    found = check(at_least(1, "aliased_bytes", of="one"), now)
    assert (found.status, found.culprit) == (Status.REGRESSED, culprit)


def test_a_claim_that_holds_blames_nobody():
    """Culprits are for broken claims only."""
    found = check_claims((), measurement(culprits=Culprits(retraces=("a retrace",))), None)
    assert {f.culprit for f in found} == {""}
