"""Kernels in Pallas against the same by hand."""

from jaxgate.plugin import catalogue
from workloads import kernels


@catalogue(kernels.CASES)
def test_kernels(case, gate):
    gate(case)
