"""The composed train step: every transformation of this catalogue in one program.

Micro-batches under ``vmap``, gradients accumulated by ``scan``, rematerialised blocks, ``value_and_grad`` with aux,
donated state, a mesh outside; a Flax NNX model and an Optax optimiser. The subject is always the whole composition;
each case has a reference that lacks one layer of it, and claims what that layer buys.
"""

from __future__ import annotations

from jaxgate.model import Case
from workloads.composed import meshes, one_device

CASES: tuple[Case, ...] = (*one_device.CASES, *meshes.CASES)
