"""A state that is restored steps on as it was."""

from jaxgate.plugin import catalogue
from workloads import checkpoint


@catalogue(checkpoint.CASES)
def test_checkpoint(case, gate):
    gate(case)
