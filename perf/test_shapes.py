"""One shape, a few, or a new one each time; static arguments and Python numbers."""

from jaxgate.plugin import catalogue
from workloads import shapes


@catalogue(shapes.CASES)
def test_shapes(case, gate):
    gate(case)
