"""One training step in JAX and in PyTorch."""

from jaxgate.plugin import catalogue
from workloads import contrast as contrasts


@catalogue(contrasts.CONTRASTS)
def test_contrast(case, contrast):
    contrast(case)
