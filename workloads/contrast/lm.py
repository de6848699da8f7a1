"""A training step of a small decoder-only language model, for each framework."""

from __future__ import annotations

from typing import Any

import numpy as np

from workloads.contrast.contrast import Contrast
from workloads.contrast.sides import Model, contrast_of
from workloads.parts import Extent, sizes
from workloads.training import lm

SIZES = sizes(
    lm.SIZES,
    tokens=(64, 1024),
    vocabulary=(256, 50304),
    width=(128, 768),
    layers=(4, 12),
    heads=(4, 12),
    dtype="float32",
)


def contrast(size: Extent) -> Contrast:
    return contrast_of(model(size), rtol=1e-3)


def model(size: Extent) -> Model:
    tokens, following = lm.make_batch(size)
    return Model(
        shapes=lm.abstract(size),
        in_torch=lambda: in_torch(size),
        inputs=np.ascontiguousarray(tokens),
        labels=np.ascontiguousarray(following),
        amount=lm.amount(size),
    )


def in_torch(size: Extent) -> Any:
    from workloads.contrast.torch_models import LM  # noqa: PLC0415 - imports PyTorch, which not everybody has

    return LM(size)
