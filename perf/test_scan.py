"""``lax.scan`` against the unrolled loop."""

from jaxgate.plugin import catalogue
from workloads import scan


@catalogue(scan.CASES)
def test_scan(case, gate):
    gate(case)
