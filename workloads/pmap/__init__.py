"""`pmap`: one program on every device, each with a share of the batch and its own copy of the state.

**Steps** on eight devices — data-parallel, by `pmap` and by `jit(shard_map)` against one device with the whole batch;
the stacked replicas must equal its parameters on every device, so a forgotten `pmean` (replicas drift apart at full
speed, no error) and a `psum` in its place are INVALID. Also donated replicas against copied ones, and a batch dealt out
by a reshape: every sample of it has to be processed, as `v[:batch // n]` discards most of the data silently. Source:
JAX's pages on `jax.pmap` and its migration to `jax.shard_map`.

**Reductions** — gradients averaged in bfloat16 against widened first (half the bytes travel), and metrics as one vector
against one collective each: small all-reduces cost a round over all devices whatever their size.

**Shards** — parameters kept as an eighth on each device, gathered layer by layer, gradients scattered back, against one
device; beside it, compiled only, the replicated step: `pmap` stores the weights once *per device*, sharding stores them
once. Catches shards placed whole, and a second gather. Source: ZeRO (Rajbhandari et al., 2020), PyTorch FSDP (Zhao et
al., 2023).

**Axes** — `in_axes=None` (a whole copy on every device, no memory saved), samples and results on axis 0 and 1,
`out_axes=None` (one device's result, unchecked: `jax.vmap` with the same axes, which is the reference, refuses what
differs), and `devices=`: every other device, and all in reverse order, where results go round in the order that was
asked for.

**Collectives** — `psum` of 4 KiB to 64 MiB, all-gather, reduce-scatter and permute by `pmap`, each beside its twin by
`jit(shard_map)`; exactly one collective of exactly its payload. Algorithm and bus bandwidth by nccl-tests' definition
(PERFORMANCE.md there); clocks judge them on real devices only. On `small` hardware all arrays of the sweep together
stay within 128 MiB, so that the 64 MiB sum is one of two devices.
"""

from jaxgate import Case
from workloads.pmap import axes, collectives, steps

CASES: tuple[Case, ...] = (*steps.CASES, *axes.CASES, *collectives.CASES)
