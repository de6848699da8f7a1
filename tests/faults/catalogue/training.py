"""Training steps that still train: slower, larger, or towards something else."""

from __future__ import annotations

from tests.faults.model import Fault

_STATES = "workloads/training/states.py"
_VIT = "workloads/training/vit.py"
_RESNET = "workloads/training/resnet.py"
_DEEP = "workloads/training/deep.py"
_LOOP = "workloads/training/loop.py"

_BY_HAND = "resnet-step-with-batch-statistics-in-nnx-vs-threaded-by-hand"
_DECAY = "vit-adamw-step-with-decay-of-kernels-only-vs-written-by-hand"

FAULTS = (
    Fault(
        name="the optimiser's state is not donated",
        file=_VIT,
        case="vit-adamw-step-in-nnx-donated-vs-copied",
        edits=(("donate_argnums=(0, 1))", "donate_argnums=0)"),),
        moves=frozenset({"donated_bytes", "state_bytes"}),
        culprit=r"no longer donated: opt_state",
    ),
    Fault(
        name="the loss is computed again for the log",
        file=_STATES,
        case="vit-adamw-step-in-nnx-donated-vs-copied",
        edits=(
            (
                "        return optax.apply_updates(params, updates), opt_state, loss\n",
                "        params = optax.apply_updates(params, updates)\n"
                "        return params, opt_state, loss_of(params, inputs, labels)\n",
            ),
        ),
        moves=frozenset({"matmul_flops"}),
        culprit=r"float32\[",
    ),
    Fault(
        name="weight decay pulls at every array",
        file=_STATES,
        case=_DECAY,
        edits=((", mask=only_kernels)", ")"),),
        status="INVALID",
        culprit=r"subject gives .*, reference",
    ),
    Fault(
        name="indices of classes go into a loss of probabilities",
        file=_STATES,
        case=_DECAY,
        edits=(
            (
                "optax.softmax_cross_entropy_with_integer_labels(logits.astype(jnp.float32), labels)",
                "optax.softmax_cross_entropy(logits.astype(jnp.float32), labels[..., None])",
            ),
        ),
        status="INVALID",
        culprit=r"subject gives .*, reference",
    ),
    Fault(
        name="the forward pass runs on a copy, and its batch statistics are lost",
        file=_RESNET,
        case=_BY_HAND,
        edits=(("(images), labels))(model)", "(images), labels))(nnx.clone(model))"),),
        status="INVALID",
        culprit=r"\['(mean|var)'\].*subject gives .*, reference",
    ),
    Fault(
        name="training normalises by running statistics",
        file=_RESNET,
        case=_BY_HAND,
        edits=(("momentum=KEPT,", "momentum=KEPT, use_running_average=True,"),),
        status="INVALID",
        culprit=r"subject gives .*, reference",
    ),
    Fault(
        name="layers are written out again",
        file=_DEEP,
        case="lm-step-with-its-layers-in-one-scan-vs-written-out",
        edits=(
            (
                "    return jax.lax.scan(lambda x, params: (layer(x, params), None), x, layers)[0]\n",
                "    return written_out(layer, x, layers)\n",
            ),
        ),
        moves=frozenset({"stablehlo_ops"}),
        culprit=r"loop|scan|while",
    ),
    Fault(
        name="all pieces of the logits are kept for the way back",
        file=_DEEP,
        case="lm-step-with-logits-in-chunks-vs-all-at-once",
        edits=(("    @partial(jax.checkpoint, prevent_cse=False)\n", ""),),
        moves=frozenset({"temp_bytes"}),
        culprit=r"remat is lost or keeps more; float32\[4,8,32\] x float32\[32,2048\]",
    ),
    Fault(
        name="the optimiser runs outside of the program",
        file=_LOOP,
        case="vit-step-whole-under-nnx-jit-vs-its-optimiser-outside",
        edits=(("subject=seen(whole_step)", "subject=seen(optimiser_outside)"),),
        moves=frozenset({"launches"}),
        culprit=r"programs started in a call",
        at=("optimizer.update(model, grads)",),
    ),
)
