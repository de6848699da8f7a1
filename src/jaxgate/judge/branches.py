"""A condition that no longer chooses what is run: ``lax.cond`` becomes a select where its predicate is batched."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jaxgate.judge.growth import at, count_of, elements
from jaxgate.model import Baseline, Cause, Measurement

_BRANCHES = ("stablehlo.case", "stablehlo.if")
_SELECT = "stablehlo.select"
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
    before, after = (sum(count_of(side.operations, name) for name in _BRANCHES) for side in (baseline, now))
    if after >= before:
        return
    gone = [
        label
        for label, count in baseline.operations.items()
        if label.startswith(_BRANCHES) and count > now.operations.get(label, 0)
    ]
    selects = [
        label
        for label, count in now.operations.items()
        if label.partition(" ")[0] == _SELECT and count > baseline.operations.get(label, 0)
    ]
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
        yield Cause(text=text, explains=_EXPLAINS)


def _batches(select: str, branch: str) -> bool:
    """Whether a select gives what a condition gave, or a batch of it: the same type, at most more dimensions."""
    ours, theirs = (re.split(r"x(?=[a-z])|x(?=\d)", label.rpartition(" ")[2]) for label in (select, branch))
    rest = list(ours)
    for part in theirs:
        if part not in rest:
            return False
        rest.remove(part)
    return True
