"""Whole training steps of three usual models, by Flax and Optax: what a person's own step looks like."""

from __future__ import annotations

from jaxgate.model import Case
from workloads.training import deep, lm, loop, resnet, vit

CASES: tuple[Case, ...] = (*vit.CASES, *resnet.CASES, *lm.CASES, *deep.CASES, *loop.CASES)
