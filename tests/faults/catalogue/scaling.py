"""Mistakes that cost little on two devices and everything on many."""

from __future__ import annotations

from tests.faults.model import Fault

DATA, TENSOR = "workloads/scaling/data.py", "workloads/scaling/tensor.py"
SHARDED, ACCUMULATED = "workloads/scaling/sharded.py", "workloads/scaling/accumulated.py"

FAULTS = (
    Fault(
        name="the batch is not sharded",
        file=DATA,
        case="data-parallel-step-strong-on-4-devices-vs-gathered",
        edits=(('STATE, SAMPLES = P(), P("data")', "STATE, SAMPLES = P(), P()"),),
        moves=frozenset({"xla_flops"}),
        culprit=r"x takes 32,768 bytes of each device, 8,192 before: sharded less",
    ),
    Fault(
        name="the batch of each device grows with their number",
        file=DATA,
        case="data-parallel-step-weak-on-2-devices-vs-gathered",
        edits=(("size, devices, devices * size.samples", "size, devices, devices**2 * size.samples"),),
        moves=frozenset({"xla_flops"}),
        culprit=r"x: float32\[128,32\] then, float32\[256,32\] now",
    ),
    Fault(
        name="every device takes all samples to itself",
        file=DATA,
        case="data-parallel-step-weak-on-2-devices-vs-gathered",
        edits=(
            (
                "jax.jit(train_step(), donate",
                "jax.jit(\n        lambda state, *batch: train_step()(state, *jax.lax.with_sharding_constraint(batch, shardings(mesh, P()))), donate",
            ),
        ),
        moves=frozenset({"xla_flops", "collective_bytes"}),
        culprit=r"all-gather float32\[128,32\] over 'data'",
    ),
    Fault(
        name="the donation of the state is dropped",
        file=DATA,
        case="data-parallel-step-strong-on-1-device-vs-gathered",
        edits=(("donate_argnums=0, out", "out"),),
        moves=frozenset({"donated_bytes"}),
        culprit=r"no longer donated: state",
    ),
    Fault(
        name="both kernels of a pair are spread by columns",
        file=TENSOR,
        case="tensor-parallel-step-strong-on-2-devices-vs-gathered",
        edits=(('BY_COLUMNS, BY_ROWS = P(None, "model"), P("model")', 'BY_COLUMNS = BY_ROWS = P(None, "model")'),),
        moves=frozenset({"collective_bytes"}),
        culprit=r"all-(gather|to-all) .* over 'model'",
    ),
    Fault(
        name="hidden units are brought together between the kernels",
        file=TENSOR,
        case="tensor-parallel-step-strong-on-2-devices-vs-gathered",
        edits=(
            (
                "units, everywhere = shardings(mesh, (BY_COLUMNS, SAMPLES))",
                "units = everywhere = shardings(mesh, SAMPLES)",
            ),
        ),
        moves=frozenset({"collective_bytes"}),
        culprit=r"all-gather .* over 'model'",
    ),
    Fault(
        name="the momentum stays on every device",
        file=SHARDED,
        case="fully-sharded-step-weak-on-2-devices-vs-gathered",
        edits=(
            (
                'return {"params": kernels, "momentum": kernels}',
                'return {"params": kernels, "momentum": {"up": P(), "down": P()}}',
            ),
        ),
        moves=frozenset({"argument_bytes"}),
        culprit=r"state\['momentum'\]\['(down|up)'\] takes .* bytes of each device, .* before: sharded less",
    ),
    Fault(
        name="the kernels of all pairs are collected before the loop",
        file=SHARDED,
        case="fully-sharded-step-weak-on-2-devices-vs-gathered",
        edits=(
            (
                "train_step(looped(pair))",
                "train_step(lambda p, x: looped(pair)(jax.lax.with_sharding_constraint(p, shardings(mesh, P())), x))",
            ),
        ),
        moves=frozenset({"peak_bytes", "temp_bytes"}),
        culprit=r"all-gather float32\[4,",
    ),
    Fault(
        name="gradients are exchanged in each micro-batch",
        file=ACCUMULATED,
        case="accumulating-step-weak-on-2-devices-vs-gathered",
        edits=(("subject=compiled(mesh, ONCE)", "subject=compiled(mesh, EACH_TIME)"),),
        moves=frozenset({"collectives", "collective_bytes"}),
        culprit=r"all-reduce float32\[\d+,\d+\] over 'data' 2 → 8",
        at=("jax.lax.pmean(gradients(own, x, y), AXIS)",),
    ),
    Fault(
        name="parameters that are not marked as differing by device",
        file=ACCUMULATED,
        case="accumulating-step-weak-on-2-devices-vs-gathered",
        edits=(
            ('        own = jax.tree.map(lambda leaf: jax.lax.pcast(leaf, AXIS, to="varying"), params)\n', ""),
            ("gradients(own, x, y)", "gradients(params, x, y)"),
        ),
        status="INVALID",
        culprit=r"subject gives",
    ),
    Fault(
        name="gradients are exchanged twice",
        file=ACCUMULATED,
        case="accumulating-step-weak-on-2-devices-vs-gathered",
        edits=(
            (
                "jax.lax.pmean(gradients(own, x, y), AXIS)",
                "jax.lax.pmean(jax.lax.pmean(gradients(own, x, y), AXIS), AXIS)",
            ),
        ),
        moves=frozenset({"collectives", "collective_bytes"}),
        culprit=r"all-reduce float32\[\d+,\d+\] over 'data' 2 → 4",
        at=("jax.lax.pmean(jax.lax.pmean(",),
    ),
)
