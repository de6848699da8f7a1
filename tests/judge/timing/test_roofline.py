"""Least times, by hand: what bounds a step, what is unknown, and that nothing is judged by it."""

from dataclasses import replace

import pytest
from support.factories import CASE, changed_verdict, measurement, record

from jaxgate.judge.timing.rates import least_times, roofline
from jaxgate.judge.verdict import judge
from jaxgate.model.chips import Rates
from jaxgate.model.machine import HardwareKey
from jaxgate.model.roofline import Demand

CHIP = Rates(kind="TPU v5 lite", memory=800e9, links=200e9)
"""197 TFLOP/s in bfloat16, 393 in int8."""
V5E = HardwareKey(platform="tpu", device_kind="v5e:2x4", devices=8)


def test_each_resource_is_amount_over_rate():
    """197 GFLOP at 197 TFLOP/s are 1 ms, 1.6 GB at 800 GB/s 2 ms, 100 MB at 200 GB/s half a millisecond."""
    found = least_times(
        Demand(flops={"bfloat16": 197_000_000_000}, memory_bytes=1_600_000_000, sent_bytes=100_000_000), CHIP
    )
    assert found.times_ns == pytest.approx({"compute": 1e6, "memory": 2e6, "communication": 0.5e6})
    assert found.least_ns == pytest.approx(2e6)
    assert found.bound_by == "memory"


@pytest.mark.parametrize(
    ("demand", "bound"),
    [
        # bfloat16[8192,8192] by itself: 2 x 8192^3 FLOPs, three arrays of 134 MB.
        (Demand(flops={"bfloat16": 2 * 8192**3}, memory_bytes=3 * 2 * 8192**2), "compute"),
        # An elementwise chain over 64 Mi float32: read once, written once.
        (Demand(memory_bytes=2 * 4 * 2**26), "memory"),
        # psum of float32[4096,4096] over eight: 2 x 7/8 of it leaves the device.
        (Demand(memory_bytes=2 * 4 * 4096**2, sent_bytes=2 * 7 * 4 * 4096**2 // 8), "communication"),
        (Demand(), None),
    ],
)
def test_what_bounds_a_step(demand, bound):
    """A large product, a chain, a large psum; and nothing at all."""
    assert least_times(demand, CHIP).bound_by == bound


def test_types_add_up_at_their_own_rates():
    """197 GFLOP of bfloat16 and 393 GFLOP of int8 are a millisecond each."""
    found = least_times(Demand(flops={"bfloat16": 197_000_000_000, "int8": 393_000_000_000}), CHIP)
    assert found.times_ns["compute"] == pytest.approx(2e6)
    assert not found.unknown


def test_a_type_without_a_rate_is_unknown():
    """No figure says how fast a TPU multiplies float64: never 0, and never bound by another."""
    found = least_times(Demand(flops={"float64": 10**12}, memory_bytes=10**9), CHIP)
    assert found.unknown == {"compute": "how fast a TPU v5 lite multiplies float64 is not known"}
    assert found.bound_by is None


def test_a_resource_that_may_need_more_bounds_nothing_else():
    """Memory cannot be the bound while more than is known may be computed; the resource itself can."""
    demand = Demand(flops={"bfloat16": 197_000_000_000}, memory_bytes=10**9, unknown={"compute": "a kernel is opaque"})
    assert least_times(replace(demand, memory_bytes=10**10), CHIP).bound_by is None
    assert least_times(replace(demand, memory_bytes=10**6), CHIP).bound_by == "compute"


def test_traced_products_stand_in_for_what_a_library_hides():
    """Of a program with a kernel the traced products count, at the rate of their fastest type, where they are more."""
    hidden = Demand(
        flops={"bfloat16": 1_000_000},
        traced_flops=393_000_000_000,
        traced_types=frozenset({"bfloat16", "int8"}),
        unknown={"compute": "tpu_custom_call is opaque"},
    )
    assert least_times(hidden, CHIP).times_ns["compute"] == pytest.approx(1e6)
    assert least_times(replace(hidden, unknown={}), CHIP).times_ns["compute"] == pytest.approx(5.08, rel=0.01)
    strange = replace(hidden, traced_types=frozenset({"float64", "bfloat16"}))
    assert least_times(strange, CHIP).times_ns["compute"] == pytest.approx(5.08, rel=0.01)


def test_only_targets_have_one():
    """A device that is there is timed; of a chip without figures nothing is said."""
    assert roofline(Demand(memory_bytes=10**9), V5E).least_ns == pytest.approx(10**9 / 819e9 * 1e9)
    assert roofline(None, V5E) is None
    assert roofline(Demand(memory_bytes=1), HardwareKey(platform="tpu", device_kind="TPU v5 lite", devices=8)) is None
    assert roofline(Demand(memory_bytes=1), HardwareKey(platform="tpu", device_kind="v9:2x4", devices=8)) is None


def test_it_decides_nothing():
    """A program that needs a thousand times as long by the estimate has the verdict of its facts."""
    calm = measurement(hardware=V5E, samples=None, compiled_only=True, demand=Demand(memory_bytes=1))
    slow = replace(calm, demand=Demand(memory_bytes=10**12))
    before = record(hardware=V5E)
    verdicts = [judge(CASE, (), now, record=before, strict=True) for now in (calm, slow)]
    assert verdicts[0].cost.roofline.least_ns < verdicts[1].cost.roofline.least_ns
    assert [changed_verdict(verdict, roofline=None) for verdict in verdicts] == [
        changed_verdict(verdicts[0], roofline=None)
    ] * 2
