"""Donation: a call that reuses the buffers of its arguments; whole, in part, in vain, through loops, on a mesh.

Without `donate_argnums` every step holds the old and the new state at once, and nothing says so.

A training step (SGD, momentum, AdamW) with donated state against one that copies; with a part of the state donated,
where `aliased_bytes` against the step that donates all of it states what is still held twice; batches donated in vain,
where `lost_bytes` says how much; several steps in one `lax.scan`; a state divided among eight devices.
The mistakes: donation that is forgotten, or lost because a result has another dtype, another size or another sharding.
A buffer is taken by any result with as many elements of as many bytes each: float32 → int32 can be reused, float32 →
bfloat16 cannot, and of the latter JAX does not even warn. Sources: "Buffer donation" in JAX's documentation and its
FAQ.
"""

from workloads.donation import carried, sharded, steps, unusable

CASES = (*steps.CASES, *unusable.CASES, *carried.CASES, *sharded.CASES)
