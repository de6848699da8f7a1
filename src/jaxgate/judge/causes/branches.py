"""A condition that no longer chooses what is run: under ``vmap`` a ``cond`` becomes a select, a loop goes on for the last."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from jaxgate.judge.causes.growth import count_of, counted, elements, more_of
from jaxgate.judge.causes.quantities import WORK
from jaxgate.model import Baseline, Cause, Measurement

_BRANCHES = ("stablehlo.case", "stablehlo.if")
_SELECT = "stablehlo.select"
_WHILE = "stablehlo.while"
_PARTS = re.compile(r"x(?=\w)")
"""Between the extents and the element of a type: ``8x64xcomplex<f32>`` has three."""
_ANY = "stablehlo.reduce i1"
"""What asks whether one of a batch is not done."""
_EXPLAINS = WORK | {"matmul_flops", "collectives", "collective_bytes", "compile_ns"}


def runs_all_branches(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    """Fewer conditions than before, and as a select of their results instead: all branches run, for all elements."""
    if baseline is None:
        return
    grew = more_of(now.operations, baseline.operations)
    selects = _of_kind(_SELECT, grew)
    if count_of(now.operations, _WHILE) == count_of(baseline.operations, _WHILE) and _ANY in grew:
        looped = [label for label in selects if label not in baseline.operations]
        if looped:
            label = max(looped, key=elements)
            named = counted(label, now.operations, baseline.operations, now.culprits.lines)
            text = f"a while_loop, as under vmap, goes on until all of its batch are done: {named}"
            yield Cause(text=text, explains=_EXPLAINS, sure=False, root=True)
    before, after = (sum(count_of(side.operations, name) for name in _BRANCHES) for side in (baseline, now))
    if after >= before:
        return
    shrank = more_of(baseline.operations, now.operations)
    gone = [label for name in _BRANCHES for label in _of_kind(name, shrank)]
    chosen = [label for label in selects if any(_batches(label, one) for one in gone)]
    if chosen:
        label = max(chosen, key=lambda label: (grew[label], elements(label)))
        text = (
            f"a cond became a select, as under vmap, and all its branches run: {gone[0].partition(' ')[0]} {before} → {after}"
            f", {counted(label, now.operations, baseline.operations, now.culprits.lines)}"
        )
        yield Cause(text=text, explains=_EXPLAINS, root=True)


def _of_kind(name: str, labels: Iterable[str]) -> list[str]:
    return [label for label in labels if label.partition(" ")[0] == name]


def _batches(select: str, branch: str) -> bool:
    """Whether a select gives what a condition gave, or a batch of it: the same type, at most more dimensions."""
    ours, theirs = (Counter(_PARTS.split(label.rpartition(" ")[2])) for label in (select, branch))
    return theirs <= ours
