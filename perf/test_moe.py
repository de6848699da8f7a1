"""Tokens for one expert of many, on one device and on eight."""

from jaxgate.plugin import catalogue
from workloads import moe


@catalogue(moe.CASES)
def test_moe(case, gate):
    gate(case)
