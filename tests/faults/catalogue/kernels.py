"""Blocks that are computed again, rows that nobody computes, sums in few bits."""

from __future__ import annotations

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
