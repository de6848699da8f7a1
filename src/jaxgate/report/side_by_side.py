"""Several runs of one suite, each for other hardware, on one page: what moved, and where."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jaxgate.model import GateExit, Status, plural
from jaxgate.report.markdown import code, plain
from jaxgate.report.printable import printable
from jaxgate.report.units import show_pair

MAX_ROWS = 40
_CALM = frozenset({Status.SAME, Status.UNDECIDED, Status.EXPECTED})
_GOOD, _FAIR, _BAD = "✅", "⚠️", "❌"
_LONGEST = 120
"""Characters of a cell: a table of several columns has to fit a page."""

Results = Mapping[str, Any]
"""What a run left as ``results.json``."""


def side_by_side(runs: Mapping[str, Results | None], meanings: Mapping[str, tuple[GateExit, str]]) -> str:
    """The page: how each run ended, then a row for each case that moved on any hardware.

    Args:
        runs: What each run left, by its hardware; ``None`` where it left nothing.
        meanings: What each run means for a pipeline, and why.
    """
    ends = [f"- {_sign(found)} {code(name)}: {plain(why)}" for name, (found, why) in meanings.items()]
    moved = _moved(runs)
    parts = ["\n".join(ends)]
    if moved:
        parts.append("\n".join(_table(moved, runs)))
    return printable("\n\n".join(parts)) + "\n"


def _sign(found: GateExit) -> str:
    return {GateExit.FINE: _GOOD, GateExit.MISSING: _FAIR}.get(found, _BAD)


def _moved(runs: Mapping[str, Results | None]) -> list[str]:
    """The cases that moved or failed anywhere; those that failed come first."""
    found: dict[str, bool] = {}
    for results in runs.values():
        for case in [] if results is None else results["cases"]:
            if case["fails"] or case["status"] not in _CALM:
                found[case["case"]] = found.get(case["case"], False) or case["fails"]
    return sorted(found, key=lambda name: not found[name])


def _table(moved: Sequence[str], runs: Mapping[str, Results | None]) -> Iterator[str]:
    yield f"| case | {' | '.join(code(name) for name in runs)} |"
    yield "|---" * (len(runs) + 1) + "|"
    columns = [{case["case"]: case for case in results["cases"]} if results else {} for results in runs.values()]
    for name in moved[:MAX_ROWS]:
        yield f"| {code(name)} | {' | '.join(_cell(column.get(name)) for column in columns)} |"
    if len(moved) > MAX_ROWS:
        yield f"| … and {plural(len(moved) - MAX_ROWS, 'case')} more {'| ' * len(runs)}|"


def _cell(case: Mapping[str, Any] | None) -> str:
    """What came of one case on one hardware."""
    if case is None:
        return "–"
    sign = _BAD if case["fails"] else _GOOD if case["status"] in (*_CALM, Status.IMPROVED, Status.FASTER) else _FAIR
    return f"{sign} {case['status']} {_worst(case)}".rstrip()


def _worst(case: Mapping[str, Any]) -> str:
    ratio = case["time"]["ratio"]
    if case["status"] in (Status.SLOWER, Status.FASTER) and ratio is not None:
        return f"{ratio:.2f} ×"
    finding = next((one for one in case["findings"] if one["status"] == case["status"]), None)
    if finding is None:
        return ""
    if finding["now"] is None or finding["against"] is None:
        return plain(finding["detail"][:_LONGEST])
    now, against = show_pair(finding["name"].split(" ")[0], finding["now"], finding["against"])
    return f"{code(finding['name'])} {against} → {now}"
