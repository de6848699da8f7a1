"""Texts of any length, a cache with slots, one program for each token."""

from jaxgate.plugin import catalogue
from workloads import serving


@catalogue(serving.CASES)
def test_serving(case, gate):
    gate(case)
