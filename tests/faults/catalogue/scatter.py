"""Products in the place of sums, rows one by one, a table that is copied."""

from tests.faults.model import faults_of

fault = faults_of("workloads/scatter.py")

FAULTS = (
    fault(
        "rows are added by a product with ones and zeros",
        "sums-by-segment-vs-a-product-with-ones-and-zeros",
        ("subject=jax.jit(lambda rows, of: summed(rows, of, size.segments))", "subject=jax.jit(multiplied)"),
        moves={"matmul_flops"},
        culprit=r"float32\[256,4096\] x float32\[4096,16\] 0 → 1",
    ),
    fault(
        "rows are added one by one in a loop",
        "sums-by-segment-vs-a-product-with-ones-and-zeros",
        (
            "    return jax.ops.segment_sum(rows, of, num_segments=segments, indices_are_sorted=True)",
            "    start = jnp.zeros((segments, rows.shape[1]))\n"
            "    return jax.lax.fori_loop(0, len(rows), lambda i, sums: sums.at[of[i]].add(rows[i]), start)",
        ),
        moves={"kernels", "xla_flops"},
        culprit=r"loop|while",
    ),
    fault(
        "rows are added column by column",
        "sums-by-segment-vs-a-product-with-ones-and-zeros",
        (
            "    return jax.ops.segment_sum(rows, of, num_segments=segments, indices_are_sorted=True)",
            "    column = lambda one: jax.ops.segment_sum(one, of, num_segments=segments, indices_are_sorted=True)\n"
            "    return jax.vmap(column, in_axes=1, out_axes=1)(rows)",
        ),
        moves={"scattered_bytes"},
        culprit=r"^elements are picked far apart in memory: scatter apart in float32\[16,256\] 0 → 1",
    ),
    fault(
        "messages go between all pairs",
        "gradients-of-messages-along-edges-vs-between-all-pairs",
        ("jax.grad(lambda *args: along_edges(*args).sum())", "jax.grad(lambda *args: between_pairs(*args).sum())"),
        moves={"matmul_flops", "temp_bytes"},
        culprit=r"float32\[256,256\] x float32\[256,16\] 0 → ",
    ),
    fault(
        "the table is no longer donated",
        "rows-of-a-table-written-in-place-vs-in-a-copy",
        ("subject=jax.jit(write, donate_argnums=0)", "subject=jax.jit(write)"),
        moves={"donated_bytes", "aliased_bytes"},
        culprit=r"no longer donated: table",
    ),
)
