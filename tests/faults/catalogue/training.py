"""Training steps that still train: slower, larger, or towards something else."""

from tests.faults.model import faults_of

vit = faults_of("workloads/training/vit.py")
states = faults_of("workloads/training/states.py")
resnet = faults_of("workloads/training/resnet.py")
deep = faults_of("workloads/training/deep.py")
largest = faults_of("workloads/training/deep.py")
loop = faults_of("workloads/training/vit.py")

_BY_HAND = "resnet-step-with-batch-statistics-in-nnx-vs-threaded-by-hand"
_DECAY = "vit-adamw-step-with-decay-of-kernels-only-vs-written-by-hand"

FAULTS = (
    vit(
        "the optimiser's state is not donated",
        "vit-adamw-step-in-nnx-donated-vs-copied",
        ("adamw()), donate_argnums=(0, 1))", "adamw()), donate_argnums=0)"),
        moves={"donated_bytes", "state_bytes"},
        culprit=r"no longer donated: opt_state",
    ),
    states(
        "the loss is computed again for the log",
        "vit-adamw-step-in-nnx-donated-vs-copied",
        (
            "        return optax.apply_updates(params, updates), opt_state, loss\n",
            "        params = optax.apply_updates(params, updates)\n"
            "        return params, opt_state, loss_of(params, inputs, labels)\n",
        ),
        moves={"matmul_flops"},
        culprit=r"float32\[",
    ),
    states(
        "weight decay pulls at every array",
        _DECAY,
        (", mask=only_kernels)", ")"),
        status="INVALID",
        culprit=r"subject gives .*, reference",
    ),
    states(
        "indices of classes go into a loss of probabilities",
        _DECAY,
        (
            "optax.softmax_cross_entropy_with_integer_labels(logits.astype(jnp.float32), labels)",
            "optax.softmax_cross_entropy(logits.astype(jnp.float32), labels[..., None])",
        ),
        status="INVALID",
        culprit=r"subject gives .*, reference",
    ),
    resnet(
        "the forward pass runs on a copy, and its batch statistics are lost",
        _BY_HAND,
        ("(images), labels))(model)", "(images), labels))(nnx.clone(model))"),
        status="INVALID",
        culprit=r"\['(mean|var)'\].*subject gives .*, reference",
    ),
    resnet(
        "training normalises by running statistics",
        _BY_HAND,
        ("momentum=KEPT,", "momentum=KEPT, use_running_average=True,"),
        status="INVALID",
        culprit=r"subject gives .*, reference",
    ),
    deep(
        "layers are written out again",
        "lm-step-with-its-layers-in-one-scan-vs-written-out",
        (
            "    return jax.lax.scan(lambda x, params: (layer(x, params), None), x, layers)[0]\n",
            "    return written_out(layer, x, layers)\n",
        ),
        moves={"stablehlo_ops"},
        culprit=r"loop|scan|while",
    ),
    deep(
        "all pieces of the logits are kept for the way back",
        "lm-step-with-logits-in-chunks-vs-all-at-once",
        ("    @partial(jax.checkpoint, prevent_cse=False)\n", ""),
        moves={"temp_bytes"},
        culprit=r"remat is lost or keeps more",
    ),
    largest(
        "the layers are no longer computed again",
        "lm-step-with-remat-largest-batch-in-memory-vs-plain",
        ("in_one_loop(jax.checkpoint(layer, prevent_cse=False), x, layers)", "in_one_loop(layer, x, layers)"),
        moves={"largest_batch", "temp_bytes"},
        culprit=r"remat is lost or keeps more",
    ),
    loop(
        "the optimiser runs outside of the program",
        "vit-step-whole-under-nnx-jit-vs-its-optimiser-outside",
        ("subject=seen(whole_step)", "subject=seen(optimiser_outside)"),
        moves={"launches"},
        culprit=r"programs started in a call",
        at=("optimizer.update(model, grads)",),
    ),
)
