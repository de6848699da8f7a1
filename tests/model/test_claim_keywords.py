"""Claims as keywords of ``gate``: what each says, that it gates, and that a slip of the pen is told."""

import pytest
from support.factories import measurement, record

from jaxgate.judge.verdict import judge
from jaxgate.model.claim import CLAIMED, QUANTITIES, RUN_NS, Claim, split_claims
from jaxgate.model.decision import Status


def stated(**options):
    """The claims, as they read."""
    claims, others = split_claims(options)
    assert others == {}
    return [str(claim) for claim in claims]


def test_each_start_is_a_relation():
    """At most, at least, exactly; in the order in which they are written."""
    assert stated(max_temp_bytes=2_000, min_aliased_bytes=4_096, exact_collectives=1) == [
        "temp_bytes ≤ 2000",
        "aliased_bytes ≥ 4096",
        "collectives = 1",
    ]


@pytest.mark.parametrize("quantity", sorted(CLAIMED))
def test_every_quantity_can_be_claimed(quantity):
    """Facts, phases and sums of them, each in all three ways."""
    (claim,), _ = split_claims({f"max_{quantity}": 3})
    assert claim == Claim(quantity=quantity, relation="<=", factor=3, other="one")
    assert [str(claim) for claim in split_claims({f"min_{quantity}": 3, f"exact_{quantity}": 3})[0]] == [
        f"{quantity} ≥ 3",
        f"{quantity} = 3",
    ]


def test_the_rest_is_handed_on_untouched():
    """Other options are none of its business, known or not."""
    claims, others = split_claims({"rtol": 0.1, "max_traces": 2, "maximum": 3, "nonsense": None})
    assert [str(claim) for claim in claims] == ["traces ≤ 2"]
    assert others == {"rtol": 0.1, "maximum": 3, "nonsense": None}
    assert split_claims({}) == ((), {})


@pytest.mark.parametrize("start", ["max_", "min_", "exact_"])
@pytest.mark.parametrize("quantity", ["tmp_bytes", "", "temp", "temp_bytes_", "reference", "analytic_flops", "one"])
def test_a_quantity_that_does_not_exist_is_refused(start, quantity):
    """Such a claim could never be broken; the error says what there is."""
    with pytest.raises(TypeError) as caught:
        split_claims({f"{start}{quantity}": 3})
    text = str(caught.value)
    assert text.startswith(f"{start}{quantity}= claims nothing: expected {start} and one of aliased_bytes, ")
    assert all(name in text for name in CLAIMED)


def test_run_time_needs_something_to_be_held_against():
    """No number of nanoseconds means anything on another machine; the error says what does."""
    assert {RUN_NS} == QUANTITIES - CLAIMED
    with pytest.raises(
        TypeError, match=r"claims nothing.*claims=\[claim\(.run_ns <= 0.8 \* reference.\)\] holds it against a"
    ):
        split_claims({"max_run_ns": 1_000})


@pytest.mark.parametrize("value", [True, False, None, "2000", [2000], 2j], ids=repr)
def test_what_is_no_number_is_refused(value):
    with pytest.raises(TypeError) as caught:
        split_claims({"max_temp_bytes": value})
    assert str(caught.value) == f"max_temp_bytes= expects a number, found {value!r}"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")], ids=repr)
def test_a_limit_that_cannot_be_broken_is_refused(value):
    """Nothing is more than infinity, and nothing compares with what is no number."""
    with pytest.raises(ValueError, match="says nothing"):
        split_claims({"max_temp_bytes": value})


def test_a_limit_reads_as_it_is_held():
    """Two limits never read alike, and none is rounded: a waiver is found by this text."""
    assert stated(max_temp_bytes=2_000_000, max_xla_bytes=1_234_567_891, max_compile_ns=1.5e9) == [
        "temp_bytes ≤ 2000000",
        "xla_bytes ≤ 1234567891",
        "compile_ns ≤ 1500000000",
    ]
    assert stated(max_temp_bytes=2_000_000) != stated(max_temp_bytes=2_000_001)


BROKEN = [("max_temp_bytes", 19_999), ("min_temp_bytes", 20_001), ("exact_temp_bytes", 19_999), ("max_peak_bytes", 1)]
HOLDS = [("max_temp_bytes", 20_000), ("min_temp_bytes", 20_000), ("exact_temp_bytes", 20_000), ("max_launches", 3.5)]


@pytest.mark.parametrize(
    ("keyword", "value", "status"),
    [(*pair, Status.REGRESSED) for pair in BROKEN] + [(*pair, Status.SAME) for pair in HOLDS],
)
def test_it_gates_as_any_claim(keyword, value, status):
    """One unit beyond the limit is red, with a baseline that has the same number and with none."""
    claims, _ = split_claims({keyword: value})
    for known in (record(), None):
        verdict = judge("scan/rnn", claims, measurement(), known, strict=True)
        (found,) = [finding for finding in verdict.findings if finding.name == str(claims[0])]
        assert found.status is status
        assert verdict.fails == (status is Status.REGRESSED or known is None)


@pytest.mark.parametrize(
    ("names", "status"),
    [("cudnn", Status.SAME), (["cudnn", "tanh"], Status.SAME), (["cudnn", "cublas"], Status.REGRESSED)],
)
def test_a_routine_that_must_be_called(names, status):
    """Among the kernels of the optimised program, and the operations of the one that JAX wrote."""
    claims, others = split_claims({"uses": names})
    assert others == {}
    now = measurement(kernels={"__cudnn$fmhaSoftmax": 2}, operations={"stablehlo.tanh 8xf32": 1})
    found = {finding.name: finding for finding in judge("scan/rnn", claims, now, None, strict=True).findings}
    assert str(claims[0]) == "uses cudnn ≥ 1"
    assert found["uses cudnn ≥ 1"].now == 2
    assert found[str(claims[-1])].status is status
    unread = measurement(kernels={}, operations={})
    assert found.keys() == {finding.name for finding in judge("scan/rnn", claims, unread, None, strict=True).findings}
    assert judge("scan/rnn", claims, unread, None, strict=False).status is Status.INVALID


@pytest.mark.parametrize("names", [3, [""], ["a b"], [None]])
def test_no_routine_is_refused(names):
    """A claim that every program holds, or none, is a slip of the pen."""
    with pytest.raises(TypeError, match="uses= expects a name or several"):
        split_claims({"uses": names})
