"""Whole training steps of three usual models, by Flax and Optax: what a person's own step looks like.

A vision transformer (Dosovitskiy et al., 2021; ViT-B/16 at 224² where it is large) and a decoder-only language model
(about GPT-2 small) with AdamW that decays kernels only, a residual network (He et al., 2016; ResNet-50) with momentum
and threaded batch statistics. Flax NNX, split once and merged inside one jitted step whose state is donated; Flax Linen
with `TrainState` for one of them. References: the step that copies; the same by plain functions and hand-written
updates (Loshchilov and Hutter, 2019), which a framework must cost nothing beside; layers written out against one scan
over stacked layers; all logits at once against pieces of them; layers that are kept against layers that are computed
again, each asked for the largest batch in the memory of its device (16 GB of a TPU v5e, 141 GB of an H200: by
compiling, so that neither need be there); the optimiser outside of `nnx.jit` (a program for each operation and array).
What goes wrong here still trains: a state that is half donated, the loss once more for the log, decay on every array, a
loss of probabilities fed with indices, batch statistics lost on a copy of the model or read where they should be
computed, logits kept for the way back, layers that are no longer computed again. Shown beside the rate where the chip's
peak is known (`jaxgate.model.chips`): model FLOPs utilisation, by the closed formula of the model's products (Chowdhery
et al., "PaLM", 2022). Sources: Flax's guides on the functional interface, on `nnx.jit` and on `TrainState`; Optax's
reference of `adamw` (`mask=`).
"""

from jaxgate import Case
from workloads.training import deep, lm, resnet, vit

CASES: tuple[Case, ...] = (*vit.CASES, *resnet.CASES, *lm.CASES, *deep.CASES)
