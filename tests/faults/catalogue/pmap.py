"""Replicas that drift apart, samples that nobody sees, and bytes that travel for nothing."""

from tests.faults.model import faults_of

steps = faults_of("workloads/pmap/steps.py")
reductions = faults_of("workloads/pmap/steps.py")
sharded = faults_of("workloads/pmap/axes.py")
axes = faults_of("workloads/pmap/axes.py")
collectives = faults_of("workloads/pmap/collectives.py")

STEP = "data-parallel-step-by-pmap-vs-one-device"
DEALT = "step-on-a-batch-dealt-to-replicas-vs-one-device"

FAULTS = (
    steps(
        "the pmean of the gradients is forgotten",
        STEP,
        ("    grads = jax.lax.pmean(grads, AXIS)\n", ""),
        status="INVALID",
        culprit=r"result\[0\].*subject gives .*reference",
    ),
    steps(
        "psum where pmean was meant",
        STEP,
        ("grads = jax.lax.pmean(grads, AXIS)", "grads = jax.lax.psum(grads, AXIS)"),
        status="INVALID",
        culprit=r"result\[0\].*subject gives .*reference",
    ),
    steps(
        "the loss is averaged twice",
        STEP,
        ("loss = jax.lax.pmean(loss, AXIS)", "loss = jax.lax.pmean(jax.lax.pmean(loss, AXIS), AXIS)"),
        moves={"collectives"},
        culprit=r"all-reduce float32\[\] over 'data' 1 → 2",
        at=("jax.lax.pmean(jax.lax.pmean(loss",),
    ),
    steps(
        "the donation of the replicas is dropped",
        "step-with-donated-replicas-vs-copied",
        ("jax.pmap(momentum_step, axis_name=AXIS, donate_argnums=0)", "jax.pmap(momentum_step, axis_name=AXIS)"),
        ("reference=jax.pmap(momentum_step, axis_name=AXIS)", "reference=jax.pmap(momentum_step, AXIS)"),
        moves={"donated_bytes"},
        culprit=r"no longer donated: state\[0\]",
    ),
    steps(
        "the batch is cut to its size by the number of devices",
        DEALT,
        ("x.reshape(DEVICES, -1, x.shape[-1])", "x[: len(x) // DEVICES].reshape(DEVICES, -1, x.shape[-1])"),
        status="INVALID",
        culprit="does not influence the result: the batch is cut",
    ),
    steps(
        "a batch larger than the devices is mapped without being dealt out",
        DEALT,
        ("return x.reshape(DEVICES, -1, x.shape[-1])", "return x"),
        status="INVALID",
        culprit=r"size not equal to one, got shape=\(8, 64\)",
    ),
    steps(
        "in_axes gives every device the whole batch",
        DEALT,
        ("in_axes=(0, 0, 0)", "in_axes=(0, None, None)"),
        ("replicas(params, split(x), split(y))", "replicas(params, x, y)"),
        moves={"matmul_flops"},
        culprit=r"all-gather float32\[64,64\] over 'data' \(inserted\) 0 → 2",
    ),
    reductions(
        "gradients are widened before they travel",
        "step-with-bfloat16-gradients-reduced-vs-widened-first",
        (
            "widen(jax.lax.pmean(half_gradients(params, x, y), AXIS))",
            "jax.lax.pmean(widen(half_gradients(params, x, y)), axis_name=AXIS)",
        ),
        moves={"collective_bytes"},
        culprit=r"all-reduce float32\[64,64\] over 'data' 0 → 3",
        at=("y)), axis_name=AXIS)",),
    ),
    reductions(
        "gradients are averaged twice",
        "step-with-bfloat16-gradients-reduced-vs-widened-first",
        (
            "    grads = widen(jax.lax.pmean(half_gradients(params, x, y), AXIS))\n",
            "    grads = widen(jax.lax.pmean(half_gradients(params, x, y), AXIS))\n"
            "    grads = jax.lax.pmean(grads, axis_name=AXIS)\n",
        ),
        moves={"collectives", "collective_bytes"},
        culprit=r"all-reduce float32\[64,64\] over 'data' 0 → 3",
        at=("pmean(grads, axis_name=AXIS)",),
    ),
    reductions(
        "metrics are reduced one by one",
        "metrics-reduced-as-one-vector-vs-one-by-one",
        (
            "jax.lax.pmean(jnp.stack(figures(params, x, y)), AXIS)",
            "jnp.stack([jax.lax.pmean(f, AXIS) for f in figures(params, x, y)])",
        ),
        moves={"collectives"},
        culprit=r"all-reduce float32\[\] over 'data' 0 → 4",
        at=("for f in figures",),
    ),
    sharded(
        "parameters are gathered once more on the way back",
        "fsdp-step-on-shards-vs-one-device",
        (
            "        layer = gathered(shard)\n        x = mlp_layer(layer, x)\n",
            "        x = jax.checkpoint(lambda s, x: mlp_layer(gathered(s), x))(shard, x)\n",
        ),
        moves={"collective_bytes"},
        culprit=r"all-gather float32\[16,128\] over 'data' 3 → ",
    ),
    sharded(
        "the shards are placed whole on every device",
        "fsdp-step-on-shards-vs-one-device",
        ("    shards = stacked(", "    shards = whole("),
        ("line, stacked", "line, stacked, whole"),
        moves={"argument_bytes"},
        culprit=r"step 2 recompiled: shards.* sharding .*spec=P\(\).*spec=P\('data',\)",
    ),
    axes(
        "results are handed back from one device although they differ",
        "forward-with-parameters-broadcast-samples-on-axis-0-results-on-axis-None-vs-one-device",
        ("return jax.lax.pmean(mlp(params, x), AXIS)", "return mlp(params, x)"),
        status="INVALID",
        culprit="out_axes",
    ),
    axes(
        "the devices that were asked for are forgotten",
        "forward-on-every-other-device-vs-one-device",
        (", devices=devices)", ")"),
        status="INVALID",
        culprit="devices",
    ),
    collectives(
        "a sum is made of a gather",
        "psum-of-4-KiB-by-pmap",
        ("jax.pmap(summed, axis", "jax.pmap(lambda v: jax.lax.all_gather(v, AXIS).sum(0), axis"),
        moves={"collective_bytes"},
        culprit=r"all-gather float32\[1024\] over 'data' 0 → 1",
        at=("all_gather(v, AXIS).sum(0)",),
    ),
)
