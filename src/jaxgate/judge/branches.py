"""A condition that no longer chooses what is run: under ``vmap`` a ``cond`` becomes a select, a loop goes on for the last."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jaxgate.judge.growth import at, count_of, elements
from jaxgate.model import Baseline, Cause, MeasuredProgram, Measurement

_BRANCHES = ("stablehlo.case", "stablehlo.if")
_SELECT = "stablehlo.select"
_WHILE = "stablehlo.while"
_ANY = "stablehlo.reduce i1"
"""What asks whether one of a batch is not done."""
_EXPLAINS = frozenset(
    {
        "temp_bytes", "peak_bytes", "xla_bytes", "xla_flops", "transcendentals", "matmul_flops", "stablehlo_ops", "run_ns",
        "collectives", "collective_bytes", "compile_ns",
    }
)  # fmt: skip


def runs_all_branches(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    """Fewer conditions than before, and as a select of their results instead: all branches run, for all elements."""
    if baseline is None:
        return
    selects = _more(now, baseline, _SELECT)
    if count_of(now.operations, _WHILE) == count_of(baseline.operations, _WHILE) and _more(now, baseline, _ANY):
        looped = [label for label in selects if label not in baseline.operations]
        if looped:
            label = max(looped, key=elements)
            text = f"a while_loop, as under vmap, goes on until all of its batch are done: {label} 0 → "
            text += f"{now.operations[label]}{at(label, now.culprits.lines)}"
            yield Cause(text=text, explains=_EXPLAINS, sure=False, root=True)
    before, after = (sum(count_of(side.operations, name) for name in _BRANCHES) for side in (baseline, now))
    if after >= before:
        return
    gone = [label for name in _BRANCHES for label in _more(baseline, now, name)]
    chosen = [label for label in selects if any(_batches(label, one) for one in gone)]
    if chosen:
        label = max(
            chosen, key=lambda label: (now.operations[label] - baseline.operations.get(label, 0), elements(label))
        )
        count = f"{baseline.operations.get(label, 0)} → {now.operations[label]}"
        text = (
            f"a cond became a select, as under vmap, and all its branches run: {gone[0].partition(' ')[0]} {before} → {after}"
            f", {label} {count}{at(label, now.culprits.lines)}"
        )
        yield Cause(text=text, explains=_EXPLAINS, root=True)


def _more(now: MeasuredProgram, before: MeasuredProgram, name: str) -> list[str]:
    """Labels of an operation of which one side has more than the other."""
    return [
        label
        for label, count in now.operations.items()
        if f"{label} ".startswith(f"{name} ") and count > before.operations.get(label, 0)
    ]


def _batches(select: str, branch: str) -> bool:
    """Whether a select gives what a condition gave, or a batch of it: the same type, at most more dimensions."""
    ours, theirs = (re.split(r"x(?=[a-z])|x(?=\d)", label.rpartition(" ")[2]) for label in (select, branch))
    rest = list(ours)
    for part in theirs:
        if part not in rest:
            return False
        rest.remove(part)
    return True
