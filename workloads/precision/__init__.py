"""precision: how many bits products, sums, parameters and activations have, and who decides it.

How many bits products, sums, parameters and activations have. `products`: full float32 asked for by each product
against the same by `jax.default_matmul_precision` — a comparison of equals, with a tolerance that TF32 does not meet;
the type of the sum by `preferred_element_type` against operands widened first. `chains`: Python numbers take the type of what they meet,
`np.sqrt(2)` is a `np.float64` and makes the rest float32; sums that are widened for a normalisation and come back.
Source: JAX's pages on type promotion and on `jax.default_matmul_precision`.

`precision` / `training` — bfloat16 products with float32 parameters and momentum, donated; float16 with a loss scale
that follows overflow; gradients of 128 micro-batches summed in float32 (Micikevicius et al., 2018), each against
float32 throughout. Mistakes: parameters or sums kept in bfloat16 (updates and terms below its last bit are lost:
INVALID), samples that are not cast and widen every kernel, TF32 on one side, a scale that comes back as a Python number
and retraces.
"""

from jaxgate import Case
from workloads.precision import chains, products, training

CASES: tuple[Case, ...] = (*products.CASES, *chains.CASES, *training.CASES)
