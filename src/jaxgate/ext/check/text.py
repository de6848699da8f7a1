"""What a check says: a conclusion, a title and a page, of what a run left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jaxgate.model.outcome import GateExit
from jaxgate.report.comment import shortened, unheard

_ENDS = {
    GateExit.FINE: "passed",
    GateExit.REGRESSION: "a case or a baseline failed",
    GateExit.BROKEN: "not everything was judged",
    GateExit.MISSING: "baselines are missing",
}


@dataclass(frozen=True, slots=True)
class Conclusion:
    """How a check ends."""

    passed: bool
    title: str  # one line
    page: str  # Markdown


def conclude(results: Any, page: str, commit: str, why_not: str = "") -> Conclusion:
    """Make the conclusion of a run; ``results`` may be anything, where it is not what a run writes.

    ``page`` is empty where there is none, ``why_not`` where there are results.
    """
    if why_not or not isinstance(results, Mapping):
        return _red("no result", why_not or "The file has no results of a run.")
    found = results.get("commit")
    if found != commit:
        return _red("no result of this commit", f"The results are of {found or 'no commit'}, expected {commit}.")
    if results.get("shard"):
        return _red("a part of the suite", "The results are of one part; `jaxgate merge` makes those of all parts.")
    code = results.get("gate_exit")
    if type(code) is not int or code not in list(GateExit):
        return _red("no result", f"The results end with {code!r}, which is no exit code of a gate.")
    end = GateExit(code)
    return Conclusion(end is GateExit.FINE, _ENDS[end], shortened(unheard(page or f"Exit code {int(end)}.")))


def _red(title: str, page: str) -> Conclusion:
    return Conclusion(passed=False, title=title, page=shortened(unheard(page)))
