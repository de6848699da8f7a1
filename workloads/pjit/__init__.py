"""pjit: programs laid out on a mesh by shardings, which the compiler divides.

Ids say `pjit`, the code `jax.jit` with `NamedSharding`s. A perceptron's training step on meshes of 8, 4, 2x2, 4x2, 2x4
and 1x8 devices, by the usual strategies: `none` (everything everywhere), `batch` (data parallel), `model` (tensor
parallel, columns then rows), `hybrid` (data x model), `fsdp` and `full` (parameters spread over one axis or both and
collected for their use). The reference is the same step with everything collected on every device, which is also what a
forgotten sharding amounts to; alternatives are other layouts, compiled only. What is claimed is the share of work,
memory and traffic of one device. Besides: attention by heads, forward, with exactly one sum; an embedding by
vocabulary; parameters collected layer by layer in a loop; explicit axes against automatic ones; changes of layout (an
all-to-all, and by way of a third layout where the partitioner would collect everything); `psum` over one axis of two.

What goes wrong here fails nothing: every device does, holds or sends too much. Planted: parameters that come back
replicated (a second compile at step 2), a batch that is not split, kernels or activations collected by accident, rows
and columns swapped, hidden units laid out by the wrong axis, fewer heads than devices, donation lost.

Sources: JAX's pages "Distributed arrays and automatic parallelization" and "Explicit sharding"; Megatron-LM (Shoeybi et
al., 2019) for columns then rows, ZeRO (Rajbhandari et al., 2020) for spread parameters, GSPMD (Xu et al., 2021) for the
partitioner.
"""

from jaxgate import Case
from workloads.pjit import mlp, moving, parts

CASES: tuple[Case, ...] = (*mlp.CASES, *parts.CASES, *moving.CASES)
