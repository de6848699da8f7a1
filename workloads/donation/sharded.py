"""Donation on eight devices: the state divided among them, or a copy of it on each, and the batch divided.

A shard of a donated array is reused where the result has the same sharding: it is pinned with ``out_shardings``,
which keeps the second step from compiling again too.
"""

from __future__ import annotations

from typing import Any, Literal

import jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxgate import Alternative, Batch, Claim, Computation, Family, claim
from workloads.donation.steps import Size, State, Step, make_inputs, train_step
from workloads.parts import grid

CASES = Family("donation")

DEVICES = 8
SIZES: dict[Literal["small", "full"], Size] = {
    "small": Size(batch=64, width=256, layers=2),
    "full": Size(batch=8192, width=4096, layers=8),
}
LAYOUTS = {"sharded": PartitionSpec("data"), "replicated": PartitionSpec()}
"""How the arrays of the state lie: by their first axis on all devices, or a copy on each."""


def shardings_of(state: State, mesh: Mesh, layout: str) -> Any:
    """One sharding for each array of the state; a number, such as AdamW's count, is replicated."""
    return jax.tree.map(lambda leaf: NamedSharding(mesh, LAYOUTS[layout] if leaf.ndim else PartitionSpec()), state)


def described(tree: Any, shardings: Any) -> Any:
    """Shapes, dtypes and shardings in the place of arrays."""
    return jax.tree.map(
        lambda leaf, sharding: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding), tree, shardings
    )


def jitted(step: Step, returned: Any, *, donate: bool) -> Any:
    """The step, whose new state is laid out like ``returned``, a tree of shardings."""
    return jax.jit(step, donate_argnums=0 if donate else (), out_shardings=(returned, None))


@CASES.workload(
    "{optimiser}-step-with-{layout}-state-on-8-devices-donated-vs-copied",
    sweep=({"optimiser": "momentum", "layout": "sharded"},),
    sizes=SIZES,
    devices=DEVICES,
)
def on_a_mesh(size: Size, optimiser: str, layout: str) -> Computation:
    """The step with its state donated, against the same step that copies; the other layout of the state as the alternative."""
    mesh = grid(data=DEVICES)
    step = train_step(optimiser)
    state, *batch = make_inputs(size, optimiser)
    x, y = jax.device_put(batch, NamedSharding(mesh, PartitionSpec("data")))
    kept = shardings_of(state, mesh, layout)
    other = shardings_of(state, mesh, "replicated" if layout == "sharded" else "sharded")
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
        analytic_flops=size.step_flops,
        claims=claims(layout),
    )


def claims(layout: str) -> tuple[Claim, ...]:
    """What donation must give on each device, on any hardware."""
    share = (
        claim(
            f"aliased_bytes <= {1.001 / DEVICES} * alternatives", "a device holds, and reuses, its share of the state"
        )
        if layout == "sharded"
        else claim(f"aliased_bytes >= {0.999 * DEVICES} * alternatives", "a device holds, and reuses, all of the state")
    )
    return (
        claim("donated_bytes >= 1", "the state is donated at all"),
        claim("aliased_bytes >= donated_bytes", "every donated shard is reused, on each device"),
        share,
        claim("state_bytes <= 0.6 * reference", "one state is held between calls, not two"),
        claim("peak_bytes <= reference", "and it costs no other memory"),
        claim("collectives == reference", "donation sends nothing"),
        claim("matmul_flops == analytic_flops", "one forward, one backward pass on all devices together"),
    )
