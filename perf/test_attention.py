"""Attention by the library, over blocks and in a kernel against attention by hand."""

from jaxgate.plugin import catalogue
from workloads import attention


@catalogue(attention.CASES)
def test_attention(case, gate):
    gate(case)
