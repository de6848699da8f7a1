"""A sample that traced, made again call by call to find out why: bursts under the clock are not explained."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax

from jaxgate.observe.compiling import Lowered
from jaxgate.observe.events import record
from jaxgate.observe.failures import guarded
from jaxgate.observe.feeding import Feeder
from jaxgate.observe.private import argument_leaf_names
from jaxgate.observe.retraces import Blame, retrace_lines
from jaxgate.observe.signature import MAX_NAMED, Seen, explain, see

NextArgs = Callable[[Any, tuple[Any, ...]], tuple[Any, ...] | None]

MAX_REPLAYED = 100
"""Calls that are made again at most: state that never settles shows in the first few."""


def static_names(lowered: Lowered, kwargs: Mapping[str, Any]) -> frozenset[str]:
    """Names of the arguments that JAX did not trace; none where that cannot be known."""
    dynamic = argument_leaf_names(lowered.traced)
    named = [name for name in (*lowered.names, *kwargs) if name.isidentifier()]
    return frozenset(named) - dynamic if dynamic else frozenset()


def call_again(
    lowered: Lowered, feeder: Feeder, next_args: NextArgs | None, *, calls: int, settled: int, word: str
) -> tuple[str, ...]:
    """Make the calls of a burst again, each explained, and one more: who traces again, or whose arguments moved.

    What the burst traced is in JAX's caches by now; the argument that moved is named from the signatures.

    Args:
        lowered: The subject.
        feeder: Makes the arguments of a burst.
        next_args: Threads the state within it.
        calls: Calls in a burst.
        settled: Calls at its beginning that the threaded steps had made before.
        word: ``retraced`` or ``recompiled``, as the sample was.

    Returns:
        Lines, the root cause first; never empty.
    """
    args, kwargs = feeder.fresh()
    static = static_names(lowered, kwargs)
    blame = Blame(complete=True)
    again: list[str] = []
    moved: dict[int, str] = {}
    known: list[tuple[Seen, ...]] = []
    for call in range(1, min(calls, MAX_REPLAYED) + 2):
        seen = see(args, kwargs, lowered.names, static)
        with record(explain=True) as events, guarded("calling the subject again"):
            output = jax.block_until_ready(lowered.function(*args, **kwargs))
        name = f"call {call} of the sample"
        culprits = blame.culprits(events)
        if culprits:
            before = known[-1] if known else seen
            again += retrace_lines(name, culprits, subject=lowered.name, before=before, after=seen, names=lowered.names)
        elif known and seen not in known:
            moved[call] = f"{name} {word}: {explain(known[-1], seen)}"
        known.append(seen)
        if next_args is None:
            args, kwargs = feeder.fresh()
        else:
            args = next_args(output, args) or args
    late = [line for call, line in moved.items() if call > settled]
    lines = late or list(moved.values()) or again
    return tuple(lines[:MAX_NAMED]) or (f"the sample {word}, the same calls made again did not: cause unknown",)
