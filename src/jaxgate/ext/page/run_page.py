"""The page of a run, or of several results beside each other: all that their ``results.json`` say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from jaxgate.ext.page.blocks import Block, Cell, Fold, Items, Properties, Section, Table, columns
from jaxgate.ext.page.cases import all_cases, environment_of, figure, number, rows_of, told_in_full
from jaxgate.ext.page.curves import chart_sections
from jaxgate.ext.page.document import document
from jaxgate.model.outcome import CaseRecord, RunRecord
from jaxgate.model.words import plural

_MOST_FAILED, MOST_LISTED = 50, 50
"""Failed cases that are told in full, and problems of one kind that are listed."""
_AXIS = "The little intervals share one axis, from half the time of the baseline to twice as much; the stroke is its own time."
_COMPARED = {
    "run_ns": "a call",
    "least_ns": "a call at least, estimated",
    "peak_bytes": "peak memory",
    "collective_bytes": "bytes of collectives",
    "compile_ns": "compile time",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One run that a page shows."""

    run: RunRecord  # what it left
    # what tells it from the others of the page, for example its hardware or its file; may be empty where it is alone
    name: str = ""
    folder: str = ""  # where its bundles lie, as a path from the page; empty if that is the page's own folder
    logdir: str = "perf-artifacts"  # that folder as the reader types it, for a command


def run_page(results: Sequence[Result]) -> str:
    """The page of at least one result, HTML in one file."""
    rows = rows_of((case, result.folder, result.logdir) for result in results for case in result.run.cases)
    environments: list[Mapping[str, str]] = []
    for environment in (environment_of(row.case) for row in rows):
        if environment and environment not in environments:
            environments.append(environment)
    failed = [row for row in rows if row.case.fails]
    sections = []
    if failed:
        left = len(failed) - _MOST_FAILED
        sections.append(
            Section(
                key="failed",
                title="What failed",
                blocks=[told_in_full(row, at) for at, row in enumerate(failed[:_MOST_FAILED])],
                note=f"{left} more failed; they are in the table." if left > 0 else "",
            )
        )
    sections.append(
        Section(
            key="cases",
            title="All cases",
            blocks=[all_cases(rows, environments)],
            note=_AXIS if any(row.case.time.ratio for row in rows) else "",
        )
    )
    if len(results) > 1:
        sections += _side_by_side(results)
    sections += chart_sections([result.run for result in results])
    if environments:
        folds = [
            Fold(
                title=f"Environment {at}: jax {one.get('jax', 'unknown')} on {one.get('backend', 'unknown')}",
                blocks=[Properties(pairs=tuple(one.items()))],
                open=len(environments) == 1,
            )
            for at, one in enumerate(environments, 1)
        ]
        sections.append(Section(key="environment", title="Environment", blocks=folds))
    if len(results) == 1:
        kind, line = headline(results[0].run)
        return document(title=line, sections=sections, header=_about(results[0]), kind=kind)
    headlines = [headline(result.run) for result in results]
    header: list[Block] = [
        Fold(title=f"{result.name}: {line.removeprefix('jaxgate: ')}", blocks=_about(result), open=True)
        for result, (_, line) in zip(results, headlines, strict=True)
    ]
    worst = min((kind for kind, _ in headlines), key=("bad", "calm", "good").index)
    return document(title=f"jaxgate: {len(results)} results side by side", sections=sections, header=header, kind=worst)


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


def _about(result: Result) -> list[Block]:
    """Where a run comes from, and what is wrong with it besides the cases."""
    run = result.run
    hardware = sorted({case.hardware for case in run.cases if case.hardware})
    jax = sorted({environment_of(case).get("jax", "") for case in run.cases} - {""})
    facts = (
        ("Commit", (run.commit or "unknown")[:10]),
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
    found: list[Block] = [Properties(pairs=facts)]
    for title, lines in problems:
        more = [f"… and {len(lines) - MOST_LISTED} more"] if len(lines) > MOST_LISTED else []
        if lines:
            found.append(Items(title=f"{title}: {len(lines)}", lines=[*lines[:MOST_LISTED], *more]))
    return found


def _side_by_side(results: Sequence[Result]) -> Iterator[Section]:
    """The cases that two or more of the results have."""
    found: dict[str, dict[str, CaseRecord]] = {}
    for result in results:
        for case in result.run.cases:
            found.setdefault(case.case, {})[result.name] = case
    shared = {name: sides for name, sides in found.items() if len(sides) > 1}
    names = [result.name for result in results]
    known = [
        q for q in _COMPARED if any(figure(case, q) is not None for sides in shared.values() for case in sides.values())
    ]
    numbers = [f"{_COMPARED[quantity]}, {name}" for quantity in known for name in names]
    rows: list[list[Cell | str]] = []
    for shown, sides in shared.items():
        row: list[Cell | str] = [shown, *(sides[name].status if name in sides else "–" for name in names)]
        for quantity in known:
            values = [figure(sides[name], quantity) if name in sides else None for name in names]
            most = max((value for value in values if value is not None), default=0)
            row += [number(quantity, value, bar=(value or 0) / most if most > 0 else 0) for value in values]
        rows.append(row)
    if rows:
        titles = columns("case", *(f"verdict, {name}" for name in names), numbers=numbers)
        table = Table(caption="Cases that several results have", columns=titles, rows=rows)
        yield Section(key="beside", title="Side by side", blocks=[table])
