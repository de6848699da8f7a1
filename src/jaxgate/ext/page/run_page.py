"""The page of a run, or of several results beside each other: all that their ``results.json`` say.

The cases that failed, in words that stand on the page without a script: text, suspects, difference, buffers, figures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jaxgate.ext.page.case_table import Row, TextBudget, case_data, finding_text, rows_of, table_values
from jaxgate.ext.page.charts import Cell, Column, Group, Section, Table, of_one_case
from jaxgate.ext.page.curves import MOST_GROUPS, bandwidth_groups, curve_groups, scaling_groups, variant_groups
from jaxgate.ext.page.document import document
from jaxgate.ext.page.side_by_side import side_by_side
from jaxgate.model.outcome import CaseRecord, RunRecord
from jaxgate.model.words import plural
from jaxgate.report.units import show, show_pair, show_ratio

MOST = 50
"""Of them: the others open from the table."""
OPEN = 3
"""The first stand open."""
_NO_PHASES = frozenset({"trace_wait_ns", "yardstick_ns"})
"""They measure the machine, and always move."""


def failure_values(rows: Sequence[Row], budget: TextBudget) -> dict[str, Any]:
    """What the template of the failures is given."""
    shown = [_failure(row, budget) for row in rows[:MOST]]
    return {"failures": shown, "more": len(rows) - len(shown), "open": OPEN}


def _failure(row: Row, budget: TextBudget) -> dict[str, Any]:
    case = row.case
    return {
        "row": row,
        "text": budget.text(case.text) or "\n".join(map(finding_text, case.findings)),
        "causes": case.causes,
        "operations": operations_table(case),
        "changes": [(_sign(line), line) for line in budget.lines(case.changes)],
        "buffers": budget.lines(case.allocations),
        "table": moved_table(case),
    }


def _sign(line: str) -> str:
    """What a line of a difference is: ``add``, ``gone``, or nothing for what stays."""
    return {"+": "add", "-": "gone"}.get(line.lstrip()[:1], "")


def operations_table(case: CaseRecord) -> Table | None:
    """The operations that a profile blames; ``None`` without a profile."""
    rows: list[list[Cell | str]] = [
        [
            f"gap after {row.name}" if row.gap else row.name,
            row.line or "–",
            *(Cell(text=show("run_ns", time), order=time) for time in (row.now_ns, row.other_ns)),
            Cell(text=f"+{show('run_ns', row.now_ns - row.other_ns)}", order=row.now_ns - row.other_ns),
        ]
        for row in case.operations
    ]
    columns = [Column(title="operation"), Column(title="line")]
    columns += [Column(title=title, number=True) for title in ("now", "other side", "longer by")]
    return Table(caption=f"Operations of {case.case} that take longer", columns=columns, rows=rows) if rows else None


def moved_table(case: CaseRecord) -> Table | None:
    """The figures that are not the baseline's; ``None`` if there is none."""
    figures = case.figures
    if figures is None:
        return None
    with_reference = bool(figures.reference)
    rows: list[list[Cell | str]] = []
    for name, now in figures.now.items():
        stored = figures.stored.get(name)
        if stored is None or stored == now or name in _NO_PHASES:
            continue
        left, right = show_pair(name, now, stored)
        reference = figures.reference.get(name)
        cells: list[Cell | str] = [name, Cell(text=left, order=now), Cell(text=right, order=stored)]
        cells.append(show_ratio(now, stored))
        if with_reference:
            cells.append(Cell(text="–" if reference is None else show(name, reference), order=reference))
        rows.append(cells)
    titles = ("now", "baseline", "ratio", "reference") if with_reference else ("now", "baseline", "ratio")
    columns = [Column(title="quantity"), *(Column(title=one, number=True) for one in titles)]
    return Table(caption=f"What moved in {case.case}", columns=columns, rows=rows) if rows else None


