"""remat: memory for recomputation, and what the memory is good for.

A training step whose blocks are recomputed on the way back (`jax.checkpoint`) against the plain step: MLP and
transformer blocks, layers unrolled or stacked in one `lax.scan`, and the policies of JAX's page "Gradient checkpointing
with `jax.checkpoint`" (nothing, dots, dots without batch dimensions, names, everything). Temporaries must fall, and
exactly the products that the policy drops are done twice: the FLOPs equal a closed formula and are at most 4/3 of the
plain step's (Chen et al., "Training deep nets with sublinear memory cost", 2016). What it is for is shown beside it:
several times the batch in the memory of less, the largest batch within a budget (found by compiling only), samples and
tokens a second at a batch that only remat can hold against two accumulated halves, and one compiled block at any depth.
The mistakes it catches: the checkpoint lost, saving everything or standing around the whole stack, a mistyped name in
`save_only_these_names` (no error: all is recomputed), `prevent_cse=False` outside a loop, activations returned as aux,
a batch that is cut. With jax 0.10.2 on CPU an unrolled recomputation frees nothing (it is merged with the forward pass,
or done right beside it): an expected failure there, with its date.
"""

from workloads.remat import batch, policies

CASES = (*policies.CASES, *batch.CASES)
