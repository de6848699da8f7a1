"""Donated buffers against copied ones."""

import pytest

from jaxgate.plugin import catalogue
from workloads import donation


# Some cases donate in vain; the engine says so of every buffer, also where JAX does not.
@pytest.mark.filterwarnings("ignore:Some donated buffers were not usable")
@catalogue(donation.CASES)
def test_donation(case, gate):
    gate(case)
