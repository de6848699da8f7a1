"""``jax.checkpoint`` against plain training steps, over policies and batches."""

from jaxgate.plugin import catalogue
from workloads import remat


@catalogue(remat.CASES)
def test_remat(case, gate):
    gate(case)
