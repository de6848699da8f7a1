"""Batches on their way to the device, and the layout of their images."""

from jaxgate.plugin import catalogue
from workloads import input_pipeline


@catalogue(input_pipeline.CASES)
def test_input_pipeline(case, gate):
    gate(case)
