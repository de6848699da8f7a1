"""Placement: where arrays live, what travels between host and devices in each step, and what a step asks the host for.

A wrong place fails nothing: JAX moves what it may move, in silence, at every call.
"""

from workloads.placement import fetching, keys, nested, offload, placing

CASES = (*placing.CASES, *fetching.CASES, *keys.CASES, *nested.CASES, *offload.CASES)
