"""Arrays that grew, are padded, repeated, picked row by row, or kept of each step of a loop."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from jaxgate.judge.causes.growth import BUFFERS, RUN, at, count_of, counted, elements, grown, more_of, total_elements
from jaxgate.judge.difference import Difference
from jaxgate.judge.policy import BY_NAME
from jaxgate.model.baseline import Baseline
from jaxgate.model.launched import changed_programs
from jaxgate.model.measurement import APART, LOOP, Measurement
from jaxgate.model.verdict import Cause

_STORE, _READ = "stablehlo.dynamic_update_slice", "stablehlo.dynamic_slice"
_BROADCAST, _RESHAPE, _GATHER = "stablehlo.broadcast_in_dim", "stablehlo.reshape", "stablehlo.gather"
_PRODUCTS = ("stablehlo.convolution", "stablehlo.dot_general")
_TURNS = 8
"""Copies from which on they are those of a loop."""
_FEWER = 10
"""An array of at most a tenth of the largest one does not matter."""
_FILLING = ("stablehlo.pad", "stablehlo.concatenate")
_OF_LARGER = RUN | {"matmul_flops"}
_OF_PROGRAMS = _OF_LARGER | {
    "output_bytes",
    "state_bytes",
    "collective_bytes",
    "widened_bytes",
    "aliased_bytes",
    "host_ns",
}


def takes_larger_arrays(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    """Programs of plain Python that are given more; products that are as many as before, of larger arrays."""
    if baseline is None:
        return
    for ours, theirs in changed_programs(now.launched_programs, baseline.launched_programs):
        if ours is None or theirs is None:
            continue
        pairs = _grown_alike(ours.arguments, theirs.arguments)
        if pairs:
            more = f"; and {len(pairs) - 1} more" if len(pairs) > 1 else ""
            where = at(ours.name, now.culprits.lines)
            text = f"{ours.name} is given larger arrays: {pairs[0][0]} → {pairs[0][1]}{where}{more}"
            yield Cause(text=text, explains=_OF_PROGRAMS, root=True)
            return
    products = _larger_products(now, baseline) or _larger_results(now, baseline)
    if products:
        before, after = products[0]
        text = f"the same products of larger arrays: {before} → {after}{at(after, now.culprits.lines)}"
        yield Cause(text=_padded(now, baseline) + text, explains=_OF_LARGER, root=True)


def repeats_arrays(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    """An array that is written out several times, as ``tile`` and ``repeat`` do: broadcast, then given its new shape.

    Rows that are picked into an array larger than every argument are such copies, too. Only where nothing else that is new is larger,
    the program has arrays of about that size, and no loop is gone: all its steps at once are larger, too.
    """
    if baseline is None or count_of(now.operations, LOOP) < count_of(baseline.operations, LOOP):
        return
    new = more_of(now.operations, baseline.operations)
    sizes = {(elements(label), _type(label)) for label in new if label.startswith(f"{_RESHAPE} ")}
    copies = [label for label in new if label.startswith(f"{_BROADCAST} ") and (elements(label), _type(label)) in sizes]
    given = max((elements(leaf.aval) for leaf in now.signature), default=0)
    known = {elements(label) for label in baseline.operations if label.startswith(f"{_GATHER} ")}
    picked = [label for label in new if label.startswith(f"{_GATHER} ") and given < elements(label) not in known]
    for labels, what in ((copies, "an array is repeated"), (picked, "rows are copied")):
        label = max(labels, key=lambda label: (elements(label), label), default="")
        larger = max((elements(other) for other in baseline.operations), default=0)
        if label and elements(label) * _FEWER > larger and all(elements(label) >= elements(other) for other in new):
            text = f"{what}: {counted(label, now.operations, baseline.operations, now.culprits.lines)}"
            yield Cause(text=text, explains=BUFFERS | {"run_ns", "kernels"}, root=True)
            return


def copied_more(now: Measurement, baseline: Baseline | None) -> str:
    """The arrays that the optimised program copies more often than before; empty if there are none, or it is not known."""
    if baseline is None or not baseline.kernels:
        return ""
    ours, theirs = (
        {label: n for label, n in side.kernels.items() if label.startswith("copy ")} for side in (now, baseline)
    )
    return grown(ours, theirs, now.culprits.lines) if total_elements(ours) > total_elements(theirs) else ""


def copies(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    """Arrays that are copied in the turns of a loop; a single copy follows from something else."""
    text = copied_more(now, baseline)
    if baseline is not None and text:
        more = more_of(now.kernels, baseline.kernels)
        in_turns = any(
            count >= _TURNS and label.startswith("copy ") and elements(label) > 1 for label, count in more.items()
        )
        worse = BY_NAME["copied_bytes"].is_worse(now.facts.copied_bytes or 0, baseline.facts.copied_bytes or 0)
        follows = BUFFERS | {"kernels", "run_ns"} if in_turns and worse else frozenset()
        yield Cause(text=f"arrays are copied: {text}", explains=follows | {"copied_bytes"})


def jumps_more(now: Measurement, baseline: Baseline | None) -> str:
    """Arrays in which gathers and scatters pick more single elements than before; empty if there are none, or unknown."""
    if baseline is None or not baseline.kernels:
        return ""
    ours, theirs = ({label: n for label, n in side.kernels.items() if APART in label} for side in (now, baseline))
    worse = BY_NAME["scattered_bytes"].is_worse(now.facts.scattered_bytes or 0, baseline.facts.scattered_bytes or 0)
    return grown(ours, theirs, now.culprits.lines) if worse else ""


def jumps(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    """Elements that are picked far apart by another program than before."""
    text = jumps_more(now, baseline)
    if baseline is not None and text and not Difference(now, baseline).program:
        yield Cause(text=f"elements are picked far apart in memory: {text}", explains=frozenset({"scattered_bytes"}))


def _type(label: str) -> str:
    return label.rpartition("x")[2]


def _grown_alike(now: Sequence[str], before: Sequence[str]) -> list[tuple[str, str]]:
    """Types that grew, as pairs of then and now, the largest first; none if another one changed otherwise."""
    if len(now) != len(before):
        return []
    pairs = [(old, new) for old, new in zip(before, now, strict=True) if old != new]
    if not all(_is_larger(old, new) for old, new in pairs):
        return []
    return sorted(pairs, key=lambda pair: -elements(pair[1]))


def _larger_products(now: Measurement, baseline: Baseline) -> list[tuple[str, str]]:
    """Products in pairs of then and now; none unless each that changed is one of larger arrays, as often as before."""
    come, gone = more_of(now.matmuls, baseline.matmuls), more_of(baseline.matmuls, now.matmuls)
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


def _larger_results(now: Measurement, baseline: Baseline) -> list[tuple[str, str]]:
    """Products of the same operands that give more, as a convolution does with smaller strides; in pairs of then and now."""
    if now.matmuls != baseline.matmuls or (now.facts.matmul_flops or 0) <= (baseline.facts.matmul_flops or 0):
        return []
    come, gone = more_of(now.operations, baseline.operations), more_of(baseline.operations, now.operations)
    pairs = ((old, new) for new in come if new.startswith(_PRODUCTS) for old in gone)
    return sorted(
        ((old, new) for old, new in pairs if _is_larger(_bracketed(old), _bracketed(new))),
        key=lambda pair: -elements(pair[1]),
    )


def _bracketed(label: str) -> str:
    """``stablehlo.convolution 2x16x16x8xf32`` with its extents as ``[2,16,16,8]``."""
    name, _, type_ = label.partition(" ")
    *extents, kind = type_.split("x")
    return f"{name} {kind}[{','.join(extents)}]"


def _padded(now: Measurement, baseline: Baseline) -> str:
    """Where arrays are filled up, if they were not before."""
    kinds = [kind for kind in _FILLING if count_of(now.operations, kind) > count_of(baseline.operations, kind)]
    if not kinds:
        return ""
    new = [label for label in more_of(now.operations, baseline.operations) if label.partition(" ")[0] in kinds]
    label = max(new, key=lambda label: (elements(label), label))
    return f"arrays are padded: {counted(label, now.operations, baseline.operations, now.culprits.lines)}; "


def _is_larger(before: str, now: str) -> bool:
    """Whether two texts differ by extents alone, of which some grew and none shrank."""
    ours, theirs = (re.findall(r"(?<=[\[,])\d+", text) for text in (now, before))
    if re.sub(r"(?<=[\[,])\d+", "", now) != re.sub(r"(?<=[\[,])\d+", "", before):
        return False
    pairs = [(int(new), int(old)) for new, old in zip(ours, theirs, strict=True)]
    return all(new >= old for new, old in pairs) and any(new > old for new, old in pairs)


def stores_each_step(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    """A loop writes an array at each step for the way back: another loop reads it, or it exceeds all arguments and results."""
    if baseline is None:
        return
    new = more_of(now.operations, baseline.operations)
    given = max((elements(leaf.aval) for leaf in (*now.signature, *baseline.results)), default=0)
    stored = [label for label in new if label.startswith(f"{_STORE} ") and label not in baseline.operations]
    label = max(stored, key=lambda label: (elements(label), label), default="")
    loops, before = (count_of(side.operations, LOOP) for side in (now, baseline))
    later = loops <= before and f"{_READ} 1{label[label.find('x') :]}" in new  # a row of it, by a loop that was there
    if label and (later or elements(label) > given) and all(elements(label) >= elements(other) for other in new):
        named = counted(label, now.operations, baseline.operations, now.culprits.lines)
        yield Cause(text=f"a loop keeps an array of each of its steps: {named}", explains=RUN, root=True)
