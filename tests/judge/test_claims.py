"""Claims: what must hold on any hardware; what cannot be checked is invalid, what can never break is refused."""

import pytest
from support.factories import HARDWARE, measurement, reference

from jaxgate.judge.claims import check_claims, universal_claims
from jaxgate.model.claim import Claim, claim
from jaxgate.model.decision import Status
from jaxgate.model.machine import HardwareKey
from jaxgate.model.workload import Tolerance

UNIVERSAL = ("traces", "lowerings", "compiles", "sampled_traces", "sampled_compiles", "lost_bytes")
"""Of a case that donates; without donation nothing can be lost."""


def check(claim, now):
    """The finding of one claim; those of every case come first and must hold."""
    *universal, found = check_claims((claim,), now)
    donates = bool(now.facts.donated_bytes)
    assert [f.status for f in universal] == [Status.SAME] * (5 + donates)
    return found


@pytest.mark.parametrize(
    ("formula", "status", "now", "against", "allowed"),
    [
        ("output_bytes <= 16_388", Status.SAME, 16_388, 16_388, 16_388),
        ("output_bytes <= 16_387", Status.REGRESSED, 16_388, 16_387, 16_387),
        ("donated_bytes >= 1", Status.SAME, 16_384, 1, 1),
        ("host_callbacks == 0", Status.SAME, 0, 0, 0),
        ("constant_bytes == 1", Status.REGRESSED, 0, 1, 1),
        ("aliased_bytes == donated_bytes", Status.SAME, 16_384, 16_384, 16_384),
        ("output_bytes == aliased_bytes", Status.REGRESSED, 16_388, 16_384, 16_384),
        ("output_bytes <= 2 * aliased_bytes", Status.SAME, 16_388, 16_384, 32_768),
        ("matmul_flops == analytic_flops", Status.SAME, 1_000_000, 1_000_000, 1_000_000),
        ("xla_flops <= analytic_flops", Status.REGRESSED, 1_100_000, 1_000_000, 1_000_000),
        # arguments 18432 + outputs 16388 + temporaries 20000 - aliased 16384; and without the temporaries
        ("peak_bytes <= 38_436", Status.SAME, 38_436, 38_436, 38_436),
        ("peak_bytes <= 38_435", Status.REGRESSED, 38_436, 38_435, 38_435),
        ("state_bytes <= 18_436", Status.SAME, 18_436, 18_436, 18_436),
        ("state_bytes <= 18_435", Status.REGRESSED, 18_436, 18_435, 18_435),
        # of the reference: 100 ms to compile, 40,000 bytes of temporaries, and a peak of 20,000 bytes more
        ("compile_ns <= 0.5 * reference", Status.SAME, 50_000_000, 100_000_000, 50_000_000),
        ("compile_ns <= 0.25 * reference", Status.REGRESSED, 50_000_000, 100_000_000, 25_000_000),
        ("peak_bytes <= 0.75 * reference", Status.SAME, 38_436, 58_436, 43_827),
        ("temp_bytes <= 0.5 * reference", Status.SAME, 20_000, 40_000, 20_000),
        ("temp_bytes <= 0.49 * reference", Status.REGRESSED, 20_000, 40_000, 19_600),
        ("temp_bytes >= 0.5 * reference", Status.SAME, 20_000, 40_000, 20_000),
        ("temp_bytes >= 0.51 * reference", Status.REGRESSED, 20_000, 40_000, 20_400),
        ("temp_bytes == reference", Status.REGRESSED, 20_000, 40_000, 40_000),
        ("stablehlo_ops == reference", Status.SAME, 40, 40, 40),
    ],
)
def test_a_claim_against_numbers(formula, status, now, against, allowed):
    """A plain number, another quantity of either side, a closed formula, a derived number: each is found."""
    known = reference(facts={"temp_bytes": 40_000}, phases={"compile_ns": 100_000_000})
    found = check(claim(formula), measurement(analytic_flops=1_000_000, reference=known))
    assert (found.kind, found.status, found.now, found.against) == ("claim", status, now, against)
    assert found.allowed == pytest.approx(allowed)


LARGE = 50_000_000_000


