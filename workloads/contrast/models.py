"""The models whose training steps are contrasted: a vision transformer, and a small decoder-only language model."""

from typing import Any

import numpy as np

from jaxgate import Amount
from workloads.contrast.contrast import Contrast
from workloads.contrast.sides import Model, contrast_of
from workloads.parts import Extent, drawing, sizes
from workloads.training import lm, vit

IMAGES = sizes(vit.SIZES, patch=(4, 16), width=(128, 768), layers=(4, 12), heads=(4, 12), dtype="float32")
TEXTS = sizes(
    lm.SIZES,
    tokens=(64, 1024),
    vocabulary=(256, 50304),
    width=(128, 768),
    layers=(4, 12),
    heads=(4, 12),
    dtype="float32",
)


def of_images(size: Extent) -> Model:
    """Images of three colours in classes; NHWC in JAX, NCHW in PyTorch, as each of them is fed by its users."""
    return Model(
        shapes=vit.abstract(size),
        in_torch=lambda: in_torch("ViT", size),
        inputs=drawing(1)((size.batch, size.image, size.image, 3)),
        labels=np.random.default_rng(2).integers(0, size.classes, size.batch, dtype=np.int32),
        amount=Amount(count=size.batch, unit="images"),
        for_torch=channels_first,
    )


def of_texts(size: Extent) -> Model:
    """Each token's next one."""
    tokens, following = lm.make_batch(size)
    return Model(
        shapes=lm.abstract(size),
        in_torch=lambda: in_torch("LM", size),
        inputs=np.ascontiguousarray(tokens),
        labels=np.ascontiguousarray(following),
        amount=lm.amount(size),
    )


def contrast_of_images(size: Extent) -> Contrast:
    return contrast_of(of_images(size), rtol=1e-3)


def contrast_of_texts(size: Extent) -> Contrast:
    return contrast_of(of_texts(size), rtol=1e-3)


def in_torch(name: str, size: Extent) -> Any:
    from workloads.contrast import torch_models  # noqa: PLC0415 - imports PyTorch, which not everybody has

    return getattr(torch_models, name)(size)


def channels_first(images: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """From NHWC to NCHW."""
    return np.ascontiguousarray(images.transpose(0, 3, 1, 2))
