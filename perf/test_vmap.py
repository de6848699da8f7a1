"""``vmap`` against loops over examples, instances and paths, and against ``lax.map``."""

from jaxgate.plugin import catalogue
from workloads import vmap


@catalogue(vmap.CASES)
def test_vmap(case, gate):
    gate(case)
