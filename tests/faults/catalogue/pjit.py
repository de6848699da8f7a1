"""Mistakes with layouts on a mesh: nothing fails, and every device does, holds or sends too much."""

from tests.faults.model import faults_of

mlp = faults_of("workloads/pjit/mlp.py")
gathering = faults_of("workloads/pjit/parts.py")
embedding = faults_of("workloads/pjit/parts.py")
moving = faults_of("workloads/pjit/moving.py")
specs = faults_of("workloads/pjit/parts.py")
explicit = faults_of("workloads/pjit/mlp.py")

OUT = "donate_argnums=0, out_shardings=(kernels, shardings(mesh, P()))"

FAULTS = (
    mlp(
        "parameters come back replicated",
        "pjit-mlp-train-step-fsdp-on-4-vs-gathered",
        (OUT, "donate_argnums=0, out_shardings=shardings(mesh, P())"),
        moves={"compiles"},
        culprit=r"result\[0\]\[0\]\['down'\] .* sharded less",
    ),
    mlp(
        "donation is lost under sharding",
        "pjit-mlp-train-step-hybrid-on-2x2-vs-gathered",
        (OUT, "out_shardings=(kernels, shardings(mesh, P()))"),
        moves={"donated_bytes"},
        culprit=r"no longer donated: params\[0\]",
    ),
    mlp(
        "the batch is not sharded",
        "pjit-mlp-train-step-batch-on-4-vs-gathered",
        (
            '"batch": Layout(batch=P("data"), up=P(), down=P(), hidden=P("data"))',
            '"batch": Layout(batch=P(), up=P(), down=P(), hidden=P())',
        ),
        moves={"xla_flops", "argument_bytes"},
        culprit=r"x takes 16,384 bytes of each device, 4,096 before: sharded less",
    ),
    mlp(
        "hidden units are laid out by samples alone",
        "pjit-mlp-train-step-hybrid-on-2x2-vs-gathered",
        ('hidden=P("data", "model")),\n    "fsdp"', 'hidden=P("data")),\n    "fsdp"'),
        moves={"collective_bytes"},
        culprit=r"all-gather .* over 'model'",
    ),
    mlp(
        "kernels are collected for their use",
        "pjit-mlp-train-step-model-on-1x8-vs-gathered",
        ('down=P("model"), hidden=P(None, "model"))', 'down=P("model"), hidden=P(None, "model"), gather=True)'),
        moves={"collective_bytes"},
        culprit=r"all-gather .* over 'model'",
    ),
    mlp(
        "rows and columns are swapped",
        "pjit-mlp-train-step-hybrid-on-2x4-vs-gathered",
        (
            '"hybrid": Layout(batch=P("data"), up=P(None, "model"), down=P("model"), hidden',
            '"hybrid": Layout(batch=P("data"), up=P("model"), down=P(None, "model"), hidden',
        ),
        moves={"collective_bytes"},
        culprit=r"all-(gather|reduce|to-all) .* over 'model'",
    ),
    gathering(
        "all layers are collected before the loop",
        "pjit-mlp-fsdp-layer-by-layer-on-8-vs-gathered",
        ("subject=compiled_stack(devices, early=False)", "subject=compiled_stack(devices, early=True)"),
        moves={"peak_bytes", "temp_bytes"},
        culprit=r"all-gather float32\[12,128,128\] over 'data'",
    ),
    embedding(
        "the scores of all words are collected",
        "pjit-embedding-by-vocabulary-train-step-on-2x4-vs-gathered",
        (
            "jax.lax.with_sharding_constraint(logits, shardings(mesh, scores))",
            "jax.lax.with_sharding_constraint(logits, shardings(mesh, TOKENS))",
        ),
        moves={"collective_bytes"},
        culprit=r"all-gather .* over 'model'",
    ),
    moving(
        "psum over both axes instead of one",
        "pjit-psum-over-data-on-4x2-vs-gathered",
        ('lax.psum(x.sum(0), "data")', 'lax.psum(x.sum(0), ("data", "model"))'),
        status="INVALID",
        culprit=r"differ",
    ),
    moving(
        "an array is collected before it is laid out anew",
        "pjit-reshard-rows-to-columns-on-8-vs-gathered",
        ("subject=moved(devices,", "subject=collected(devices,"),
        moves={"collective_bytes"},
        culprit=r"all-gather float32\[256,256\] over 'data'",
        at=("return move(x, everywhere)",),
    ),
    moving(
        "an array goes to the other axis in one go",
        "pjit-reshard-columns-to-rows-of-the-other-axis-on-4x2-vs-gathered",
        ('(P(None, "model"), BOTH, ROWS)', '(P(None, "model"), ROWS)'),
        moves={"collective_bytes"},
        culprit=r"all-gather float32\[256,256\]",
    ),
    specs(
        "fewer heads than devices to hold them",
        "pjit-attention-by-heads-on-2x4-vs-gathered",
        ("heads=(8, 16)", "heads=(2, 16)"),
        moves={"collective_bytes"},
        culprit=r"all-gather float32\[4,32,2,32\] in groups of 2",
    ),
    specs(
        "features that the devices do not divide",
        "pjit-attention-by-heads-on-2x4-vs-gathered",
        ("width=(64, 2048), heads=(8, 16)", "width=(66, 2048), heads=(6, 16)"),
        status="INVALID",
        culprit=r"axis 1 is partitioned 4 times, but the dimension size is 66",
    ),
    explicit(
        "nothing says where a sum over explicit axes goes",
        "pjit-mlp-train-step-hybrid-on-4x2-with-explicit-axes-vs-gathered",
        ('jnp.einsum("bh,hw->bw", hidden, used["down"], out_sharding=resting(layout.batch))', 'hidden @ used["down"]'),
        status="INVALID",
        culprit=r"Contracting dimensions are sharded",
    ),
)
