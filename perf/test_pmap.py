"""``pmap`` against one device, against its twin by ``shard_map``, and its collectives alone."""

from jaxgate.plugin import catalogue
from workloads import pmap


@catalogue(pmap.CASES)
def test_pmap(case, gate):
    gate(case)
