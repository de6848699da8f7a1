"""Where arrays live, what travels, and what is asked of the host."""

from jaxgate.plugin import catalogue
from workloads import placement


@catalogue(placement.CASES)
def test_placement(case, gate):
    gate(case)
