"""One forward pass for gradients, loss and metrics against several."""

from jaxgate.plugin import catalogue
from workloads import value_and_grad


@catalogue(value_and_grad.CASES)
def test_value_and_grad(case, gate):
    gate(case)
