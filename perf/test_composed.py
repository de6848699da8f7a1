"""The composed train step against the same step without one of its layers."""

from jaxgate.plugin import catalogue
from workloads import composed


@catalogue(composed.CASES)
def test_composed(case, gate):
    gate(case)
