"""Placement: where arrays live, what travels between host and devices in each step, and what a step asks the host for.

Nothing fails: JAX moves what it may move, in silence. A batch is put in parts on eight devices (against the whole of it
by way of the first), parameters stay on the device (against NumPy arrays sent at every call), a state is committed
beside its batch (else step 2 is compiled again), and moments of an optimiser wait in `pinned_host` memory (a CPU has
one memory: the claim about the device's bytes is an expected failure there). A case that ran on another platform than
JAX uses here is INVALID.

What is asked of the host: a loss read after four steps in place of each, two scalars returned in place of predictions,
a table looked up by the device in place of `pure_callback`, losses returned in place of printed by `io_callback`; keys
folded within the step in place of made by Python, or carried from step to step. Nested: `shard_map` in `jit` against by
itself (traced at each call, a program for each operation), `vmap` in `shard_map` against all members on each device.
Planted: all of these the wrong way round, a debug callback left in a step, numbers drawn while tracing, moments that
stay on the device. Sources: JAX's pages "Distributed arrays and automatic parallelization", "External callbacks",
"Pseudorandom numbers", "JAX memories and host offloading".
"""

from workloads.placement import keys, placing

CASES = (*placing.CASES, *keys.CASES)
