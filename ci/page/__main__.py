"""Open pages of sample runs in Chromium, wide and narrow, light and dark, and with scripts blocked; print what was found.

``make page-check`` installs axe-core into build/page-check. Chromium must be there: ``apt-get install chromium``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from math import exp
from pathlib import Path
from time import perf_counter

from ci.page.browser import Page, browser, find_browser
from ci.page.sample_history import FOLDER, sample_history
from ci.page.samples import hostile_run, sample_run
from jaxgate.ext.diff.judge import diff_sides
from jaxgate.ext.diff.page import diff_document
from jaxgate.ext.diff.sides import side_of_hardware
from jaxgate.ext.diff.text import diff_summary
from jaxgate.ext.history.chain import chain_times
from jaxgate.ext.history.changes import changes_of
from jaxgate.ext.history.page import history_document
from jaxgate.ext.history.text import change_lines
from jaxgate.ext.page.run_page import Result, run_page
from jaxgate.keep.results import read_results

WIDTHS = (1440, 390)
MOST_SECONDS, MOST_BYTES = 2.0, 5_000_000
MANY = 2000
TRIES = 2
"""The faster one counts: others work on the machine, too."""
_OPEN_ALL = """(() => {
  document.querySelectorAll("details.fold").forEach((part, at) => { if (at < 6) part.open = true; });
  document.querySelector("#table tbody tr:last-child details")?.setAttribute("open", "");
  document.querySelector("#table tbody tr:last-child summary")?.scrollIntoView();
  scrollTo(0, 0);
})()"""
_AXE = """axe.run(document, {resultTypes: ["violations"]}).then((found) => found.violations.map((one) =>
  `${one.id} (${one.impact}): ${one.nodes.length} × ${one.nodes[0].target} ${one.nodes[0].failureSummary}`))"""


def samples(results: list[Path]) -> Iterator[tuple[str, Callable[[], str]]]:
    """What makes the pages to look at, by their names."""
    runs = {
        "green": lambda: [Result(run=sample_run())],
        "red": lambda: [Result(run=sample_run(red=6))],
        "many": lambda: [Result(run=sample_run(MANY, red=60))],
        "targets": lambda: [
            Result(run=sample_run(hardware=name, seed=seed), name=name)
            for seed, name in enumerate(("tpu-v5e-2x4-8", "gpu-h200-8-8"))
        ],
        "hostile": lambda: [Result(run=hostile_run())],
    }
    if results:
        runs["given"] = lambda: [Result(run=read_results(file), name=str(file)) for file in results]
    for name, shown in runs.items():
        yield name, partial(_run_page, shown)
    yield "history", _history
    yield "diff", _diff


def _run_page(shown: Callable[[], list[Result]]) -> str:
    return run_page(shown())


def _history() -> str:
    points = sample_history()
    chain = chain_times(points)
    relative = {} if chain is None else {one.point.run: exp(one.value) for one in chain.points}
    changes = change_lines(changes_of(points))
    return history_document(points, {FOLDER: changes}, {FOLDER: relative})


def _diff() -> str:
    sides = [side_of_hardware(name, Path("baselines")) for name in ("cpu-amd-epyc-jax-0.10", "cpu-amd-epyc-jax-0.12")]
    first, second = (side for side in sides if side is not None)
    diff = diff_sides(first, second)
    return diff_document(diff, diff_summary(diff))


def look(page: Page, file: Path, axe: str, pictures: Path) -> list[str]:
    """Everything that is wrong with a page; pictures of it are left in a folder."""
    wrong = []
    for width, dark in product(WIDTHS, (False, True)):
        where = f"{file.stem}-{width}-{'dark' if dark else 'light'}"
        page.size(width, 1000 if width > WIDTHS[1] else 844, dark=dark)
        took = min(_opened(page, file) for _ in range(TRIES))
        shown = page.ask("performance.getEntriesByType('paint').at(-1)?.startTime ?? 0") / 1000
        page.ask(_OPEN_ALL)
        (pictures / f"{where}.png").write_bytes(page.picture())
        wide = page.ask("document.documentElement.scrollWidth")
        found = []
        if file.stem != "many" or (width, dark) == (WIDTHS[0], False):  # axe looks at each of 2,000 rows for a minute
            page.ask(axe)
            found = page.ask(_AXE)
        title = page.ask("document.title")
        print(
            f"{where:<24} loaded in {took:.2f} s, seen after {shown:.2f} s, {wide} px wide, {len(found)} found by axe"
        )
        wrong += [f"{where}: {line}" for line in (*found, *page.said)]
        wrong += [f"{where}: {wide} px wide"] if wide > width else []
        wrong += [f"{where}: loaded in {took:.2f} s"] if took > MOST_SECONDS else []
        wrong += [f"{where}: a name ran"] if title == "ran" else []
    page.scripts(blocked=True)
    page.open(file)
    page.scripts(blocked=False)
    rows = page.ask(
        "[...document.querySelectorAll('table.sorts tbody tr, #table tbody tr')].filter((row) => row.offsetHeight > 0).length"
    )
    print(f"{file.stem:<24} with scripts blocked: {rows} rows of the table are shown")
    (pictures / f"{file.stem}-blocked.png").write_bytes(page.picture())
    return wrong if rows else [*wrong, f"{file.stem}: no row is shown with scripts blocked"]


def _opened(page: Page, file: Path) -> float:
    """Seconds that a page takes to load."""
    begin = perf_counter()
    page.open(file)
    return perf_counter() - begin


def main() -> int:
    """Make the pages, look at them, print what is wrong; gives 1 if something is, 2 if there is nothing to look with."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", nargs="*", type=Path, help="files results.json, to be looked at, too")
    parser.add_argument("--axe", type=Path, default=Path("build/page-check/node_modules/axe-core/axe.min.js"))
    parser.add_argument("--into", type=Path, default=Path("build/page-check"))
    parser.add_argument("--only", default="", help="the name of a sample")
    given = parser.parse_args()
    program = find_browser()
    if program is None or not given.axe.is_file():
        print("expected chromium (apt-get install chromium) and axe-core (make page-check), found not both")
        return 2
    given.into.mkdir(parents=True, exist_ok=True)
    wrong, looked = [], 0
    with browser(program) as page:
        for name, made in samples(given.results):
            if given.only not in ("", name):
                continue
            looked += 1
            file = given.into / f"{name}.html"
            file.write_text(made(), encoding="utf-8")
            size = file.stat().st_size
            print(f"{name:<24} {size / 1e6:.2f} MB")
            wrong += [f"{name}: {size} bytes"] if size > MOST_BYTES else []
            wrong += look(page, file, given.axe.read_text(encoding="utf-8"), given.into)
    if not looked:
        print(
            f"expected one of {', '.join(name for name, _ in samples(given.results))} after --only, found {given.only!r}"
        )
        return 2
    for line in dict.fromkeys(wrong):
        print(f"WRONG  {line}")
    print(f"{len(wrong)} found" if wrong else "nothing found")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
