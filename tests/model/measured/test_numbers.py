"""Samples: the median of bursts, and percentiles of single calls."""

import pytest

from jaxgate.model.computation import Computation
from jaxgate.model.numbers import Samples


def singles(count):
    """Single calls of 1, 2, … ns, in another order."""
    return Samples(bursts_ns=tuple(reversed(range(1, count + 1))), calls_per_burst=1, contract="latency")


def test_percentiles_are_those_of_nearest_rank():
    """Of 200 calls of 1 to 200 ns, p50 is the 100th and p99 the 198th."""
    assert (singles(200).percentile_ns(50), singles(200).percentile_ns(99)) == (100, 198)
    assert (singles(101).percentile_ns(50), singles(101).percentile_ns(99)) == (51, 100)


def test_a_percentile_needs_calls_beyond_it():
    """With 99 calls there is no p99, with one no p50: unknown, not the greatest."""
    assert singles(99).percentile_ns(99) is None
    assert singles(100).percentile_ns(99) == 99
    assert singles(1).percentile_ns(50) is None


def test_bursts_of_several_calls_have_no_percentiles():
    """The tail of a burst says nothing about the tail of a call."""
    assert Samples(bursts_ns=tuple(range(1, 201)), calls_per_burst=1).percentile_ns(99) is None


def test_blocked_samples_are_single_calls():
    """A burst of two calls shows no latency: refused."""
    with pytest.raises(ValueError, match="samples of a latency are single calls"):
        Samples(bursts_ns=(1,), calls_per_burst=2, contract="latency")


def test_an_unknown_contract_is_refused():
    """A misspelt contract would measure something else in silence."""
    with pytest.raises(ValueError, match="one of throughput, latency, found 'block'"):
        Computation(subject=abs, contract="block")
