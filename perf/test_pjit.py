"""Meshes and shardings under ``jax.jit``."""

from jaxgate.plugin import catalogue
from workloads import pjit


@catalogue(pjit.CASES)
def test_pjit(case, gate):
    gate(case)
