"""Donation that is dropped."""

from __future__ import annotations

from tests.plants.model import Plant

PLANTS = (
    Plant(
        name="donation is dropped",
        file="workloads/donation.py",
        case="adamw-step-donated-vs-copied",
        edits=(("jax.jit(step, donate_argnums=0)", "jax.jit(step)"),),
        moves=frozenset({"donated_bytes"}),
        culprit=r"no longer donated: state\[0\]",
    ),
)
