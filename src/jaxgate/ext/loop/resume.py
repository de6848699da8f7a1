"""The process that restores a loop's state and goes on, and what it says of that."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxgate.ext.loop.held import listening, memory
from jaxgate.ext.loop.model import Arrival, Count, Loop
from jaxgate.ext.loop.watch import HOST, Notes, Steps, arrivals, compiled_later, made, place_of, ratio, taken
from jaxgate.model.measurement import MAX_NAMED, InvalidCaseError
from jaxgate.model.words import plural, shortlist
from jaxgate.observe.arguments.signature import leaves_with_paths, to_host
from jaxgate.observe.errors import guarded
from jaxgate.observe.execute.correctness import Closeness, check_agreement
from jaxgate.observe.tools import Announce

_CLOSE = Closeness(relative=0, absolute=0, rounding=1e-3)
"""How far a leaf may end from where it ended without the restore, of its largest element: two processes may add in another order."""
_PYTHON = (bool, int, float, complex)

Arrays = list[np.ndarray[Any, Any]]


def resume(loop: Loop, saved: Path, progress: Announce) -> tuple[dict[str, Any], Arrays]:
    """Restore what was saved and take the rest of the steps.

    Returns:
        What ``compare`` reads, and the leaves of the state at the end.

    Raises:
        InvalidCaseError: If a part of the loop fails.
    """
    assert loop.restore is not None, "nobody resumes without"
    for _ in range(2):  # the first one may import
        like = made(loop, progress)
        progress("restoring")
        with listening(), memory() as needed, guarded("restoring"):
            state = loop.restore(saved, like)
        del like
    steps = Steps(loop, state, after=loop.half, progress=progress, clock=time.perf_counter_ns)
    found = arrivals(state)
    restored = leaves_with_paths((state,), {}, ("state",))
    held = ratio(f"restore= {HOST} a state of {{}}", needed.most, state, place_of(loop.restore))
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
    ended = end_of(steps.state)
    return {**said, "paths": list(ended)}, list(ended.values())


def end_of(state: Any) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays and numbers of a state by their paths, on the host."""
    leaves = leaves_with_paths((state,), {}, ("state",))
    return {
        path: to_host(leaf) for path, leaf in leaves if isinstance(leaf, (jax.Array, np.ndarray, np.generic, *_PYTHON))
    }


def compare(notes: Notes, end: Any, said: Mapping[str, Any], arrays: Arrays) -> dict[str, Count]:
    """Hold what a resumed loop showed, and the leaves that it ended with, against notes and end of the one that went on."""
    now = {one["path"]: Arrival(**one) for one in said["arrivals"]}
    return {
        "restored_leaves": _restored(notes.arrivals, now),
        "undonated_bytes": _undonated(notes.taken, said),
        "resumed_compiles": _compiled(notes.compiled, said["compiled"]),
        "other_ends": _ends(end_of(end), dict(zip(said["paths"], arrays, strict=True))),
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


def _compiled(before: Counter[str], steps: Sequence[Mapping[str, str]]) -> Count:
    more = compiled_later(steps) - before
    if not more:
        return Count(0)
    name = next(iter(more))
    cause = next(step[name] for step in steps[1:] if name in step)
    return Count(len(more), f"{name} is compiled once more after restore=, though not in the first step", cause)


def _ends(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Count:
    """Leaves that end elsewhere, or in one loop alone."""
    apart = dict.fromkeys(ours.keys() ^ theirs.keys(), " is in one of both")
    for path in ours.keys() & theirs.keys():
        try:
            check_agreement(theirs[path], ours[path], _CLOSE, names=("the restored loop", "the other"))
        except InvalidCaseError as error:
            apart[path] = error.reason.partition(";")[0].removeprefix("result")
    where = next((f"{path}{text}" for path, text in sorted(apart.items())), "")
    told = f"restored, {plural(len(apart), 'leaf', 'leaves')} of the state end elsewhere than without a stop"
    return Count(len(apart), told, where)
