"""Programs and transfers that creep in between the data and the step."""

from tests.faults.model import faults_of

batches = faults_of("workloads/input_pipeline.py")
layout = faults_of("workloads/input_pipeline.py")

_LOOP = "input-batches-stacked-and-prefetched-vs-collated-by-jnp-asarray"

FAULTS = (
    batches(
        "examples are sent one by one",
        _LOOP,
        ("prefetched(stacked(part)", "prefetched(collated_on_the_device(part)"),
        moves={"launches", "host_transfers"},
        culprit=r"programs started in a call",
        at=("jnp.stack([jnp.asarray",),
    ),
    batches(
        "what was sent ahead is forgotten at the end",
        _LOOP,
        ("    yield from waiting\n", ""),
        status="INVALID",
        culprit=r"sample 16 of 32 does not influence the result",
    ),
    batches(
        "the last batch is dropped",
        _LOOP,
        ("range(0, len(examples), size)", "range(0, len(examples) - size, size)"),
        status="INVALID",
        culprit=r"sample 31 of 32 does not influence the result",
    ),
    batches(
        "the loss is read at every step",
        _LOOP,
        (
            "            losses.append(loss)\n        return params, losses[-1]",
            "            losses.append(float(loss))\n        return params, loss",
        ),
        moves={"host_transfers"},
        at=("losses.append(float(loss))",),
    ),
    batches(
        "images are augmented before the step",
        "input-augmented-inside-the-step-vs-eagerly-before-it",
        ("subject=inside", "subject=eagerly"),
        moves={"launches"},
        culprit=r"programs started in a call",
        at=("flips = jax.random", "images = jnp.where(flips", "return normalised(images)", "return (images.astype("),
    ),
    batches(
        "a call for each step comes back",
        "input-of-several-steps-in-one-call-vs-one-call-each",
        ("subject=one_call", "subject=calls"),
        moves={"launches"},
        culprit=r"programs started in a call: .*step 0 → 4",
    ),
    layout(
        "images are turned around for each convolution",
        "input-images-in-nhwc-vs-in-nchw",
        ("train_step(channels_last,", "train_step(turned_for_each,"),
        moves={"stablehlo_ops"},
        culprit=r"transpose",
        at=("inner = convolved(x.transpose", "x = jnp.tanh(inner.transpose"),
    ),
)
