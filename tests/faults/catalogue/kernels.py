"""Blocks that are computed again, rows that nobody computes, sums in few bits."""

from tests.faults.model import faults_of

fault = faults_of("workloads/kernels.py")

NORM = "rms-norm-by-a-pallas-kernel-vs-by-hand"
LAYER = "product-bias-and-gelu-in-one-pallas-kernel-vs-by-hand"

FAULTS = (
    fault(
        "each block of the result is computed twice",
        LAYER,
        (
            "    found = jnp.dot(x_ref[...], kernel_ref[...], preferred_element_type=jnp.float32)\n",
            "    product = lambda x: jnp.dot(x, kernel_ref[...], preferred_element_type=jnp.float32)\n"
            "    found = (product(x_ref[...]) + product(0.5 * x_ref[...])) / 1.5\n",
        ),
        moves={"matmul_flops"},
        culprit=r"float32\[32,256\] x float32\[256,128\] 8 → 16",
    ),
    fault(
        "a block has all columns",
        LAYER,
        ("COLUMNS = 128\n", "COLUMNS = 256\n"),
        moves={"block_bytes"},
        culprit=r"^a kernel holds more at once: float32\[32,256\], float32\[256,256\], .* in layer at",
    ),
    fault(
        "a block of rows is four times as high",
        NORM,
        (
            "pl.BlockSpec((size.block, size.width), lambda block",
            "pl.BlockSpec((4 * size.block, size.width), lambda block",
        ),
        ("grid = (len(x) // size.block,)", "grid = (len(x) // (4 * size.block),)"),
        moves={"block_bytes"},
        culprit=r"^a kernel holds more at once: float32\[128,256\], .* in normed at",
    ),
    fault(
        "each block is given all rows",
        NORM,
        ("    x = x_ref[...]\n", "    x = x_ref[pl.ds(pl.program_id(0) * out_ref.shape[0], out_ref.shape[0])]\n"),
        ("in_specs=[rows, every]", "in_specs=[pl.BlockSpec(x.shape, lambda _: (0, 0)), every]"),
        moves={"block_bytes"},
        culprit=r"^a kernel holds more at once: float32\[128,256\], .* in normed at",
    ),
    fault(
        "the last rows are in no block",
        NORM,
        ("grid = (len(x) // size.block,)", "grid = (len(x) // size.block - 1,)"),
        status="INVALID",
        culprit=r"NaN|subject gives|does not influence",
    ),
    fault(
        "a block sums in bfloat16",
        LAYER,
        ("preferred_element_type=jnp.float32)\n    out_ref", "preferred_element_type=jnp.bfloat16)\n    out_ref"),
        status="INVALID",
        culprit=r"subject gives .*reference",
    ),
)