MOST_CHARTS = 72
"""Of a section: more would make the page too large."""
MOST_LISTED = 50
"""Of one kind of problem."""
_SCRIPT = "cases.js"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One run that a page shows."""

    run: RunRecord  # what it left
    # what tells it from the others of the page, for example its hardware or its file; may be empty where it is alone
    name: str = ""
    folder: str = ""  # where its bundles lie, as a path from the page; empty if that is the page's own folder
    logdir: str = "perf-artifacts"  # the same folder as the reader types it, for a command


def run_page(results: Sequence[Result], *, library: str) -> str:
    """The page.

    Args:
        results: At least one.
        library: The charts' JavaScript; empty leaves the charts out.

    Returns:
        HTML in one file.
    """
    rows = rows_of([(result.run.cases, result.folder, result.logdir) for result in results])
    failed = [row for row in rows if row.case.fails]
    budget = TextBudget.beside(len(rows))
    sections: list[Section] = []
    told: Mapping[str, Any] = {}
    if failed:
        values = failure_values(failed, budget)
        told = {failure["row"].key: failure for failure in values["failures"]}
        sections.append(Section(key="failed", title="What failed", template="failures.html", values=values))
    sections.append(
        Section(key="cases", title="All cases", template="cases.html", values=table_values(rows, with_hardware=_several(results)))
    )  # fmt: skip
    sections += _chart_sections(results)
    environments = _environments(results)
    if environments:
        sections.append(
            Section(key="environment", title="Environment", template="environment.html", values={"environments": environments})
        )  # fmt: skip
    return document(
        title=_title(results),
        sections=sections,
        library=library,
        header="run_header.html",
        about={"results": [_about(result) for result in results], "title": _title(results)},
        scripts=(_SCRIPT,),
        data={"cases": case_data(rows, environments, already=told, budget=budget)},
        specs=of_one_case() if any(row.case.figures is not None for row in rows) else {},
    )


def _several(results: Sequence[Result]) -> bool:
    """Whether the cases are of several kinds of hardware: else its column says nothing."""
    return len({case.hardware for result in results for case in result.run.cases}) > 1


def _chart_sections(results: Sequence[Result]) -> list[Section]:
    beside = (
        () if len(results) == 1 else side_by_side({_name(one, at): one.run.cases for at, one in enumerate(results)})
    )
    found: dict[str, list[Group]] = {"curves": [], "variants": [], "bandwidth": [], "scaling": []}
    for place, result in enumerate(results):
        apart = f"-{place}" if len(results) > 1 else ""
        found["curves"] += curve_groups(result.run, apart=apart)
        found["variants"] += variant_groups(result.run, apart=apart)
        found["bandwidth"] += bandwidth_groups(result.run, apart=apart)
        found["scaling"] += scaling_groups(result.run, apart=apart)
    parts = (
        ("beside", "Side by side", "", beside),
        ("scaling", "Scaling over devices", "", found["scaling"]),
        ("bandwidth", "Bandwidth of collectives", "", found["bandwidth"]),
        ("curves", "Curves", "Cases whose names differ in one number, over that number.", found["curves"]),
        ("variants", "Variants", "Cases that do one thing in several ways, by what is their own in their names.", found["variants"]),
    )  # fmt: skip
    return [charts_section(key, title, groups, note=note) for key, title, note, groups in parts if groups]


def charts_section(key: str, title: str, groups: Sequence[Group], *, note: str = "") -> Section:
    """A section of groups of charts, the first of them open."""
    shown: list[Group] = []
    for group in groups[:MOST_GROUPS]:
        if sum(len(one.charts) for one in (*shown, group)) <= MOST_CHARTS:
            shown.append(group)
    left = len(groups) - len(shown)
    notes = [note, f"{left} more are left out." if left else ""]
    return Section(
        key=key,
        title=title,
        template="groups.html",
        values={"groups": shown, "note": " ".join(filter(None, notes))},
        charts=[chart for group in shown for chart in group.charts],
    )


def _name(result: Result, place: int) -> str:
    return result.name or f"result {place + 1}"


def _title(results: Sequence[Result]) -> str:
    return (
        f"jaxgate: {plural(len(results), 'result')} side by side" if len(results) > 1 else headline(results[0].run)[1]
    )


def headline(run: RunRecord) -> tuple[str, str]:
    """How a run ended: ``bad``, ``calm`` or ``good``, and a line."""
    total = len(run.cases)
    failed = sum(case.fails for case in run.cases)
    cases = plural(total, "case")
    if not total:
        return "bad", "jaxgate: no case was judged"
    if failed:
        return "bad", f"jaxgate: {failed} of {cases} failed"
    if run.green:
        undecided = sum(case.status == "UNDECIDED" for case in run.cases)
        also = f", {undecided} of them undecided" if undecided else ""
        return "good", f"jaxgate: {cases} passed{also}"
    if run.needs_commit and not (run.problems or run.unfit or run.not_judged):
        return "calm", f"jaxgate: {cases} judged or recorded, and the baselines are not committed"
    return "bad", f"jaxgate: no case of {total} failed, and the run is not green"


def _about(result: Result) -> dict[str, Any]:
    """What stands above everything: how it ended, of what, and what is wrong besides the cases."""
    run = result.run
    kind, line = headline(run)
    hardware = sorted({case.hardware for case in run.cases if case.hardware})
    jax = sorted({case.figures.environment.get("jax", "") for case in run.cases if case.figures is not None} - {""})
    facts = (
        ("Commit", run.commit or "unknown"),
        ("Ended", run.moment.replace("T", " ").replace("+00:00", " UTC") or "unknown"),
        ("Hardware", ", ".join(hardware) or "unknown"),
        ("jax", ", ".join(jax) or "unknown"),
        ("Against", run.elsewhere or "the stored baselines"),
        ("jaxgate", run.jaxgate),
    )
    problems = (
        ("The run is no gate", run.unfit),
        ("Wrong with the baselines", run.problems),
        ("Not judged", run.not_judged),
        ("Baselines that need a commit", run.needs_commit),
    )
    return {
        "kind": kind,
        "line": line,
        "name": result.name,
        "facts": facts,
        "problems": [
            {"title": title, "lines": lines[:MOST_LISTED], "more": max(0, len(lines) - MOST_LISTED)}
            for title, lines in problems
            if lines
        ],
    }


def _environments(results: Sequence[Result]) -> list[dict[str, str]]:
    found: list[dict[str, str]] = []
    for result in results:
        for case in result.run.cases:
            environment = {} if case.figures is None else dict(case.figures.environment)
            if environment and environment not in found:
                found.append(environment)
    return found
