"""The process that restores a loop's state and goes on, and what it says of that."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxgate.ext.loop.model import Arrival, Count, Loop
from jaxgate.ext.loop.watch import Notes, Steps, arrivals, made, place_of, ratio, taken, using_memory
from jaxgate.model.measurement import MAX_NAMED
from jaxgate.model.words import plural, shortlist
from jaxgate.observe.arguments.feeder import on_host
from jaxgate.observe.arguments.signature import leaves_with_paths
from jaxgate.observe.errors import guarded
from jaxgate.observe.tools import Announce
from jaxgate.observe.trace.clocks import Clock

_CLOSE = 1e-3
"""How far a leaf may end from where it ended without the restore, of its largest element: two processes may add in another order."""

Arrays = list[np.ndarray[Any, Any]]


def resume(
    loop: Loop, saved: Path, progress: Announce, clock: Clock = time.perf_counter_ns
) -> tuple[dict[str, Any], Arrays]:
    """Restore what was saved and take the rest of the steps.

    Returns:
        What ``compare`` reads, and the leaves of the state at the end.

    Raises:
        InvalidCaseError: If a part of the loop fails.
    """
    like = made(loop, progress)
    progress("restoring")
    assert loop.restore is not None, "nobody resumes without"
    with using_memory() as needed, guarded("restoring"):
        state = loop.restore(saved, like)
    del like
    steps = Steps(loop, state, after=loop.half, progress=progress, clock=clock)
    found = arrivals(state)
    restored = leaves_with_paths((state,), {}, ("state",))
    held = ratio("restore=", needed[0], state, place_of(loop.restore))
    del state
    steps.take()
    gone = taken(restored)
    sizes = {path: int(getattr(leaf, "nbytes", 0)) for path, leaf in restored}
    del restored
    for _ in range(loop.steps - steps.number):
        steps.take()
    said = {
        "arrivals": [asdict(one) for one in found],
        "taken": gone,
        "sizes": sizes,
        "compiled": steps.compiled,
        "restore": asdict(held),
    }
    return said, end_of(steps.state)


def end_of(state: Any) -> Arrays:
    """The leaves of a state, on the host, in float64 where they are numbers with a point."""
    arrays = []
    for _, leaf in leaves_with_paths((state,), {}, ("state",)):
        values = np.asarray(on_host(leaf)) if isinstance(leaf, (jax.Array, np.ndarray, int, float)) else np.zeros(0)
        arrays.append(values.astype(np.float64) if values.dtype.kind in "fV" else values)
    return arrays


def compare(notes: Notes, ours: Arrays, said: Mapping[str, Any], theirs: Arrays) -> dict[str, Count]:
    """Hold what a resumed loop showed against the one that went on."""
    paths = [one.path for one in notes.arrivals]
    now = {one["path"]: Arrival(**one) for one in said["arrivals"]}
    return {
        "restored_leaves": _restored(notes.arrivals, now),
        "undonated_bytes": _undonated(notes.taken, said),
        "resumed_compiles": _compiled(notes.compiled, said["compiled"][1:]),
        "other_ends": _ends(paths, ours, theirs),
        "restore_ratio": Count(**said["restore"]),
    }


def _restored(before: Sequence[Arrival], now: Mapping[str, Arrival]) -> Count:
    lost = [f"{one.path}: gone" for one in before if one.path not in now]
    changed = [text for one in before if one.path in now and (text := one.change(now[one.path]))]
    found = [*lost, *changed]
    told = f"restore= gives {plural(len(found), 'leaf', 'leaves')} of the state otherwise than saved"
    return Count(len(found), told, shortlist(found, MAX_NAMED, phrases=True))


def _undonated(taken_before: Sequence[str], said: Mapping[str, Any]) -> Count:
    lost = [path for path in taken_before if path not in said["taken"]]
    nbytes = sum(said["sizes"].get(path, 0) for path in lost)
    told = f"after restore= a step cannot take over {nbytes / 1e6:,.3g} MB of the state, which it takes over else"
    return Count(nbytes, told, shortlist(lost, MAX_NAMED))


def _compiled(before: Sequence[str], steps: Sequence[Mapping[str, str]]) -> Count:
    found = {name: cause for step in steps for name, cause in step.items() if name not in before}
    if not found:
        return Count(0)
    name, cause = next(iter(found.items()))
    return Count(len(found), f"{name} is compiled once more after restore=, though not in the first step", cause)


def _ends(paths: Sequence[str], ours: Arrays, theirs: Arrays) -> Count:
    """Leaves that end elsewhere."""
    if len(ours) != len(theirs):
        return Count(1, f"restored, the state has {len(theirs)} leaves at its end, else {len(ours)}")
    apart = {}
    for path, one, other in zip(paths, ours, theirs, strict=False):
        if one.shape != other.shape:
            apart[path] = np.inf
        elif one.dtype.kind == "f":
            largest = float(np.max(np.abs(one), initial=0.0)) or 1.0
            distance = float(np.max(np.abs(one - other), initial=0.0)) / largest
            apart |= {} if distance <= _CLOSE else {path: distance}
        elif not np.array_equal(one, other):
            apart[path] = np.inf
    if not apart:
        return Count(0)
    worst = max(apart, key=lambda path: apart[path])
    where = f"{worst}{'' if np.isinf(apart[worst]) else f' by {apart[worst]:.1%}'}"
    told = f"restored, {plural(len(apart), 'leaf', 'leaves')} of the state end elsewhere than without a stop"
    return Count(len(apart), told, where)
