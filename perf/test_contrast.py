"""One training step in JAX and in PyTorch."""

import pytest

from workloads.contrast import CONTRASTS
from workloads.contrast.check import check


@pytest.mark.parametrize("case", CONTRASTS, ids=[case.name for case in CONTRASTS])
def test_contrast(case, request, benchmark):
    check(case, request, benchmark)
