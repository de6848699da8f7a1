"""The page of a run that was made of parts: how it ended, each part, and the own pages of those that are not fine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jaxgate.model.outcome import GateExit, RunRecord
from jaxgate.model.words import plural
from jaxgate.report.printable import code, plain, printable

_BAD = GateExit.BROKEN.sign


def headline(whole: Mapping[str, Any], of: int) -> str:
    """How the run ended, in one line."""
    cases = plural(len(whole["cases"]), "case")
    failed = sum(case["fails"] for case in whole["cases"])
    end = GateExit(whole["gate_exit"])
    if failed:
        said = f"{failed} of {cases} failed"
    elif end is GateExit.FINE:
        said = f"{cases} passed"
    else:
        said = f"no case of {len(whole['cases'])} failed, and the run is not green"
    return f"{end.sign} jaxgate: {said}, in {plural(of, 'part')}"


def page(whole: Mapping[str, Any], of: int, parts: Mapping[str, RunRecord], pages: Mapping[str, str]) -> str:
    """The page of all parts; ``pages`` are their own, where they have one."""
    return printable("\n\n".join(_blocks(whole, of, parts, pages))) + "\n"


def _blocks(
    whole: Mapping[str, Any], of: int, parts: Mapping[str, RunRecord], pages: Mapping[str, str]
) -> Iterator[str]:
    yield f"## {headline(whole, of)}"
    wrong = [f"- {_BAD} {plain(line)}" for line in (*whole["unfit"], *whole["problems"])]
    if wrong:
        yield "\n".join(wrong)
    yield "\n".join(_row(run) for run in parts.values())
    for file, run in parts.items():
        if GateExit(run.gate_exit) is not GateExit.FINE and pages.get(file):
            yield f"### part {_number(run)}\n\n{pages[file].strip()}"


def _row(run: RunRecord) -> str:
    failed = [case.case for case in run.cases if case.fails]
    named = f", {len(failed)} failed: {', '.join(map(code, failed[:3]))}{' …' * (len(failed) > 3)}" if failed else ""  # noqa: PLR2004 - a line
    left = f", {len(run.not_judged)} not judged" if run.not_judged else ""
    return f"- {GateExit(run.gate_exit).sign} part {_number(run)}: {plural(len(run.cases), 'case')}{named}{left}"


def _number(run: RunRecord) -> str:
    return "?" if run.shard is None else f"{run.shard.number}/{run.shard.of}"
