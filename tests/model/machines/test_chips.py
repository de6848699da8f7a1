"""Model FLOPs utilisation: known chips only, the fastest type that is multiplied, never flattered."""

import pytest
from support.factories import CASE, measurement

from jaxgate.judge.verdict import judge
from jaxgate.model.chips import peak_flops, utilisation
from jaxgate.model.machine import HardwareKey
from jaxgate.model.numbers import Samples
from jaxgate.report.summary import summary

MILLISECOND = Samples(bursts_ns=(1_000_000,), calls_per_burst=1)


def on(kind, *, devices=1, **changes):
    """A call of one millisecond, of 98.94 GFLOP in bfloat16."""
    whole = {
        "hardware": HardwareKey(platform="gpu", device_kind=kind, devices=devices),
        "analytic_flops": 98_940_000_000,
        "samples": MILLISECOND,
        "matmuls": {"bfloat16[8,64] x bfloat16[64,64]": 3},
    }
    return measurement(**{**whole, **changes})


@pytest.mark.parametrize(
    ("kind", "types", "rate"),
    [
        ("NVIDIA H100 80GB HBM3", {"bfloat16"}, 989.4e12),
        ("NVIDIA H100 80GB HBM3", {"float32"}, 494.7e12),
        ("NVIDIA H100 80GB HBM3", {"float32", "bfloat16"}, 989.4e12),
        ("NVIDIA H200", {"bfloat16"}, 989.4e12),
        ("NVIDIA A100-SXM4-80GB", {"bfloat16"}, 312e12),
        ("TPU v5 lite", {"bfloat16"}, 197e12),
        ("TPU v5", {"bfloat16"}, 459e12),
        ("NVIDIA H100 80GB HBM3", {"float64"}, 67e12),
        ("NVIDIA H100 80GB HBM3", {"float8_e4m3fn", "bfloat16"}, 1979e12),
        ("NVIDIA B200", {"bfloat16"}, 2250e12),
        ("TPU7x", {"bfloat16"}, 1153.5e12),
        ("NVIDIA H100 80GB HBM3", {"int4"}, None),
        ("NVIDIA H100 80GB HBM3", set(), None),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", {"bfloat16"}, None),
        ("NVIDIA A100-SXM4-80GB MIG 3g.40gb", {"bfloat16"}, None),
        ("NVIDIA H200 NVL", {"bfloat16"}, None),
        ("AMD EPYC", {"float32"}, None),
    ],
)
def test_the_peak_of_a_chip_is_known_by_its_whole_name(kind, types, rate):
    """A slice of a chip, another form of it, and a processor have none."""
    assert peak_flops(kind, types) == rate


def test_a_tenth_of_the_peak_is_ten_per_cent():
    """98.94 GFLOP in a millisecond are 98.94 TFLOP/s, of 989.4 that one H100 can do; of two, half of that share."""
    assert utilisation(on("NVIDIA H100 80GB HBM3")) == pytest.approx(0.1)
    assert utilisation(on("NVIDIA H100 80GB HBM3", devices=2)) == pytest.approx(0.05)


def test_float32_is_held_against_what_it_is_multiplied_in():
    """TensorFloat-32 unless a precision was asked for, whose rate is not known."""
    products = {"float32[8,64] x float32[64,64]": 3}
    assert utilisation(on("NVIDIA H100 80GB HBM3", matmuls=products)) == pytest.approx(0.2)
    asked = {"jax_default_matmul_precision": "highest"}
    assert utilisation(on("NVIDIA H100 80GB HBM3", matmuls=products, environment=asked)) is None


@pytest.mark.parametrize("missing", [{"samples": None}, {"analytic_flops": None}, {"matmuls": {}}])
def test_without_a_time_a_formula_or_a_product_there_is_none(missing):
    assert utilisation(on("NVIDIA H100 80GB HBM3", **missing)) is None


@pytest.mark.parametrize(("kind", "text"), [("NVIDIA H200", "1 ms, 10 % MFU"), ("AMD EPYC", "1 ms ")])
def test_it_stands_beside_the_time(kind, text):
    verdict = judge(CASE, (), on(kind), None, strict=False)
    ((_, _, line),) = summary([verdict], width=None)
    assert text in line
    assert ("MFU" in line) == ("MFU" in text)
