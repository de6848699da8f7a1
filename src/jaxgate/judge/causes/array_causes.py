"""Arrays that grew, are padded, repeated, picked row by row, or kept of each step of a loop."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from jaxgate.judge.causes.growth import (
    BUFFERS,
    Change,
    and_more,
    elements,
    exceeds,
    grown,
    largest,
    of_kind,
    total_elements,
)
from jaxgate.model.launched import changed_programs
from jaxgate.model.measurement import APART, LOOP, MAX_NAMED, Leaf
from jaxgate.model.verdict import Cause
from jaxgate.model.words import shortlist

_STORE, _READ = "stablehlo.dynamic_update_slice", "stablehlo.dynamic_slice"
_BROADCAST, _RESHAPE, _GATHER = "stablehlo.broadcast_in_dim", "stablehlo.reshape", "stablehlo.gather"
_PRODUCTS = ("stablehlo.convolution", "stablehlo.dot_general")
_FILLING = ("stablehlo.pad", "stablehlo.concatenate")
_TURNS = 8
"""Copies from which on they are those of a loop."""
_FEWER = 10
"""An array of at most a tenth of the largest one does not matter."""
_EXTENT = r"(?<=[\[,])\d+"


def gives_programs_more(change: Change) -> str:
    """Programs of plain Python that are given larger arrays."""
    for ours, theirs in changed_programs(change.now.launched_programs, change.before.launched_programs):
        if ours and theirs and (pairs := _grown_alike(ours.arguments, theirs.arguments)):
            old, new = pairs[0]
            return f"{ours.name} is given larger arrays: {old} → {new}{change.at(ours.name)}{and_more(pairs)}"
    return ""


def multiplies_larger(change: Change) -> str:
    """Products that are as many as before, of larger arrays; with what fills these up, if it did not before."""
    pairs = [] if gives_programs_more(change) else _larger_products(change) or _larger_results(change)
    if not pairs:
        return ""
    filling = [kind for kind in _FILLING if change.added(kind) > 0]
    filled = largest(of_kind(change.more("operations"), *filling))
    padded = f"arrays are padded: {change.counted(filled)}; " if filled else ""
    old, new = pairs[0]
    return f"{padded}the same products of larger arrays: {old} → {new}{change.at(new)}"


def repeats_arrays(change: Change) -> str:
    """An array that is written out several times, as ``tile`` and ``repeat`` do: broadcast, then given its new shape.

    Rows that are picked into an array larger than every argument are such copies, too. Only where nothing else that is new is larger,
    the program has arrays of about that size, and no loop is gone: all its steps at once are larger, too.
    """
    if change.added(LOOP) < 0:
        return ""
    new = change.more("operations")
    reshaped = {_size_and_type(label) for label in of_kind(new, _RESHAPE)}
    copies = [label for label in of_kind(new, _BROADCAST) if _size_and_type(label) in reshaped]
    given = max((elements(leaf.aval) for leaf in change.now.signature), default=0)
    known = {elements(label) for label in of_kind(change.before.operations, _GATHER)}
    picked = [label for label in of_kind(new, _GATHER) if given < elements(label) not in known]
    usual = max(map(elements, change.before.operations), default=0)
    for labels, what in ((copies, "an array is repeated"), (picked, "rows are copied")):
        label = largest(labels)
        if label and elements(label) * _FEWER > usual and exceeds(label, new):
            return f"{what}: {change.counted(label)}"
    return ""


def _size_and_type(label: str) -> tuple[int, str]:
    return elements(label), label.rpartition("x")[2]


def copied_more(change: Change) -> str:
    """The arrays that the optimised program copies more often than before; empty if there are none, or it is not known."""
    ours, theirs = (_copies(side.kernels) for side in (change.now, change.before))
    more = change.before.kernels and total_elements(ours) > total_elements(theirs)
    return grown(ours, theirs, change.now.culprits.lines) if more else ""


def copies(change: Change) -> Iterator[Cause]:
    """Arrays that are copied in the turns of a loop; a single copy follows from something else."""
    if text := copied_more(change):
        copied = _copies(change.more("kernels"))
        in_turns = any(count >= _TURNS and elements(label) > 1 for label, count in copied.items())
        follows = BUFFERS | {"kernels", "run_ns"} if in_turns and change.is_worse("copied_bytes") else frozenset()
        yield Cause(text=f"arrays are copied: {text}", explains=follows | {"copied_bytes"})


def jumps_more(change: Change) -> str:
    """Arrays in which gathers and scatters pick more single elements than before; empty if there are none, or unknown."""
    sides = (change.now.kernels, change.before.kernels)
    ours, theirs = ({label: count for label, count in kernels.items() if APART in label} for kernels in sides)
    more = change.before.kernels and change.is_worse("scattered_bytes")
    return grown(ours, theirs, change.now.culprits.lines) if more else ""


def jumps(change: Change) -> str:
    """Elements that are picked far apart by another program than before."""
    text = "" if change.difference.same_program else jumps_more(change)
    return text and f"elements are picked far apart in memory: {text}"


def stores_each_step(change: Change) -> str:
    """A loop writes an array at each step for the way back: another loop reads it, or it exceeds all arguments and results."""
    new = change.more("operations")
    label = largest(label for label in of_kind(new, _STORE) if label not in change.before.operations)
    given = max((elements(leaf.aval) for leaf in (*change.now.signature, *change.before.results)), default=0)
    row = f"{_READ} 1{label[label.find('x') :]}"
    later = change.added(LOOP) <= 0 and row in new  # read by a loop that was there
    named = label and (later or elements(label) > given) and exceeds(label, new)
    return f"a loop keeps an array of each of its steps: {change.counted(label)}" if named else ""


def _copies(kernels: Mapping[str, int]) -> dict[str, int]:
    return {label: count for label, count in kernels.items() if label.startswith("copy ")}


def _grown_alike(now: Sequence[str], before: Sequence[str]) -> list[tuple[str, str]]:
    """Types that grew, as pairs of then and now, the largest first; none if another one changed otherwise."""
    if len(now) != len(before):
        return []
    pairs = [(old, new) for old, new in zip(before, now, strict=True) if old != new]
    return _largest_first(pairs) if all(_is_larger(old, new) for old, new in pairs) else []


def _largest_first(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return sorted(pairs, key=lambda pair: -elements(pair[1]))


def _larger_products(change: Change) -> list[tuple[str, str]]:
    """Products in pairs of then and now; none unless each that changed is one of larger arrays, as often as before."""
    come, gone = change.more("matmuls"), change.less("matmuls")
    if sum(come.values()) != sum(gone.values()):
        return []
    pairs = []
    for label in sorted(come, key=lambda label: (-elements(label), label)):
        for old in sorted(gone, key=lambda old: (-elements(old), old)):
            moved = min(come[label], gone[old]) if _is_larger(old, label) else 0
            if moved:
                come[label] -= moved
                gone[old] -= moved
                pairs.append((old, label))
    return [] if any(come.values()) else pairs


def _larger_results(change: Change) -> list[tuple[str, str]]:
    """Products of the same operands that give more, as a convolution does with smaller strides; in pairs of then and now."""
    if change.now.matmuls != change.before.matmuls or not change.rose("matmul_flops"):
        return []
    come, gone = change.more("operations"), change.less("operations")
    pairs = ((old, new) for new in come if new.startswith(_PRODUCTS) for old in gone)
    return _largest_first((old, new) for old, new in pairs if _is_larger(_bracketed(old), _bracketed(new)))


def _bracketed(label: str) -> str:
    """``stablehlo.convolution 2x16x16x8xf32`` with its extents as ``[2,16,16,8]``."""
    name, _, type_ = label.partition(" ")
    *extents, kind = type_.split("x")
    return f"{name} {kind}[{','.join(extents)}]"


def _is_larger(before: str, now: str) -> bool:
    """Whether two texts differ by extents alone, of which some grew and none shrank."""
    if re.sub(_EXTENT, "", now) != re.sub(_EXTENT, "", before):
        return False
    ours, theirs = (list(map(int, re.findall(_EXTENT, text))) for text in (now, before))
    return ours != theirs and all(new >= old for new, old in zip(ours, theirs, strict=True))


def not_donated(change: Change) -> str:
    """Arguments that are donated no more; without a baseline only that nothing is."""
    if not change.compared:
        return "" if any(leaf.donated for leaf in change.now.signature) else "nothing is donated"
    pairs = zip(change.now.signature, change.before.signature, strict=False)
    gone = [leaf for leaf, before in pairs if before.donated and not leaf.donated]
    named = shortlist([leaf.path for leaf in gone], MAX_NAMED)
    return f"no longer donated: {named} ({sum(leaf.nbytes for leaf in gone):,} bytes)" if gone else ""


def spread_less(now: Sequence[Leaf], before: Sequence[Leaf]) -> str:
    """Arrays of the same shape that take more of each device: they are no longer spread over as many."""
    if [leaf.aval for leaf in now] != [leaf.aval for leaf in before]:
        return ""
    pairs = [(leaf, old) for leaf, old in zip(now, before, strict=True) if leaf.nbytes > old.nbytes]
    if not pairs:
        return ""
    leaf, old = max(pairs, key=lambda pair: pair[0].nbytes - pair[1].nbytes)
    taken = f"{leaf.path} takes {leaf.nbytes:,} bytes of each device, {old.nbytes:,} before"
    return f"{taken}: sharded less{and_more(pairs)}"


def returns_more(change: Change) -> str:
    """A result that is new, or larger."""
    now, before = change.now.results, {leaf.path: leaf for leaf in change.before.results}
    if len(now) == len(before) == 1:  # a single array may be named anew
        before = {now[0].path: change.before.results[0]}
    larger = [leaf for leaf in now if leaf.nbytes > (before[leaf.path].nbytes if leaf.path in before else 0)]
    if not larger or sum(leaf.nbytes for leaf in now) <= sum(leaf.nbytes for leaf in change.before.results):
        return ""
    leaf = max(larger, key=lambda leaf: leaf.nbytes)
    was = f"{before[leaf.path].aval} before" if leaf.path in before else "new"
    return f"more is returned: {leaf.path} is {leaf.aval} ({leaf.nbytes:,} bytes), {was}{and_more(larger)}"


def takes_most(change: Change) -> str:
    """The largest argument, where there is nothing to compare with; other arguments have no baseline either."""
    if change.compared or not change.now.signature:
        return ""
    leaf = max(change.now.signature, key=lambda leaf: leaf.nbytes)
    return f"largest argument: {leaf.path} is {leaf.aval} ({leaf.nbytes:,} bytes)"
