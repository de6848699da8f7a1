"""``pmap``: one program on every device, each with a share of the batch and its own copy of the state.

``steps`` trains, ``reductions`` chooses what is sent, ``sharded`` keeps a share of the parameters instead of a copy, ``axes`` places arguments and results,
``collectives`` moves bytes. Each way of ``pmap`` stands beside its twin, ``jax.jit`` of ``jax.shard_map``.
"""

from __future__ import annotations

from jaxgate.model import Case
from workloads.pmap import axes, collectives, reductions, sharded, steps

CASES: tuple[Case, ...] = (*steps.CASES, *reductions.CASES, *sharded.CASES, *axes.CASES, *collectives.CASES)
