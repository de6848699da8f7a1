"""A baseline whose program takes other arguments than today's: which of them changed, and whether a setting did it."""

from __future__ import annotations

from collections.abc import Iterator

from jaxgate.judge.difference import Difference
from jaxgate.model import MAX_NAMED, Baseline, Cause, Finding, Leaf, Measurement, Status, shortlist

_KINDS = {True: "plain Python, called as it is (eager=True)", False: "a function under jax.jit"}


def find_stale(difference: Difference) -> Finding | None:
    """Say why a baseline cannot be compared; ``None`` if it can.

    Its program takes other arguments, or it is of another kind of subject.
    """
    now, baseline = difference.now, difference.baseline
    if now.eager != baseline.eager:
        detail = f"it is of {_KINDS[baseline.eager]}, today's subject is {_KINDS[now.eager]}: record it again"
    elif difference.arguments:
        return None
    else:
        detail = f"the arguments changed since it was recorded ({_change(now, baseline)})"
    return Finding(kind="baseline", name="stale baseline", status=Status.STALE_BASELINE, detail=detail)


def explain_stale(difference: Difference) -> Iterator[Cause]:
    """Settings of JAX under which arrays are made otherwise, where they are not what the baseline was recorded under.

    With 64-bit mode numbers become wider, another generator has other keys. Where the shapes changed too, or whole
    arguments, no setting did all of it.
    """
    now, baseline, changed = difference.now, difference.baseline, difference.tracing_settings
    if changed and now.eager == baseline.eager:
        pairs = list(zip(now.signature, baseline.signature, strict=False))
        alike = len(now.signature) == len(baseline.signature) and all(_shape(a) == _shape(b) for a, b in pairs)
        text = f"recorded under other settings: {shortlist(changed, MAX_NAMED)}"
        yield Cause(text=text, explains=frozenset({"stale baseline"}), sure=alike)


def _change(now: Measurement, baseline: Baseline) -> str:
    ours, theirs = now.signature, baseline.signature
    before = {leaf.path: leaf for leaf in theirs}
    if len(ours) != len(theirs):
        paths = {leaf.path for leaf in ours}
        new = [f"{leaf.path} is new" for leaf in ours if leaf.path not in before]
        gone = [f"{leaf.path} is gone" for leaf in theirs if leaf.path not in paths]
        named = f": {shortlist(sorted(new) + sorted(gone), MAX_NAMED, phrases=True)}" if new or gone else ""
        return f"{len(theirs)} arrays then, {len(ours)} now{named}"
    # by path: a renamed key moves its neighbours
    moved = [leaf for leaf in ours if leaf.path not in before or before[leaf.path].aval != leaf.aval]
    if not moved:
        index = next(i for i, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a.aval != b.aval)
        return f"{ours[index].path}: {theirs[index].aval} then, {ours[index].aval} now"
    leaf = max(moved, key=lambda leaf: leaf.nbytes - _bytes(before.get(leaf.path)))
    was = before[leaf.path].aval if leaf.path in before else "not there"
    more = f"; and {len(moved) - 1} more" if len(moved) > 1 else ""
    return f"{leaf.path}: {was} then, {leaf.aval} now{more}"


def _bytes(leaf: Leaf | None) -> int:
    return 0 if leaf is None else leaf.nbytes


def _shape(leaf: Leaf) -> str:
    return leaf.aval.partition("[")[2].partition("]")[0]
