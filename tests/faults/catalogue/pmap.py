"""Replicas that drift apart, samples that nobody sees, and bytes that travel for nothing."""

from __future__ import annotations

from tests.faults.model import Fault

STEPS, REDUCTIONS = "workloads/pmap/steps.py", "workloads/pmap/reductions.py"
SHARDED, AXES, COLLECTIVES = "workloads/pmap/sharded.py", "workloads/pmap/axes.py", "workloads/pmap/collectives.py"
STEP = "data-parallel-step-by-pmap-vs-one-device"
DEALT = "step-on-a-batch-dealt-to-replicas-vs-one-device"

FAULTS = (
    Fault(
        name="the pmean of the gradients is forgotten",
        file=STEPS,
        case=STEP,
        edits=(("    grads = jax.lax.pmean(grads, AXIS)\n", ""),),
        status="INVALID",
        culprit=r"result\[0\].*subject gives .*reference",
    ),
    Fault(
        name="psum where pmean was meant",
        file=STEPS,
        case=STEP,
        edits=(("grads = jax.lax.pmean(grads, AXIS)", "grads = jax.lax.psum(grads, AXIS)"),),
        status="INVALID",
        culprit=r"result\[0\].*subject gives .*reference",
    ),
    Fault(
        name="the loss is averaged twice",
        file=STEPS,
        case=STEP,
        edits=(("loss = jax.lax.pmean(loss, AXIS)", "loss = jax.lax.pmean(jax.lax.pmean(loss, AXIS), AXIS)"),),
        moves=frozenset({"collectives"}),
        culprit=r"all-reduce float32\[\] over 'data' 1 → 2",
        at=("jax.lax.pmean(jax.lax.pmean(loss",),
    ),
    Fault(
        name="the donation of the replicas is dropped",
        file=STEPS,
        case="step-with-donated-replicas-vs-copied",
        edits=(
            ("jax.pmap(momentum_step, axis_name=AXIS, donate_argnums=0)", "jax.pmap(momentum_step, axis_name=AXIS)"),
            ("reference=jax.pmap(momentum_step, axis_name=AXIS)", "reference=jax.pmap(momentum_step, AXIS)"),
        ),
        moves=frozenset({"donated_bytes"}),
        culprit=r"no longer donated: state\[0\]",
    ),
    Fault(
        name="the batch is cut to its size by the number of devices",
        file=STEPS,
        case=DEALT,
        edits=(("x.reshape(DEVICES, -1, x.shape[-1])", "x[: len(x) // DEVICES].reshape(DEVICES, -1, x.shape[-1])"),),
        status="INVALID",
        culprit="does not influence the result: the batch is cut",
    ),
    Fault(
        name="a batch larger than the devices is mapped without being dealt out",
        file=STEPS,
        case=DEALT,
        edits=(("return x.reshape(DEVICES, -1, x.shape[-1])", "return x"),),
        status="INVALID",
        culprit=r"size not equal to one, got shape=\(8, 64\)",
    ),
    Fault(
        name="in_axes gives every device the whole batch",
        file=STEPS,
        case=DEALT,
        edits=(
            ("in_axes=(0, 0, 0)", "in_axes=(0, None, None)"),
            ("replicas(params, split(x), split(y))", "replicas(params, x, y)"),
        ),
        moves=frozenset({"matmul_flops"}),
        culprit=r"all-gather float32\[64,64\] over 'data' \(inserted\) 0 → 2",
    ),
    Fault(
        name="gradients are widened before they travel",
        file=REDUCTIONS,
        case="step-with-bfloat16-gradients-reduced-vs-widened-first",
        edits=(
            (
                "widen(jax.lax.pmean(half_gradients(params, x, y), AXIS))",
                "jax.lax.pmean(widen(half_gradients(params, x, y)), axis_name=AXIS)",
            ),
        ),
        moves=frozenset({"collective_bytes"}),
        culprit=r"all-reduce float32\[64,64\] over 'data' 0 → 3",
        at=("y)), axis_name=AXIS)",),
    ),
    Fault(
        name="gradients are averaged twice",
        file=REDUCTIONS,
        case="step-with-bfloat16-gradients-reduced-vs-widened-first",
        edits=(
            (
                "    grads = widen(jax.lax.pmean(half_gradients(params, x, y), AXIS))\n",
                "    grads = widen(jax.lax.pmean(half_gradients(params, x, y), AXIS))\n"
                "    grads = jax.lax.pmean(grads, axis_name=AXIS)\n",
            ),
        ),
        moves=frozenset({"collectives", "collective_bytes"}),
        culprit=r"all-reduce float32\[64,64\] over 'data' 0 → 3",
        at=("pmean(grads, axis_name=AXIS)",),
    ),
    Fault(
        name="metrics are reduced one by one",
        file=REDUCTIONS,
        case="metrics-reduced-as-one-vector-vs-one-by-one",
        edits=(
            (
                "jax.lax.pmean(jnp.stack(figures(params, x, y)), AXIS)",
                "jnp.stack([jax.lax.pmean(f, AXIS) for f in figures(params, x, y)])",
            ),
        ),
        moves=frozenset({"collectives"}),
        culprit=r"all-reduce float32\[\] over 'data' 0 → 4",
        at=("for f in figures",),
    ),
    Fault(
        name="parameters are gathered once more on the way back",
        file=SHARDED,
        case="fsdp-step-on-shards-vs-one-device",
        edits=(
            (
                "        layer = gathered(shard)\n        x = mlp_layer(layer, x)\n",
                "        x = jax.checkpoint(lambda s, x: mlp_layer(gathered(s), x))(shard, x)\n",
            ),
        ),
        moves=frozenset({"collective_bytes"}),
        culprit=r"all-gather float32\[16,128\] over 'data' 3 → ",
    ),
    Fault(
        name="the shards are placed whole on every device",
        file=SHARDED,
        case="fsdp-step-on-shards-vs-one-device",
        edits=(
            ("    shards = stacked(", "    shards = whole("),
            ("line, stacked", "line, stacked, whole"),
        ),
        moves=frozenset({"argument_bytes"}),
        culprit=r"step 2 recompiled: shards.* sharding .*spec=P\(\).*spec=P\('data',\)",
    ),
    Fault(
        name="results are handed back from one device although they differ",
        file=AXES,
        case="forward-with-parameters-broadcast-samples-on-axis-0-results-on-axis-None-vs-one-device",
        edits=(("return jax.lax.pmean(mlp(params, x), AXIS)", "return mlp(params, x)"),),
        status="INVALID",
        culprit="out_axes",
    ),
    Fault(
        name="the devices that were asked for are forgotten",
        file=AXES,
        case="forward-on-every-other-device-vs-one-device",
        edits=((", devices=devices)", ")"),),
        status="INVALID",
        culprit="devices",
    ),
    Fault(
        name="a sum is made of a gather",
        file=COLLECTIVES,
        case="psum-of-4-KiB-by-pmap",
        edits=(("jax.pmap(summed, axis", "jax.pmap(lambda v: jax.lax.all_gather(v, AXIS).sum(0), axis"),),
        moves=frozenset({"collective_bytes"}),
        culprit=r"all-gather float32\[1024\] over 'data' 0 → 1",
        at=("all_gather(v, AXIS).sum(0)",),
    ),
)
