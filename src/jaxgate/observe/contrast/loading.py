"""What loading a batch asks of JAX: an input pipeline that does so competes with the step for the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from jaxgate.model.words import plural
from jaxgate.observe.execute.dispatches import count_launches


def loading_of(load: Callable[[], Any]) -> tuple[str, ...]:
    """What one warm call launches or transfers, and whether it gives arrays of JAX, a phrase each.

    Raises:
        RuntimeError: If the backend's profile does not show it: nothing would look like something clean.
    """
    batch = load()
    arrays = sum(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(batch))
    seen = count_launches(lambda: load, [jax.devices()[0]])
    if seen.programs is None or seen.transfers is None:
        raise RuntimeError(f"what the input pipeline asks of JAX is not known: {seen.why_not}")
    found = [f"{plural(arrays, 'of its arrays is', 'of its arrays are')} JAX's"] if arrays else []
    for one, several, counted, lines in (
        ("launch", "launches", seen.programs, seen.program_lines),
        ("transfer", "transfers", seen.transfers, seen.transfer_lines),
    ):
        for name, times in counted.items():
            place = f" at {lines[name]}" if name in lines else ""
            found.append(f"{plural(times, one, several)} of {name}{place}")
    return tuple(found)
