"""contrast: one training step in JAX and in PyTorch, the latter eager and compiled, with everything else the same.

The same weights, the same batch, the same loss, AdamW and precision. A contrast is refused, and no figure is shown, as
long as the sides do something else: their logits, their loss of the same logits, the losses of five steps and the
weights after them must agree; so must the FLOPs of their products, the types of these and whether fewer bits may be
used for them, whether attention is one fused kernel, and what of the batch is copied into another layout; and no input
pipeline may use JAX for a batch. Then each side runs in a process of its own (time to the first step with compiling,
memory, a step's time), and each pair in turn in one process. Nothing is stored: what is claimed holds on any machine, as
that a compiled step is not slower than an eager one. The mistakes that it exists for make most comparisons of
frameworks worthless: labels as indices in a loss of one-hot vectors, TF32 on one side, fused attention on one side, a
collate function that calls `jnp`, images in NHWC handed to a model that wants NCHW. It needs the extra
`jaxgate[torch]`. Attention is written out on both sides, as no fused kernel of the two is the same.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from jaxgate import Size
from workloads.contrast import models
from workloads.contrast.contrast import Contrast, ContrastCase

NEEDS = {"torch": "jaxgate[torch]"}


def _case(name: str, sizes: dict[Size, Any], build: Callable[[Any], Contrast]) -> ContrastCase:
    builders = {size: partial(build, extents) for size, extents in sizes.items()}
    return ContrastCase(name=name, needs=NEEDS, sizes=builders)


CONTRASTS: tuple[ContrastCase, ...] = (
    _case("vit-adamw-step-jax-vs-torch", models.IMAGES, models.contrast_of_images),
    _case("lm-adamw-step-jax-vs-torch", models.TEXTS, models.contrast_of_texts),
)
