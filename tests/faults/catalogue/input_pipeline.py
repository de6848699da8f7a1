"""Programs and transfers that creep in between the data and the step."""

from __future__ import annotations

from tests.faults.model import Fault

_BATCHES = "workloads/input_pipeline/batches.py"
_LAYOUT = "workloads/input_pipeline/layout.py"
_LOOP = "input-batches-stacked-and-prefetched-vs-collated-by-jnp-asarray"

FAULTS = (
    Fault(
        name="examples are sent one by one",
        file=_BATCHES,
        case=_LOOP,
        edits=(("prefetched(stacked(part)", "prefetched(collated_on_the_device(part)"),),
        moves=frozenset({"launches", "host_transfers"}),
        culprit=r"programs started in a call",
        at=("jnp.stack([jnp.asarray",),
    ),
    Fault(
        name="what was sent ahead is forgotten at the end",
        file=_BATCHES,
        case=_LOOP,
        edits=(("    yield from waiting\n", ""),),
        status="INVALID",
        culprit=r"sample 16 of 32 does not influence the result",
    ),
    Fault(
        name="the last batch is dropped",
        file=_BATCHES,
        case=_LOOP,
        edits=(("range(0, len(examples), size)", "range(0, len(examples) - size, size)"),),
        status="INVALID",
        culprit=r"sample 31 of 32 does not influence the result",
    ),
    Fault(
        name="the loss is read at every step",
        file=_BATCHES,
        case=_LOOP,
        edits=(
            (
                "            losses.append(loss)\n        return params, losses[-1]",
                "            losses.append(float(loss))\n        return params, loss",
            ),
        ),
        moves=frozenset({"host_transfers"}),
        at=("losses.append(float(loss))",),
    ),
    Fault(
        name="images are augmented before the step",
        file=_BATCHES,
        case="input-augmented-inside-the-step-vs-eagerly-before-it",
        edits=(("subject=inside", "subject=eagerly"),),
        moves=frozenset({"launches"}),
        culprit=r"programs started in a call",
        at=("flips = jax.random", "images = jnp.where(flips", "return normalised(images)", "return (images.astype("),
    ),
    Fault(
        name="a call for each step comes back",
        file=_BATCHES,
        case="input-of-several-steps-in-one-call-vs-one-call-each",
        edits=(("subject=one_call", "subject=calls"),),
        moves=frozenset({"launches"}),
        culprit=r"programs started in a call: .*step 0 → 4",
    ),
    Fault(
        name="images are turned around for each convolution",
        file=_LAYOUT,
        case="input-images-in-nhwc-vs-in-nchw",
        edits=(("train_step(channels_last,", "train_step(turned_for_each,"),),
        moves=frozenset({"stablehlo_ops"}),
        culprit=r"transpose",
        at=("inner = convolved(x.transpose", "x = jnp.tanh(inner.transpose"),
    ),
)
