"""How long the bursts of a duel are: what the clock needs, and what a duel costs at most."""

from __future__ import annotations

DUEL_BURST_NS = {"cpu": 5_000_000}
ACCELERATOR_BURST_NS = 20_000_000
"""On every other platform."""
BURSTS = 3
"""In each half-round."""
LONG_CALL_NS = 10_000_000
"""A call that takes longer is its own burst, once for each half-round."""
