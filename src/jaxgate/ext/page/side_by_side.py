"""Several results beside each other: the same case for several targets, on several machines, or at two commits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from jaxgate.ext.page.charts import Cell, Chart, Column, Group, Table, bars, unit_of
from jaxgate.model.outcome import CaseRecord
from jaxgate.report.units import show

LEAST = "least_ns"
"""Of a target: what the roofline says a call takes at least."""
QUANTITIES = {
    "run_ns": "Time of a call",
    LEAST: "Least time of a call, estimated",
    "peak_bytes": "Peak memory",
    "collective_bytes": "Bytes of collectives",
    "compile_ns": "Compile time",
}
MOST_BARS = 16
"""Cases in a chart: those in which the results are furthest apart."""
MOST_ROWS = 400


def side_by_side(results: Mapping[str, Sequence[CaseRecord]]) -> tuple[Group, ...]:
    """The cases that two or more of the results have.

    Args:
        results: The cases of each, by the name that it has on the page.
    """
    found: dict[str, dict[str, CaseRecord]] = {}
    for result, cases in results.items():
        for case in cases:
            found.setdefault(case.case, {})[result] = case
    shared = {name: sides for name, sides in found.items() if len(sides) > 1}
    if not shared:
        return ()
    charts = tuple(filter(None, (_chart(quantity, shared, list(results)) for quantity in QUANTITIES)))
    left = max(0, len(shared) - MOST_ROWS)
    note = f"{left} more cases that several results have are in the table of all cases." if left else ""
    return (
        Group(title="The same cases in each result", charts=charts, table=_table(shared, list(results)), note=note),
    )


def _value(case: CaseRecord | None, quantity: str) -> float | None:
    if case is None:
        return None
    if quantity == LEAST:
        least = (case.roofline or {}).get(LEAST)
        return least if isinstance(least, int | float) and least else None
    return None if case.figures is None else case.figures.now.get(quantity)


def _chart(quantity: str, shared: Mapping[str, Mapping[str, CaseRecord]], results: list[str]) -> Chart | None:
    known = {name: list(_values(sides, quantity, results)) for name, sides in shared.items()}
    apart = {
        name: max(v) / min(v) for name, pairs in known.items() if (v := [x for _, x in pairs if x > 0]) and len(v) > 1
    }
    chosen = sorted((name for name in apart if apart[name] > 1), key=lambda name: -apart[name])[:MOST_BARS]
    if not chosen:
        return None
    rows = [
        {"name": name, "y": value * unit_of(quantity)[0], "line": result, "shown": show(quantity, value)}
        for name in chosen
        for result, value in known[name]
    ]
    spoken = ", ".join(f"{row['name']} {row['line']} {row['shown']}" for row in rows[:MOST_BARS])
    title = f"{QUANTITIES[quantity]}, where the results are furthest apart"
    return Chart(
        key=f"beside-{quantity}",
        title=title,
        spec=bars(rows, quantity=quantity, lines=results, sides=False),
        label=f"{title}: {spoken}",
    )


def _values(sides: Mapping[str, CaseRecord], quantity: str, results: Sequence[str]) -> Iterator[tuple[str, float]]:
    for result in results:
        if (value := _value(sides.get(result), quantity)) is not None:
            yield result, value


def _table(shared: Mapping[str, Mapping[str, CaseRecord]], results: Sequence[str]) -> Table:
    listed = list(shared.items())[:MOST_ROWS]
    known = [
        q for q in QUANTITIES if any(_value(case, q) is not None for _, sides in listed for case in sides.values())
    ]
    columns = [Column(title="case"), *(Column(title=f"verdict, {result}") for result in results)]
    columns += [Column(title=f"{QUANTITIES[q]}, {result}", number=True) for q in known for result in results]
    rows = []
    for name, sides in listed:
        cells: list[Cell | str] = [name, *(sides[one].status if one in sides else "–" for one in results)]
        for quantity in known:
            for result in results:
                value = _value(sides.get(result), quantity)
                cells.append(Cell(text="–" if value is None else show(quantity, value), order=value))
        rows.append(cells)
    return Table(caption="Cases that several results have", columns=columns, rows=rows)
