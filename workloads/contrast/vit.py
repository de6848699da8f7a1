"""A training step of a vision transformer, for each framework."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxgate import Amount
from workloads.contrast.contrast import Contrast
from workloads.contrast.sides import Model, contrast_of
from workloads.parts import Extent, drawing, sizes
from workloads.training import vit

SIZES = sizes(vit.SIZES, patch=(4, 16), width=(128, 768), layers=(4, 12), heads=(4, 12), dtype="float32")


def contrast(size: Extent) -> Contrast:
    return contrast_of(model(size), rtol=1e-3)


def model(size: Extent) -> Model:
    """Images of three colours in classes; NHWC in JAX, NCHW in PyTorch, as each of them is fed by its users."""
    return Model(
        shapes=vit.abstract(size),
        in_torch=lambda: in_torch(size),
        inputs=drawing(1)((size.batch, size.image, size.image, 3)),
        labels=np.random.default_rng(2).integers(0, size.classes, size.batch, dtype=np.int32),
        amount=Amount(count=size.batch, unit="images"),
        for_torch=channels_first,
    )


def in_torch(size: Extent) -> Any:
    from workloads.contrast.torch_models import ViT  # noqa: PLC0415 - imports PyTorch, which not everybody has

    return ViT(size)


def channels_first(images: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """From NHWC to NCHW."""
    return np.ascontiguousarray(images.transpose(0, 3, 1, 2))
