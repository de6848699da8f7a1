"""What comes before the step, and between steps: batches on their way to the device, and how their images lie.

What comes before the step, and between steps; ids say `input`. A training loop's body on the host, whose batches are
stacked by NumPy and sent ahead of the step that needs them, against a collate function that calls `jnp.asarray` on
every example (`host_transfers`, `launches`: a transfer for each example, and programs to stack them); augmentation
inside the step against eager operations before it; several steps in one `lax.scan` against a call for each. Layout:
convolutions with the channels last against channels first (`stablehlo_ops`: transposes that a compiler has to find a
way around; whether it does is its own affair, so no time is claimed). Mistakes it catches: all of these come back;
the last batch is dropped, or what was sent ahead is forgotten at the end; the loss is read at every step. What
prefetching gains is seen on accelerators only: on a CPU nothing is on its way. Sources: JAX's pages "Asynchronous
dispatch" and `jax.device_put`; Flax's `prefetch_to_device`; NVIDIA's guide to convolutional layers for layouts.
"""

from __future__ import annotations

from jaxgate import Case
from workloads.input_pipeline import batches, layout

CASES: tuple[Case, ...] = (*batches.CASES, *layout.CASES)
