"""Faults of programs for many devices: collectives and layouts."""

from tests.faults.model import faults_of

collective = faults_of(kind="collective")
sharding = faults_of(kind="sharding")

_COLLECTIVES = frozenset({"collectives", "collective_bytes"})
_LAYOUT = frozenset({"collectives", "collective_bytes", "argument_bytes", "temp_bytes", "xla_flops"})

COLLECTIVES = (
    collective(
        "the gradients are summed in every micro-batch",
        "data_parallel",
        (
            "lambda t, g: t + g / MICRO, total, grads)",
            'lambda t, g: t + jax.lax.psum(g, "data") / DEVICES / MICRO, total, grads)',
        ),
        ('jax.lax.psum(g, "data") / DEVICES, grads)\n    return', "g, grads)\n    return"),
        moves=_COLLECTIVES,
        culprit=r"all.?reduce|psum",
        at=('t + jax.lax.psum(g, "data")',),
    ),
    collective(
        "the gradients are summed a second time",
        "data_parallel",
        (
            'jax.lax.psum(g, "data") / DEVICES, grads)',
            'jax.lax.pmean(jax.lax.psum(g, "data") / DEVICES, "data"), grads)',
        ),
        moves=_COLLECTIVES,
        culprit=r"all.?reduce|psum|pmean",
        at=("jax.lax.pmean(",),
    ),
    collective(
        "the gradients of all devices are gathered and averaged",
        "data_parallel",
        ('jax.lax.psum(g, "data") / DEVICES, grads)', 'jnp.mean(jax.lax.all_gather(g, "data"), axis=0), grads)'),
        moves=_COLLECTIVES,
        culprit=r"all.?gather",
        at=("jax.lax.all_gather(",),
    ),
    collective(
        "the parameters are averaged in every step as well",
        "pmap_step",
        (
            "return params - RATE * grads\n\n\ndef whole",
            'return jax.lax.pmean(params - RATE * grads, "data")\n\n\ndef whole',
        ),
        moves=_COLLECTIVES,
        culprit=r"all.?reduce|psum|pmean",
        at=("jax.lax.pmean(params",),
    ),
    collective(
        "the hidden units change their layout between two layers",
        "tensor_parallel",
        ('NamedSharding(mesh, P("data", "model")))', 'NamedSharding(mesh, P("model", "data")))'),
        moves=_COLLECTIVES,
        culprit=r"all.?to.?all|all.?gather|collective.?permute|sharding",
        at=('P("model", "data")))', "return hidden @", "hidden = jnp.tanh"),
    ),
    collective(
        "the hidden units are replicated between two layers",
        "tensor_parallel",
        ('NamedSharding(mesh, P("data", "model")))', "NamedSharding(mesh, P()))"),
        moves=_COLLECTIVES,
        culprit=r"all.?gather|sharding",
        at=("NamedSharding(mesh, P()))", "return hidden @", "hidden = jnp.tanh"),
    ),
)

SHARDING = (
    sharding(
        "the momentum lies whole on each device",
        "fsdp",
        (
            "velocity = jax.device_put([np.zeros_like(kernel) for kernel in kernels], rows)",
            "whole = NamedSharding(mesh, P())\n    velocity = jax.device_put([np.zeros_like(kernel) for kernel in kernels], whole)",
        ),
        ("out_shardings=(rows, rows, None)", "out_shardings=(rows, whole, None)"),
        moves={"replicated_bytes", "argument_bytes"},
        culprit=r"velocity",
    ),
    sharding(
        "the first layer lies whole on each device",
        "tensor_parallel",
        ('"up": NamedSharding(mesh, P(None, "model"))', '"up": NamedSharding(mesh, P())'),
        moves={"replicated_bytes", "argument_bytes"},
        culprit=r"params\['up'\]",
    ),
    sharding(
        "the batch is no longer spread over the devices",
        "mesh_forward",
        ("        x = jax.lax.with_sharding_constraint(x, spread)\n", ""),
        moves=_LAYOUT,
        culprit=r"shard(ing|ed less)|replicated|\[128,64\]",
    ),
    sharding(
        "the parameters are stored on every device",
        "fsdp",
        ("params = jax.device_put(kernels, rows)", "params = jax.device_put(kernels, NamedSharding(mesh, P()))"),
        ("out_shardings=(rows, rows, None)", "out_shardings=(NamedSharding(mesh, P()), rows, None)"),
        moves=_LAYOUT,
        culprit=r"params\[0\].*(shard|replicated|P\()|(shard|replicated).*params\[0\]",
    ),
    sharding(
        "the optimiser's state is stored on every device",
        "fsdp",
        ("for kernel in kernels], rows)", "for kernel in kernels], NamedSharding(mesh, P()))"),
        ("out_shardings=(rows, rows, None)", "out_shardings=(rows, NamedSharding(mesh, P()), None)"),
        moves=_LAYOUT,
        culprit=r"velocity\[0\].*(shard|replicated|P\()|(shard|replicated).*velocity\[0\]",
    ),
    sharding(
        "the batch is given to every device whole",
        "tensor_parallel",
        (
            '*jax.device_put((x, y), NamedSharding(mesh, P("data", None)))',
            "*jax.device_put((x, y), NamedSharding(mesh, P()))",
        ),
        moves=_LAYOUT,
        culprit=r"\b[xy]\b.*(shard|replicated|P\()|(shard|replicated).*\b[xy]\b",
    ),
)

FAULTS = (*COLLECTIVES, *SHARDING)
