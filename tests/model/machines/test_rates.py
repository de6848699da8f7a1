"""What chips can do: every chip that can be compiled for has its figures."""

import pytest

from jaxgate.ext.targets.model import CHIPS, GPUS
from jaxgate.model.chips import RATES, peak_flops


def test_every_chip_has_its_rates():
    """Memory, links and products of each target, and of nothing else."""
    assert RATES.keys() == CHIPS.keys()
    for chip, rates in RATES.items():
        assert rates.memory > 0, chip
        assert rates.links > 0, chip
        assert peak_flops(rates.kind, {"bfloat16"}), chip
        assert peak_flops(rates.kind, {"float32"}), chip


@pytest.mark.parametrize("chip", sorted(RATES))
def test_rates_are_plausible_beside_each_other(chip):
    """A unit that is off by a thousand would not be: some hundred FLOPs for a byte of memory, some bytes for one of a link."""
    rates = RATES[chip]
    assert 50 < peak_flops(rates.kind, {"bfloat16"}) / rates.memory < 700
    assert 2 < rates.memory / rates.links < 15


@pytest.mark.parametrize("chip", sorted(GPUS))
def test_gpus_go_by_one_bandwidth(chip):
    """What their compiler is told is what the estimate divides by."""
    assert RATES[chip].memory == GPUS[chip].bandwidth
    assert RATES[chip].kind == GPUS[chip].kind
