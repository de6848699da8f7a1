"""Programs over several hosts; in one process, over four of its devices."""

from jaxgate.plugin import catalogue
from workloads import hosts


@catalogue(hosts.CASES)
def test_hosts(case, gate):
    gate(case)
