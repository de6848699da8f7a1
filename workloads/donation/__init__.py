"""Donation: a call that reuses the buffers of its arguments; whole, in part, in vain, through loops, on a mesh.

Without ``donate_argnums`` every step holds the old and the new state at once, and nothing says so.
"""

from workloads.donation import carried, sharded, steps, unusable

CASES = (*steps.CASES, *unusable.CASES, *carried.CASES, *sharded.CASES)
