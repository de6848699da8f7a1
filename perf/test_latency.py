"""One request at a time."""

from jaxgate.plugin import catalogue
from workloads import latency


@catalogue(latency.CASES)
def test_latency(case, gate):
    gate(case)
