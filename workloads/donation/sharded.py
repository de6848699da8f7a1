"""Donation on eight devices: the state divided among them, and the batch.

A shard of a donated array is reused where the result has the same sharding: it is pinned with ``out_shardings``,
which keeps the second step from compiling again too.
"""

from __future__ import annotations

from typing import Any

import jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxgate import Alternative, Batch, Computation, Family, claim
from workloads.donation.steps import State, Step, make_inputs, step_flops, train_step
from workloads.parts import Extent, grid, sizes

CASES = Family("donation")

DEVICES = 8
SIZES = sizes(batch=(64, 8192), width=(256, 4096), layers=(2, 8))


def shardings_of(state: State, mesh: Mesh, spec: PartitionSpec) -> Any:
    """One sharding for each array of the state; a number, such as AdamW's count, is replicated."""
    return jax.tree.map(lambda leaf: NamedSharding(mesh, spec if leaf.ndim else PartitionSpec()), state)


def described(tree: Any, shardings: Any) -> Any:
    """Shapes, dtypes and shardings in the place of arrays."""
    return jax.tree.map(
        lambda leaf, sharding: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding), tree, shardings
    )


def jitted(step: Step, returned: Any, *, donate: bool) -> Any:
    """The step, whose new state is laid out like ``returned``, a tree of shardings."""
    return jax.jit(step, donate_argnums=0 if donate else (), out_shardings=(returned, None))


@CASES.workload("momentum-step-with-sharded-state-on-8-devices-donated-vs-copied", sizes=SIZES, devices=DEVICES)
def on_a_mesh(size: Extent) -> Computation:
    """The step with its state donated, against the same step that copies; a copy of the state on each as the alternative."""
    mesh = grid(data=DEVICES)
    step = train_step("momentum")
    state, *batch = make_inputs(size, "momentum")
    x, y = jax.device_put(batch, NamedSharding(mesh, PartitionSpec("data")))
    kept, other = (shardings_of(state, mesh, spec) for spec in (PartitionSpec("data"), PartitionSpec()))
    return Computation(
        subject=jitted(step, kept, donate=True),
        reference=jitted(step, kept, donate=False),
        alternatives={
            "the other layout": Alternative(
                function=jitted(step, other, donate=True), args=(described(state, other), x, y)
            )
        },
        args=(jax.device_put(state, kept), x, y),
        carry=0,
        batch=Batch(argument=1, size=size.batch),
        analytic_flops=step_flops(size),
        claims=[
            claim("donated_bytes >= 1", "the state is donated at all"),
            claim("aliased_bytes >= donated_bytes", "every donated shard is reused, on each device"),
            claim(
                f"aliased_bytes <= {1.001 / DEVICES} * alternatives",
                "a device holds, and reuses, its share of the state",
            ),
            claim("state_bytes <= 0.6 * reference", "one state is held between calls, not two"),
            claim("peak_bytes <= reference", "and it costs no other memory"),
            claim("collectives == reference", "donation sends nothing"),
            claim("matmul_flops == analytic_flops", "one forward, one backward pass on all devices together"),
        ],
    )
