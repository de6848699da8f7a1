"""Faults of programs for many devices: collectives and layouts."""

from __future__ import annotations

from tests.faults.model import Fault

_COLLECTIVES = frozenset({"collectives", "collective_bytes"})
_LAYOUT = frozenset({"collectives", "collective_bytes", "argument_bytes", "temp_bytes", "xla_flops"})

COLLECTIVES = (
    Fault(
        name="the gradients are summed in every micro-batch",
        kind="collective",
        case="data_parallel",
        edits=(
            (
                "lambda t, g: t + g / MICRO, total, grads)",
                'lambda t, g: t + jax.lax.psum(g, "data") / DEVICES / MICRO, total, grads)',
            ),
            ('jax.lax.psum(g, "data") / DEVICES, grads)\n    return', "g, grads)\n    return"),
        ),
        moves=_COLLECTIVES,
        culprit=r"all.?reduce|psum",
        at=('t + jax.lax.psum(g, "data")',),
    ),
    Fault(
        name="the gradients are summed a second time",
        kind="collective",
        case="data_parallel",
        edits=(
            (
                'jax.lax.psum(g, "data") / DEVICES, grads)',
                'jax.lax.pmean(jax.lax.psum(g, "data") / DEVICES, "data"), grads)',
            ),
        ),
        moves=_COLLECTIVES,
        culprit=r"all.?reduce|psum|pmean",
        at=("jax.lax.pmean(",),
    ),
    Fault(
        name="the gradients of all devices are gathered and averaged",
        kind="collective",
        case="data_parallel",
        edits=(
            ('jax.lax.psum(g, "data") / DEVICES, grads)', 'jnp.mean(jax.lax.all_gather(g, "data"), axis=0), grads)'),
        ),
        moves=_COLLECTIVES,
        culprit=r"all.?gather",
        at=("jax.lax.all_gather(",),
    ),
    Fault(
        name="the parameters are averaged in every step as well",
        kind="collective",
        case="pmap_step",
        edits=(
            (
                "return params - RATE * grads\n\n\ndef whole",
                'return jax.lax.pmean(params - RATE * grads, "data")\n\n\ndef whole',
            ),
        ),
        moves=_COLLECTIVES,
        culprit=r"all.?reduce|psum|pmean",
        at=("jax.lax.pmean(params",),
    ),
    Fault(
        name="the hidden units change their layout between two layers",
        kind="collective",
        case="tensor_parallel",
        edits=(('NamedSharding(mesh, P("data", "model")))', 'NamedSharding(mesh, P("model", "data")))'),),
        moves=_COLLECTIVES,
        culprit=r"all.?to.?all|all.?gather|collective.?permute|sharding",
        at=('P("model", "data")))', "return hidden @", "hidden = jnp.tanh"),
    ),
    Fault(
        name="the hidden units are replicated between two layers",
        kind="collective",
        case="tensor_parallel",
        edits=(('NamedSharding(mesh, P("data", "model")))', "NamedSharding(mesh, P()))"),),
        moves=_COLLECTIVES,
        culprit=r"all.?gather|sharding",
        at=("NamedSharding(mesh, P()))", "return hidden @", "hidden = jnp.tanh"),
    ),
)

SHARDING = (
    Fault(
        name="the batch is no longer spread over the devices",
        kind="sharding",
        case="mesh_forward",
        edits=(("        x = jax.lax.with_sharding_constraint(x, spread)\n", ""),),
        moves=_LAYOUT,
        culprit=r"shard(ing|ed less)|replicated|\[128,64\]",
    ),
    Fault(
        name="the parameters are stored on every device",
        kind="sharding",
        case="fsdp",
        edits=(
            ("params = jax.device_put(kernels, rows)", "params = jax.device_put(kernels, NamedSharding(mesh, P()))"),
            ("out_shardings=(rows, rows, None)", "out_shardings=(NamedSharding(mesh, P()), rows, None)"),
        ),
        moves=_LAYOUT,
        culprit=r"params\[0\].*(shard|replicated|P\()|(shard|replicated).*params\[0\]",
    ),
    Fault(
        name="the optimiser's state is stored on every device",
        kind="sharding",
        case="fsdp",
        edits=(
            ("for kernel in kernels], rows)", "for kernel in kernels], NamedSharding(mesh, P()))"),
            ("out_shardings=(rows, rows, None)", "out_shardings=(rows, NamedSharding(mesh, P()), None)"),
        ),
        moves=_LAYOUT,
        culprit=r"velocity\[0\].*(shard|replicated|P\()|(shard|replicated).*velocity\[0\]",
    ),
    Fault(
        name="the batch is given to every device whole",
        kind="sharding",
        case="tensor_parallel",
        edits=(
            (
                '*jax.device_put((x, y), NamedSharding(mesh, P("data", None)))',
                "*jax.device_put((x, y), NamedSharding(mesh, P()))",
            ),
        ),
        moves=_LAYOUT,
        culprit=r"\b[xy]\b.*(shard|replicated|P\()|(shard|replicated).*\b[xy]\b",
    ),
)

FAULTS = (*COLLECTIVES, *SHARDING)