@pytest.mark.parametrize(
    ("formula", "facts", "status"),
    [
        ("matmul_flops == analytic_flops", {"matmul_flops": LARGE}, Status.SAME),
        ("matmul_flops == analytic_flops", {"matmul_flops": LARGE + 1}, Status.REGRESSED),  # one FLOP is a difference
        ("temp_bytes <= 0.29 * reference", {"temp_bytes": 5_800}, Status.SAME),  # 0.29 of 20000 is 5799.999… in binary
        ("temp_bytes <= 0.29 * reference", {"temp_bytes": 5_801}, Status.REGRESSED),
    ],
)
def test_limits_are_exact(formula, facts, status):
    """Whole factors to the last unit, however large the numbers; others as they are meant, not as they are stored."""
    now = measurement(facts=facts, analytic_flops=LARGE, reference=reference())
    assert check(claim(formula), now).status is status


@pytest.mark.parametrize(
    ("claim", "facts", "known", "missing"),
    [
        (claim("temp_bytes <= 0.5 * reference"), {}, None, "reference"),
        (claim("temp_bytes >= 0 * reference"), {}, None, "reference"),
        (claim("temp_bytes <= reference"), {}, reference(facts={"temp_bytes": None}), "reference"),
        (claim("compile_ns <= reference"), {}, reference(phases={"compile_ns": None}), "reference"),
        (claim("peak_bytes <= reference"), {}, reference(facts={"aliased_bytes": None}), "reference"),
        (claim("traces <= reference"), {}, reference(), "reference"),
        (claim("temp_bytes <= reference"), {"temp_bytes": None}, reference(), "temp_bytes"),
        (claim("temp_bytes <= 1000000000"), {"temp_bytes": None}, None, "temp_bytes"),
        (claim("peak_bytes <= 1000000000"), {"output_bytes": None}, None, "peak_bytes"),
        (claim("peak_bytes <= 1000000000"), {"temp_bytes": None}, None, "peak_bytes"),
        (claim("state_bytes <= 1000000000"), {"argument_bytes": None}, None, "state_bytes"),
        (claim("state_bytes <= 1000000000"), {"aliased_bytes": None}, None, "state_bytes"),
        (claim("host_callbacks == 0"), {"host_callbacks": None}, None, "host_callbacks"),
        (claim("aliased_bytes == donated_bytes"), {"aliased_bytes": None}, None, "aliased_bytes"),
        (claim("aliased_bytes == donated_bytes"), {"donated_bytes": None}, None, "donated_bytes"),
        (claim("matmul_flops == analytic_flops"), {}, None, "analytic_flops"),
    ],
)
def test_what_cannot_be_checked_is_invalid(claim, facts, known, missing):
    """An unknown number on either side never passes, and is named."""
    found = check(claim, measurement(facts=facts, reference=known))
    assert (found.status, found.against) == (Status.INVALID, None)
    assert found.detail.startswith("cannot be checked: ")
    assert missing in found.detail
    assert ("backend" in found.detail) is (known is not None or missing != "reference")  # none was given: its author's


@pytest.mark.parametrize(
    "formula",
    [
        "", "<= reference", "temp_bytes <", "temp_bytes <=", "temp_bytes <= 0.5 *", "temp_bytes <= 0.5 reference x",
        "temp_bytes 3", "temp_bytes <= 2 * 3", "temp_bytes != 3", "temp_bytes <= 1.2.3",
    ],
)  # fmt: skip
def test_a_formula_that_cannot_be_read_is_refused(formula):
    """With what was found, and a formula that can be."""
    with pytest.raises(ValueError, match=r"^expected a (claim such as 'temp_bytes <= 0.5|number in a claim)") as caught:
        claim(formula)
    assert repr(formula) in str(caught.value)


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("temp_bytes<=0.5*reference", "temp_bytes ≤ 0.5 × reference"),
        ("temp_bytes ≤ 0.5 × reference", "temp_bytes ≤ 0.5 × reference"),
        ("temp_bytes <= 1 * reference", "temp_bytes ≤ reference"),
        ("compile_ns <= 1e-3 * reference", "compile_ns ≤ 0.001 × reference"),
        ("peak_bytes <= 2_000_000", "peak_bytes ≤ 2000000"),
        ("collectives == 1", "collectives = 1"),
        ("collectives = 1", "collectives = 1"),
        ("aliased_bytes >= donated_bytes", "aliased_bytes ≥ donated_bytes"),
        ("xla_flops <= 1.1 * analytic_flops", "xla_flops ≤ 1.1 × analytic_flops"),
        ("host_callbacks == 0", "host_callbacks = 0"),
    ],
)
def test_a_formula_is_read_as_it_is_written_and_as_it_is_shown(written, shown):
    """What the report prints can be written into a claim again; a finding is called so, and tells why it is claimed."""
    assert str(claim(written)) == shown
    assert claim(shown) == claim(written)
    found = check(claim(written, "half a sentence"), measurement(reference=reference(), analytic_flops=1_000_000))
    assert (found.name, found.detail) == (shown, "half a sentence")


