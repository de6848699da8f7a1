"""Attention that holds, copies, masks or multiplies what it was written to avoid."""

from __future__ import annotations

from tests.faults.model import Fault

_LIBRARY = "workloads/attention/library.py"
_BLOCKS = "workloads/attention/blocks.py"
_KERNEL = "workloads/attention/kernel.py"

FAULTS = (
    Fault(
        name="all keys are one block",
        file=_BLOCKS,
        case="causal-attention-forward-over-blocks-of-keys-vs-all-at-once",
        edits=(
            (
                "subject = jax.jit(partial(chunked, mask=mask, block=size.block))",
                "subject = jax.jit(partial(chunked, mask=mask, block=size.time))",
            ),
        ),
        moves=frozenset({"temp_bytes"}),
        culprit=r"256x256|256,256",
    ),
    Fault(
        name="the scores of each block are kept for the backward pass",
        file=_BLOCKS,
        case="causal-attention-gradient-over-blocks-of-keys-vs-all-at-once",
        edits=(("jax.lax.scan(jax.checkpoint(take), start, blocks)", "jax.lax.scan(take, start, blocks)"),),
        moves=frozenset({"temp_bytes"}),
        culprit=r"less is recomputed, so more is kept",
    ),
    Fault(
        name="the window is only a mask",
        file=_BLOCKS,
        case="attention-in-a-window-by-blocks-vs-by-mask",
        edits=(
            (
                "subject=jax.jit(partial(windowed, window=size.window))",
                'subject=jax.jit(partial(by_hand, mask="causal", window=size.window))',
            ),
        ),
        moves=frozenset({"matmul_flops"}),
        culprit=r"float32\[2,256,4,16\] x float32\[2,256,4,16\]|float32\[2,4,256,256\]",
    ),
    Fault(
        name="keys are repeated for every head",
        file=_LIBRARY,
        case="attention-of-one-token-with-keys-shared-by-heads-vs-repeated",
        edits=(
            (
                'subject = jax.jit(by_library(size, "full"))',
                'library = by_library(size, "full")\n'
                "    subject = jax.jit(lambda q, *kv: library(q, *(jnp.repeat(x, size.heads // x.shape[2], axis=2) for x in kv)))",
            ),
        ),
        moves=frozenset({"temp_bytes"}),
        at=("jnp.repeat(x, size.heads",),
    ),
    Fault(
        name="the mask is forgotten",
        file=_LIBRARY,
        case="causal-attention-forward-by-jax.nn-vs-by-hand",
        edits=(('is_causal=mask == "causal", implementation', "implementation"),),
        status="INVALID",
        culprit=r"subject gives .*, reference",
    ),
    Fault(
        name="the mask is a captured array",
        file=_LIBRARY,
        case="causal-attention-forward-by-jax.nn-vs-by-hand",
        edits=(
            (
                'is_causal=mask == "causal", implementation',
                "mask=jnp.tril(jnp.ones((size.time, size.time), bool)), implementation",
            ),
        ),
        moves=frozenset({"constant_bytes"}),
        culprit=r"256x256",
    ),
    Fault(
        name="one side multiplies in bfloat16",
        file=_LIBRARY,
        case="full-attention-forward-by-jax.nn-vs-by-hand",
        edits=(
            (
                "ways = by_library(size, mask), materialised(mask)",
                'ways = (lambda q, k, v: by_library(size, mask)(*(x.astype("bfloat16") for x in (q, k, v))).astype(q.dtype)), materialised(mask)',
            ),
        ),
        status="INVALID",
        culprit=r"subject gives .*, reference",
    ),
    Fault(
        name="the running sum is not rescaled when a larger score comes",
        file=_KERNEL,
        case="causal-attention-forward-by-a-pallas-kernel-vs-by-hand",
        edits=(("sums * rescaled[:, None] + found", "sums + found"),),
        status="INVALID",
        culprit=r"subject gives .*, reference",
    ),
    Fault(
        name="each block of queries meets all keys at once",
        file=_KERNEL,
        case="causal-attention-forward-by-a-pallas-kernel-vs-by-hand",
        edits=(("partial(by_kernel, mask=mask, block=size.tile)", "partial(by_kernel, mask=mask, block=size.time)"),),
        moves=frozenset({"temp_bytes", "xla_flops"}),
        culprit=r"256x256|256,256",
    ),
)
