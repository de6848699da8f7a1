"""A plan as a table: what each test is expected to cost, and the sum of what is known."""

from __future__ import annotations

from collections.abc import Sequence

from jaxgate.model.workload import Prediction
from jaxgate.report.printable import aligned

_SHORTEST_S = 0.05
_LONG_S = 120


def plan_table(predictions: Sequence[Prediction]) -> str:
    """One row for each test, the total, and what the columns mean."""
    unchanged = [(p.unchanged_s, p.unchanged_estimated) for p in predictions]
    changed = [(p.changed_s, p.changed_estimated) for p in predictions]
    unknown = [sum(value is None for value, _ in column) for column in (unchanged, changed)]
    columns = [
        ["unchanged", *(_cell(*entry) for entry in unchanged), _total(unchanged)],
        ["changed", *(_cell(*entry) for entry in changed), _total(changed)],
    ]
    texts = ["test", *(p.test for p in predictions), f"total{_without(unknown)}"]
    lines = aligned(list(zip(*columns, strict=True)), right={0, 1}, texts=texts)
    lines.append("changed: with a duel of each program; a slow-down adds fresh processes to that.")
    if any(estimated for _, estimated in unchanged + changed):
        lines.append(
            "~: worked out from a stored baseline, which does not know what a reference costs; a duel at its longest."
        )
    if any(unknown):
        lines.append("unknown: not run here yet, and no stored baseline says.")
    return "\n".join(lines)


def _cell(seconds: float | None, estimated: bool) -> str:  # noqa: FBT001 - a pair, taken apart
    if seconds is None:
        return "unknown"
    return ("~" if estimated else "") + _show(seconds)


def _total(column: Sequence[tuple[float | None, bool]]) -> str:
    known = [seconds for seconds, _ in column if seconds is not None]
    return _cell(sum(known) if known else None, any(estimated for _, estimated in column))


def _without(unknown: Sequence[int]) -> str:
    """How many tests the totals leave out."""
    unchanged, changed = unknown
    if unchanged == changed:
        return f", without {changed} unknown" if changed else ""
    parts = [f"{count} unknown {word}" for count, word in ((unchanged, "unchanged"), (changed, "changed")) if count]
    return f", without {' and '.join(parts)}"


def _show(seconds: float) -> str:
    if seconds < _SHORTEST_S:
        return "<0.1 s"
    return f"{seconds:.1f} s" if seconds < _LONG_S else f"{seconds / 60:.1f} min"
