"""pjit: programs laid out on a mesh by shardings, which the compiler divides; ids say ``pjit``, the code says ``jax.jit``."""

from __future__ import annotations

from jaxgate.model import Case
from workloads.pjit import layer, mlp

CASES: tuple[Case, ...] = (*mlp.CASES, *layer.CASES)
