"""Sums by segment, messages along edges, rows written in place."""

from jaxgate.plugin import catalogue
from workloads import scatter


@catalogue(scatter.CASES)
def test_scatter(case, gate):
    gate(case)
