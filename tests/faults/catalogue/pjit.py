"""Mistakes with layouts on a mesh: nothing fails, and every device does, holds or sends too much."""

from __future__ import annotations

from tests.faults.model import Fault

MLP, MOVING = "workloads/pjit/mlp.py", "workloads/pjit/moving.py"
OUT = "donate_argnums=0, out_shardings=(kernels, shardings(mesh, P()))"

FAULTS = (
    Fault(
        name="parameters come back replicated",
        file=MLP,
        case="pjit-mlp-train-step-fsdp-on-4-vs-gathered",
        edits=((OUT, "donate_argnums=0, out_shardings=shardings(mesh, P())"),),
        moves=frozenset({"compiles"}),
        culprit=r"result\[0\]\[0\]\['down'\] .* sharded less",
    ),
    Fault(
        name="donation is lost under sharding",
        file=MLP,
        case="pjit-mlp-train-step-hybrid-on-2x2-vs-gathered",
        edits=((OUT, "out_shardings=(kernels, shardings(mesh, P()))"),),
        moves=frozenset({"donated_bytes"}),
        culprit=r"no longer donated: params\[0\]",
    ),
    Fault(
        name="the batch is not sharded",
        file=MLP,
        case="pjit-mlp-train-step-batch-on-4-vs-gathered",
        edits=(
            (
                '"batch": Layout(batch=P("data"), up=P(), down=P(), hidden=P("data"))',
                '"batch": Layout(batch=P(), up=P(), down=P(), hidden=P())',
            ),
        ),
        moves=frozenset({"xla_flops", "argument_bytes"}),
        culprit=r"x takes 16,384 bytes of each device, 4,096 before: sharded less",
    ),
    Fault(
        name="hidden units are laid out by samples alone",
        file=MLP,
        case="pjit-mlp-train-step-hybrid-on-2x2-vs-gathered",
        edits=(('hidden=P("data", "model")),\n    "fsdp"', 'hidden=P("data")),\n    "fsdp"'),),
        moves=frozenset({"collective_bytes"}),
        culprit=r"all-gather .* over 'model'",
    ),
    Fault(
        name="kernels are collected for their use",
        file=MLP,
        case="pjit-mlp-train-step-model-on-1x8-vs-gathered",
        edits=(
            ('down=P("model"), hidden=P(None, "model"))', 'down=P("model"), hidden=P(None, "model"), gather=True)'),
        ),
        moves=frozenset({"collective_bytes"}),
        culprit=r"all-gather .* over 'model'",
    ),
    Fault(
        name="rows and columns are swapped",
        file=MLP,
        case="pjit-mlp-train-step-hybrid-on-2x4-vs-gathered",
        edits=(
            (
                '"hybrid": Layout(batch=P("data"), up=P(None, "model"), down=P("model"), hidden',
                '"hybrid": Layout(batch=P("data"), up=P("model"), down=P(None, "model"), hidden',
            ),
        ),
        moves=frozenset({"collective_bytes"}),
        culprit=r"all-(gather|reduce|to-all) .* over 'model'",
    ),
    Fault(
        name="all layers are collected before the loop",
        file="workloads/pjit/gathering.py",
        case="pjit-mlp-fsdp-layer-by-layer-on-8-vs-gathered",
        edits=(("subject=compiled(devices, early=False)", "subject=compiled(devices, early=True)"),),
        moves=frozenset({"peak_bytes", "temp_bytes"}),
        culprit=r"all-gather float32\[12,128,128\] over 'data'",
    ),
    Fault(
        name="the scores of all words are collected",
        file="workloads/pjit/embedding.py",
        case="pjit-embedding-by-vocabulary-train-step-on-2x4-vs-gathered",
        edits=(
            (
                "jax.lax.with_sharding_constraint(logits, shardings(mesh, scores))",
                "jax.lax.with_sharding_constraint(logits, shardings(mesh, TOKENS))",
            ),
        ),
        moves=frozenset({"collective_bytes"}),
        culprit=r"all-gather .* over 'model'",
    ),
    Fault(
        name="psum over both axes instead of one",
        file=MOVING,
        case="pjit-psum-over-data-on-4x2-vs-gathered",
        edits=(("lax.psum(x.sum(dimension), axis)", 'lax.psum(x.sum(dimension), ("data", "model"))'),),
        status="INVALID",
        culprit=r"differ",
    ),
    Fault(
        name="an array is collected before it is laid out anew",
        file=MOVING,
        case="pjit-reshard-rows-to-columns-on-8-vs-gathered",
        edits=(("subject=moved(devices,", "subject=collected(devices,"),),
        moves=frozenset({"collective_bytes"}),
        culprit=r"all-gather float32\[256,256\] over 'data'",
        at=("return move(x, everywhere)",),
    ),
    Fault(
        name="an array goes to the other axis in one go",
        file=MOVING,
        case="pjit-reshard-columns-to-rows-of-the-other-axis-on-4x2-vs-gathered",
        edits=(('(P(None, "model"), BOTH, ROWS)', '(P(None, "model"), ROWS)'),),
        moves=frozenset({"collective_bytes"}),
        culprit=r"all-gather float32\[256,256\]",
    ),
    Fault(
        name="fewer heads than devices to hold them",
        file="workloads/pjit/specs.py",
        case="pjit-attention-by-heads-on-2x4-vs-gathered",
        edits=(("width=64, heads=8", "width=64, heads=2"),),
        moves=frozenset({"collective_bytes"}),
        culprit=r"all-.* 'model'",
    ),
    Fault(
        name="features that the devices do not divide",
        file="workloads/pjit/specs.py",
        case="pjit-attention-by-heads-on-2x4-vs-gathered",
        edits=(("width=64, heads=8", "width=66, heads=6"),),
        status="INVALID",
        culprit=r"axis 1 is partitioned 4 times, but the dimension size is 66",
    ),
    Fault(
        name="nothing says where a sum over explicit axes goes",
        file="workloads/pjit/explicit.py",
        case="pjit-mlp-train-step-hybrid-on-4x2-with-explicit-axes-vs-gathered",
        edits=(
            (
                'jnp.einsum("bh,hw->bw", hidden, used["down"], out_sharding=resting(layout.batch))',
                'hidden @ used["down"]',
            ),
        ),
        status="INVALID",
        culprit=r"Contracting dimensions are sharded",
    ),
)
