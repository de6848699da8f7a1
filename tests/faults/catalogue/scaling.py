"""Mistakes that cost little on two devices and everything on many."""

from tests.faults.model import faults_of

data = faults_of("workloads/scaling/network.py")
tensor = faults_of("workloads/scaling/network.py")
sharded = faults_of("workloads/scaling/sharded.py")
accumulated = faults_of("workloads/scaling/sharded.py")

FAULTS = (
    data(
        "the batch is not sharded",
        "data-parallel-step-strong-on-4-devices-vs-gathered",
        ('STATE, SAMPLES = P(), P("data")', "STATE, SAMPLES = P(), P()"),
        moves={"xla_flops"},
        culprit=r"x takes 32,768 bytes of each device, 8,192 before: sharded less",
    ),
    data(
        "the batch of each device grows with their number",
        "data-parallel-step-weak-on-2-devices-vs-gathered",
        ("size, devices, devices * size.samples", "size, devices, devices**2 * size.samples"),
        moves={"xla_flops"},
        culprit=r"x: float32\[128,32\] then, float32\[256,32\] now",
    ),
    data(
        "every device takes all samples to itself",
        "data-parallel-step-weak-on-2-devices-vs-gathered",
        (
            "jax.jit(train_step(), donate_argnums=0, out",
            "jax.jit(\n        lambda state, *batch: train_step()(state, *jax.lax.with_sharding_constraint(batch, shardings(mesh, P()))), "
            "donate_argnums=0, out",
        ),
        moves={"xla_flops", "collective_bytes"},
        culprit=r"all-gather float32\[128,32\] over 'data'",
    ),
    data(
        "the donation of the state is dropped",
        "data-parallel-step-strong-on-1-device-vs-gathered",
        ("train_step(), donate_argnums=0, out", "train_step(), out"),
        moves={"donated_bytes"},
        culprit=r"no longer donated: state",
    ),
    tensor(
        "both kernels of a pair are spread by columns",
        "tensor-parallel-step-strong-on-2-devices-vs-gathered",
        ('BY_COLUMNS, BY_ROWS = P(None, "model"), P("model")', 'BY_COLUMNS = BY_ROWS = P(None, "model")'),
        moves={"collective_bytes"},
        culprit=r"all-(gather|to-all) .* over 'model'",
    ),
    tensor(
        "hidden units are brought together between the kernels",
        "tensor-parallel-step-strong-on-2-devices-vs-gathered",
        (
            'units, everywhere = shardings(mesh, (P(across, "model"), P(across) if across else WHOLE))',
            "units = everywhere = shardings(mesh, P(across) if across else WHOLE)",
        ),
        moves={"collective_bytes"},
        culprit=r"all-gather .* over 'model'",
    ),
    sharded(
        "the momentum stays on every device",
        "fully-sharded-step-weak-on-2-devices-vs-gathered",
        (
            'return {"params": kernels, "momentum": kernels}',
            'return {"params": kernels, "momentum": {"up": P(), "down": P()}}',
        ),
        moves={"argument_bytes"},
        culprit=r"state\['momentum'\]\['(down|up)'\] takes .* bytes of each device, .* before: sharded less",
    ),
    sharded(
        "the kernels of all pairs are collected before the loop",
        "fully-sharded-step-weak-on-2-devices-vs-gathered",
        (
            "train_step(looped(pair))",
            "train_step(lambda p, x: looped(pair)(jax.lax.with_sharding_constraint(p, shardings(mesh, P())), x))",
        ),
        moves={"peak_bytes", "temp_bytes"},
        culprit=r"all-gather float32\[4,",
    ),
    accumulated(
        "gradients are exchanged in each micro-batch",
        "accumulating-step-weak-on-2-devices-vs-gathered",
        ("subject=compiled_accumulating(mesh, ONCE)", "subject=compiled_accumulating(mesh, EACH_TIME)"),
        moves={"collectives", "collective_bytes"},
        culprit=r"all-reduce float32\[\d+,\d+\] over 'data' 2 → 8",
        at=("jax.lax.pmean(gradients(own, x, y), AXIS)",),
    ),
    accumulated(
        "parameters that are not marked as differing by device",
        "accumulating-step-weak-on-2-devices-vs-gathered",
        ('        own = jax.tree.map(lambda leaf: jax.lax.pcast(leaf, AXIS, to="varying"), params)\n', ""),
        ("gradients(own, x, y)", "gradients(params, x, y)"),
        status="INVALID",
        culprit=r"subject gives",
    ),
    accumulated(
        "gradients are exchanged twice",
        "accumulating-step-weak-on-2-devices-vs-gathered",
        ("jax.lax.pmean(gradients(own, x, y), AXIS)", "jax.lax.pmean(jax.lax.pmean(gradients(own, x, y), AXIS), AXIS)"),
        moves={"collectives", "collective_bytes"},
        culprit=r"all-reduce float32\[\d+,\d+\] over 'data' 2 → 4",
        at=("jax.lax.pmean(jax.lax.pmean(",),
    ),
)
