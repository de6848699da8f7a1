"""Narrow types where they do, wide ones where they must be, against one type throughout."""

from jaxgate.plugin import catalogue
from workloads import precision


@catalogue(precision.CASES)
def test_precision(case, gate):
    gate(case)
