"""Whole training steps by Flax and Optax."""

from jaxgate.plugin import catalogue
from workloads import training


@catalogue(training.CASES)
def test_training(case, gate):
    gate(case)
