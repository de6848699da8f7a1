"""pjit: programs laid out on a mesh by shardings, which the compiler divides; ids say ``pjit``, the code ``jax.jit``."""

from __future__ import annotations

from jaxgate.model import Case
from workloads.pjit import embedding, explicit, gathering, layer, mlp, moving, specs, sweep

CASES: tuple[Case, ...] = (
    *mlp.CASES,
    *layer.CASES,
    *specs.CASES,
    *embedding.CASES,
    *gathering.CASES,
    *explicit.CASES,
    *moving.CASES,
    *sweep.CASES,
)
