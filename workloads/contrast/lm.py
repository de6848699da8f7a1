"""A training step of a small decoder-only language model, for each framework."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxgate import Size
from workloads.contrast.contrast import Contrast
from workloads.contrast.sides import Model, contrast_of
from workloads.training.lm import Size as Extents
from workloads.training.lm import abstract, make_batch

SIZES: dict[Size, Extents] = {
    "small": Extents(batch=4, tokens=64, vocabulary=256, width=128, layers=4, heads=4),
    "full": Extents(batch=4, tokens=1024, vocabulary=50304, width=768, layers=12, heads=12),
}


def contrast(size: Extents) -> Contrast:
    """The step, for each framework."""
    return contrast_of(model(size), rtol=1e-3)


def model(size: Extents) -> Model:
    """Each token's next one."""
    tokens, following = make_batch(size)
    return Model(
        shapes=abstract(size),
        in_torch=lambda: in_torch(size),
        inputs=np.ascontiguousarray(tokens),
        labels=np.ascontiguousarray(following),
        amount=size.amount,
    )


def in_torch(size: Extents) -> Any:
    """The model in PyTorch."""
    from workloads.contrast.torch_models import LM  # noqa: PLC0415 - imports PyTorch, which not everybody has

    return LM(size)
