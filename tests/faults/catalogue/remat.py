"""remat that is not there, keeps everything, or stands in the wrong place."""

import jax

from tests.faults.model import faults_of

policies = faults_of("workloads/remat/policies.py")
batch = faults_of("workloads/remat/batch.py")

NOTHING = "mlp-stacked-remat-that-saves-nothing-vs-plain"

# Before 0.12 the compiler for CPU does not heed the barrier: taking it away changes nothing there.
HEEDED = tuple(int(part) for part in jax.__version__.split(".")[:2]) >= (0, 12)

FAULTS = (
    policies(
        "the block is passed on without its checkpoint",
        NOTHING,
        ("return stack(form, again)", "return stack(form, layer)"),
        moves={"temp_bytes"},
        culprit=r"remat is lost or keeps more",
    ),
    policies(
        "the checkpoint saves everything",
        NOTHING,
        ("saves=None,", "saves=policies.everything_saveable,"),
        moves={"temp_bytes"},
        culprit=r"remat is lost or keeps more",
    ),
    policies(
        "the checkpoint stands around the whole stack",
        NOTHING,
        ("jax.checkpoint(layer,", "jax.checkpoint(stack(form, layer),"),
        ("return stack(form, again)", "return again"),
        moves={"temp_bytes"},
        culprit=r"float32\[256,128\] x float32\[128,32\] 6 → 12",
    ),
    policies(
        "a name in the policy is mistyped, and nothing has it",
        "mlp-stacked-remat-that-saves-names-vs-plain",
        ('"attended", "hidden"', '"attended", "hiden"'),
        moves={"matmul_flops", "unmatched_names"},
        culprit=r"^no array has the name that a policy of jax\.checkpoint says: 'attended', 'hiden'",
    ),
    policies(
        "half of the batch is dropped",
        NOTHING,
        ("squared_error(network(p, x), y)", "squared_error(network(p, x[::2]), y[::2])"),
        status="INVALID",
        culprit="does not influence the result",
    ),
    policies(
        "what each block returns is returned as aux",
        NOTHING,
        (
            "return stack(form, again)",
            "return lambda params, x: jax.lax.scan(lambda x, each: (again(each, x),) * 2, x, params)",
        ),
        (
            "jax.value_and_grad(lambda p: squared_error(network(p, x), y))(params)",
            "jax.value_and_grad(\n"
            "            lambda p: (lambda found: (squared_error(found[0], y), found[1]))(network(p, x)), has_aux=True\n"
            "        )(params)",
        ),
        ("train_step(stack(form, layer))", 'train_step(remat(form, layer, "everything"))'),
        moves={"output_bytes"},
        culprit=r"more is returned: result\[1\]\[1\]",
    ),
    batch(
        "the batch that fits is that of the plain step",
        "transformer-stacked-remat-largest-batch-in-memory-vs-plain",
        (
            "    args = make_args(KIND, FORM, size, size.batch // 2)\n    return Computation(\n"
            "        subject=jax.jit(train_step(remat(FORM, layer, POLICY)), donate_argnums=0)",
            "    args = make_args(KIND, FORM, size, size.batch // 2)\n    return Computation(\n"
            "        subject=jax.jit(train_step(stack(FORM, layer)), donate_argnums=0)",
        ),
        moves={"largest_batch"},
        culprit=r"remat is lost or keeps more",
    ),
    *(
        (
            policies(
                "prevent_cse is off outside a loop",
                "mlp-unrolled-remat-that-saves-nothing-vs-plain",
                ('prevent_cse=form == "unrolled"', "prevent_cse=False"),
                moves={"temp_bytes"},
                culprit=r"recomputation is not held back.*optimization_barrier 6 → 0",
            ),
        )
        if HEEDED
        else ()
    ),
)
