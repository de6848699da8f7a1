"""One step on more and more devices."""

from jaxgate.plugin import catalogue
from workloads import scaling


@catalogue(scaling.CASES)
def test_scaling(case, gate):
    gate(case)