@pytest.mark.parametrize(
    ("quantity", "other"),
    [
        ("tmp_bytes", "reference"), ("temp_bytes", "refrence"), ("analytic_flops", "reference"), ("reference", "one"),
        ("one", "one"), ("run_time", "reference"),
    ],
)  # fmt: skip
def test_an_unknown_quantity_is_refused_when_the_claim_is_made(quantity, other):
    """A misspelt quantity stops the author, not the first reader of a green report."""
    with pytest.raises(ValueError, match="cannot be checked") as caught:
        claim(f"{quantity} <= {other}")
    message = str(caught.value)
    assert f"a claim about {quantity!r} against {other!r}" in message
    assert "expected one of: " in message
    assert "temp_bytes" in message


@pytest.mark.parametrize(
    ("claim", "because"),
    [
        (lambda: claim(f"temp_bytes <= {float('inf')} * reference"), "no number is above infinity"),
        (lambda: claim(f"temp_bytes >= {float('-inf')} * reference"), "no number is below minus infinity"),
        (lambda: claim("temp_bytes == temp_bytes"), "a number equals itself"),
        (lambda: claim("temp_bytes <= temp_bytes"), "a number is at most itself"),
        (lambda: claim(f"temp_bytes <= {float('nan')} * reference"), "nothing compares with NaN"),
        (lambda: Claim(quantity="temp_bytes", relation="<"), "a relation that is not one of the three"),
    ],
    ids=["inf", "-inf", "itself", "at most itself", "nan", "relation"],
)
def test_a_claim_that_says_nothing_is_refused(claim, because):
    """A claim that can never break, or never hold, is refused when it is made."""
    with pytest.raises(ValueError):  # noqa: PT011 - the wording is free
        pytest.fail(f"{claim()!r} was accepted: {because}")


def test_the_claims_of_every_case():
    """One trace, one lowering, one compile, silence in the steady state, donation reused: checked for each case, first, and beside its own."""
    findings = list(check_claims((claim("host_callbacks == 0"),), measurement()))
    names = "traces = 1, lowerings = 1, compiles = 1, sampled_traces = 0, sampled_compiles = 0, lost_bytes ≤ 0"
    assert [f.name for f in findings] == [*names.split(", "), "host_callbacks = 0"]
    assert {f.status for f in findings} == {Status.SAME}


@pytest.mark.parametrize(
    ("name", "value", "expected_traces", "allowed"),
    [
        ("traces", 2, 1, 1), ("traces", 0, 1, 1), ("traces", 1, 2, 2), ("traces", 3, 2, 2), ("lowerings", 2, 1, 1),
        ("lowerings", 1, 2, 2), ("compiles", 2, 1, 1), ("compiles", 1, 2, 2), ("sampled_traces", 1, 1, 0),
        ("sampled_compiles", 1, 1, 0), ("sampled_traces", 1, 2, 0),
    ],
)  # fmt: skip
def test_a_case_that_traces_otherwise_than_expected_is_red(name, value, expected_traces, allowed):
    """More or fewer traces than the case states break a claim, with no baseline needed."""
    facts = dict.fromkeys(("traces", "lowerings", "compiles"), expected_traces) | {name: value}
    found = list(check_claims((), measurement(facts=facts, expected_traces=expected_traces)))
    (broken,) = [f for f in found if f.status is not Status.SAME]
    assert (broken.name, broken.status) == (f"{name} = {allowed}", Status.REGRESSED)
    assert (broken.now, broken.against, broken.allowed) == (value, allowed, allowed)


