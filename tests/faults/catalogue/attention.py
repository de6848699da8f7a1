"""Attention that holds, copies, masks or multiplies what it was written to avoid."""

from tests.faults.model import faults_of

blocks = faults_of("workloads/attention/blocks.py")
library = faults_of("workloads/attention/formula.py")
kernel = faults_of("workloads/attention/blocks.py")

FAULTS = (
    blocks(
        "all keys are one block",
        "causal-attention-forward-over-blocks-of-keys-vs-all-at-once",
        (
            'subject=jax.jit(partial(chunked, mask="causal", block=size.block))',
            'subject=jax.jit(partial(chunked, mask="causal", block=size.time))',
        ),
        moves={"temp_bytes"},
        culprit=r"256x256|256,256",
    ),
    blocks(
        "the scores of each block are kept for the backward pass",
        "causal-attention-gradient-over-blocks-of-keys-vs-all-at-once",
        ("jax.lax.scan(jax.checkpoint(take), start, blocks)", "jax.lax.scan(take, start, blocks)"),
        moves={"temp_bytes"},
        culprit=r"less is recomputed, so more is kept",
    ),
    blocks(
        "the window is only a mask",
        "attention-in-a-window-by-blocks-vs-by-mask",
        (
            "subject=jax.jit(partial(windowed, window=size.window))",
            'subject=jax.jit(partial(by_hand, mask="causal", window=size.window))',
        ),
        moves={"matmul_flops"},
        culprit=r"float32\[2,256,4,16\] x float32\[2,256,4,16\]|float32\[2,4,256,256\]",
    ),
    library(
        "keys are repeated for every head",
        "attention-of-one-token-with-keys-shared-by-heads-vs-repeated",
        (
            'subject = jax.jit(by_library(size, "full"))',
            'library = by_library(size, "full")\n'
            "    subject = jax.jit(lambda q, *kv: library(q, *(jnp.repeat(x, size.heads // x.shape[2], axis=2) for x in kv)))",
        ),
        moves={"temp_bytes"},
        at=("jnp.repeat(x, size.heads",),
    ),
    library(
        "the mask is forgotten",
        "causal-attention-forward-by-jax.nn-vs-by-hand",
        ('is_causal=mask == "causal", implementation', "implementation"),
        status="INVALID",
        culprit=r"subject gives .*, reference",
    ),
    library(
        "the mask is a captured array",
        "causal-attention-forward-by-jax.nn-vs-by-hand",
        (
            'partial(jax.nn.dot_product_attention, is_causal=mask == "causal", implementation=chosen)',
            "lambda q, k, v: jax.nn.dot_product_attention(\n"
            '        q, k, v, mask=__import__("numpy").tri(q.shape[1], dtype=bool), implementation=chosen\n'
            "    )",
        ),
        moves={"constant_bytes"},
        culprit=r"256x256|captured arrays",
    ),
    library(
        "one side multiplies in bfloat16",
        "full-attention-forward-by-jax.nn-vs-by-hand",
        (
            "ways = by_library(size, mask), materialised(mask)",
            'ways = (lambda q, k, v: by_library(size, mask)(*(x.astype("bfloat16") for x in (q, k, v))).astype(q.dtype)), materialised(mask)',
        ),
        status="INVALID",
        culprit=r"subject gives .*, reference",
    ),
    kernel(
        "the running sum is not rescaled when a larger score comes",
        "causal-attention-forward-by-a-pallas-kernel-vs-by-hand",
        ("sums * rescaled[:, None] + found", "sums + found"),
        status="INVALID",
        culprit=r"subject gives .*, reference",
    ),
    kernel(
        "each block of queries meets all keys at once",
        "causal-attention-forward-by-a-pallas-kernel-vs-by-hand",
        ('partial(by_kernel, mask="causal", block=size.tile)', 'partial(by_kernel, mask="causal", block=size.time)'),
        moves={"temp_bytes", "xla_flops"},
        culprit=r"^a kernel holds more at once: float32\[256,16\], .* in kernel at",
    ),
)
