"""attention: the formula by hand against the library's, over blocks, in a window, and as a kernel.

Softmax(QKᵀ)V by hand, with all scores in memory, is the reference of every case.

**The library** — `jax.nn.dot_product_attention`, full and causal, forward and backward; JAX takes cuDNN's fused kernel
only where `implementation="cudnn"` asks for it, so the case asks for it on GPUs of compute capability 8 and later in
16-bit floats, and for the plain formula elsewhere, which may hold the scores several times. Both sides count the same
products (the fused backward pass makes the scores once more). Also one token with keys that several heads share
(Ainslie et al., 2023) against keys repeated for each head. Source: JAX's page on `jax.nn.dot_product_attention`;
FlashAttention (Dao et al., 2022).

**Blocks** — keys taken block by block with a running maximum and sum (Rabe and Staats, 2021): memory grows with the
text and not with its square, in the backward pass only if blocks are computed again (`jax.checkpoint`; without it the
scan keeps every score). A sliding window by blocks against one by mask, which saves no product.

**A kernel** — the same as one Pallas kernel, compiled by Triton or Mosaic and interpreted on CPU: its results, products
and memory are judged there, its speed only on accelerators. Mistakes: scores that are all there again, a mask that is
forgotten or captured as an array, a running sum that is not rescaled, one side in fewer bits.
"""

from jaxgate import Case
from workloads.attention import blocks, formula

CASES: tuple[Case, ...] = (*formula.CASES, *blocks.CASES)
