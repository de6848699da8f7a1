"""remat: memory for recomputation, and what the memory is good for."""

from __future__ import annotations

from workloads.remat import batch, policies

CASES = (*policies.CASES, *batch.CASES)
