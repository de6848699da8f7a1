"""Donated training steps against copying ones."""

from jaxgate.plugin import catalogue
from workloads import donation


@catalogue(donation.CASES)
def test_donation(case, gate):
    gate(case)
