"""Two ways to run the same turn many times; what the cases of this family are held against."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxgate import Growth, grows

Tree = Any
"""A tree of arrays."""

Turn = Callable[[Tree, Tree], tuple[Tree, Tree]]
"""One turn: what is carried on and this turn's input, to what is carried on and this turn's output."""

Turns = Callable[[Turn, Tree, Tree], tuple[Tree, Tree]]
"""Takes all turns: the turn, what is carried, inputs stacked on their first axis; outputs come back stacked."""


def by_scan(turn: Turn, carry: Tree, inputs: Tree) -> tuple[Tree, Tree]:
    """Take all turns with one compiled body."""
    carry, outputs = jax.lax.scan(turn, carry, inputs)
    return carry, outputs


def by_loop(turn: Turn, carry: Tree, inputs: Tree) -> tuple[Tree, Tree]:
    """Take all turns with a Python loop: one copy of the body for each."""
    outputs = []
    for index in range(jax.tree.leaves(inputs)[0].shape[0]):
        carry, output = turn(carry, jax.tree.map(lambda leaf, i=index: leaf[i], inputs))
        outputs.append(output)
    return carry, jax.tree.map(lambda *leaves: jnp.stack(leaves), *outputs)


def as_large(steps: int, at: Callable[..., tuple[Any, ...]]) -> Growth:
    """However many steps a call takes, its program is as large; ``at`` gives the arguments for a number of ``steps``."""
    return Growth(at, steps=(steps, 2 * steps, 4 * steps), claims=[grows("stablehlo_ops", "steps") <= 0])
