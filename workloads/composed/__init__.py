"""The composed train step: every transformation of this catalogue in one program.

A whole training step in which every transformation of this catalogue has its place: the examples of a micro-batch under
`vmap`, gradients accumulated by `scan` (the sum in the carry, losses beside it), scanned blocks under `jax.checkpoint`,
`value_and_grad` with aux, donated parameters and AdamW state, `shard_map` over a mesh outside (a mesh of one device
runs the same program), with an MLP-Mixer (Tolstikhin et al. 2021) as a Flax NNX module that is split once and merged
inside the pure step. The subject is always the whole; each reference lacks one layer (a loop over examples, a loop over
micro-batches, the whole batch at once, stored blocks, a second forward, a copied state, plain functions in place of
NNX; on eight devices all the work on each, a sum for every micro-batch, a replicated optimiser state), and the claims
say what that layer buys and that it changes nothing else: a step that loses a layer still trains. Mistakes it catches:
kept micro-batch gradients, lost remat, an optimiser state that is not donated, an unrolled accumulation, samples cut
off by an uneven split, a loss read inside the step, gradients summed twice or for every micro-batch (parameters not
marked with `pcast` as varying), micro-batches cut across devices, and a state whose sharding is left to the compiler
(step 2 recompiles). Sources: JAX's pages on `shard_map`, gradient checkpointing and buffer donation; ZeRO (Rajbhandari
et al. 2020) for the sharded optimiser state; Flax's page on its functional interface.
"""

from jaxgate import Case
from workloads.composed import meshes

CASES: tuple[Case, ...] = (*meshes.CASES,)