@pytest.mark.parametrize("name", UNIVERSAL)
def test_unknown_counters_are_invalid(name):
    """A case whose traces were not counted is not green."""
    found = {f.name.split(" ")[0]: f for f in check_claims((), measurement(facts={name: None}))}
    assert found[name].status is Status.INVALID
    assert f"{name} is unknown" in found[name].detail
    assert [found[other].status for other in UNIVERSAL if other != name] == [Status.SAME] * 5


def test_without_donation_nothing_can_be_lost():
    """A program that donates nothing has no claim about donation; the others stay."""
    quantities = [claim.quantity for claim in universal_claims(measurement(facts={"donated_bytes": 0}))]
    assert quantities == [name for name in UNIVERSAL if name != "lost_bytes"]


def test_donation_that_is_not_reused_is_red_in_every_case():
    """A single lost byte breaks the claim of every case that donates, with no baseline needed."""
    (broken,) = [f for f in check_claims((), measurement(facts={"lost_bytes": 1})) if f.status is not Status.SAME]
    assert (broken.name, broken.status) == ("lost_bytes ≤ 0", Status.REGRESSED)
    assert (broken.now, broken.allowed, broken.detail) == (1, 0, "what is donated is reused")


@pytest.mark.parametrize(("lost", "status"), [(512, Status.SAME), (513, Status.REGRESSED)])
def test_a_tolerance_of_lost_bytes_loosens_the_claim_of_every_case(lost, status):
    """A case that states why some donation is lost is held to the bytes that it states; traces stay what it expects."""
    own = Tolerance(fact="lost_bytes", absolute=512, why="the scalar step is cast")
    found = {f.name: f for f in check_claims((), measurement(facts={"lost_bytes": lost}), tolerances=[own])}
    assert found["lost_bytes ≤ 512"].status is status
    other = Tolerance(fact="traces", absolute=5, why="it is rewritten")
    found = {f.name: f for f in check_claims((), measurement(facts={"traces": 2}), tolerances=[other])}
    assert found["traces = 1"].status is Status.REGRESSED


def test_a_number_that_could_not_be_had_says_why():
    """Where today's measurement knows the reason, it is told in place of the backend."""
    now = measurement(facts={"collectives": None}, unknown={"collectives": "the module has no text"})
    found = check(claim("collectives == 0"), now)
    assert found.status is Status.INVALID
    assert found.detail == "cannot be checked: collectives is unknown: the module has no text"


TPU = HardwareKey(platform="tpu", device_kind="v5e:2x4", devices=1)


@pytest.mark.parametrize(
    ("claim", "hardware", "mib", "status"),
    [
        (claim("temp_bytes <= 0.5 * reference"), TPU, 127, Status.EXPECTED),
        (claim("temp_bytes <= 0.5 * reference"), TPU, 128, Status.REGRESSED),
        (claim("temp_bytes <= reference"), TPU, 127, Status.SAME),
        (claim("temp_bytes <= 0.5 * output_bytes"), TPU, 127, Status.EXPECTED),
        (claim("temp_bytes <= 1"), TPU, 127, Status.REGRESSED),
        (claim("aliased_bytes >= donated_bytes"), TPU, 127, Status.REGRESSED),
        (claim("constant_bytes <= 0.5 * reference"), TPU, 127, Status.REGRESSED),
        (claim("temp_bytes <= 0.5 * reference"), HARDWARE, 127, Status.REGRESSED),
    ],
)
def test_a_tpu_lays_out_what_is_small_as_it_likes(claim, hardware, mib, status):
    """There a broken comparison of memory is expected; one with a number, or of what is donated, is not."""
    sizes = {"temp_bytes": mib << 20, "constant_bytes": mib << 20, "output_bytes": 1, "aliased_bytes": 0}
    now = measurement(
        hardware=hardware, reference=reference(facts=sizes), facts={**sizes, "lost_bytes": 0, "donated_bytes": 8}
    )
    found = check(claim, now)
    assert found.status is status
    assert ("VMEM" in str(found.known_break)) is (status is Status.EXPECTED)
