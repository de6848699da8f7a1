"""The page in a real browser, where there is one: names do not run, and the script shows what the terminal shows."""

from __future__ import annotations

import json

import pytest

from ci.page.browser import browser, find_browser
from ci.page.samples import hostile_run, sample_run
from jaxgate.ext.page.chart_library import chart_library
from jaxgate.ext.page.run_page import Result, run_page
from jaxgate.keep.machine import cache_folder
from jaxgate.report.units import show

PROGRAM = find_browser()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="needs chromium")
DRAWN = """(async () => {
  for (const plot of document.querySelectorAll(".detail .plot")) {
    plot.scrollIntoView();
    for (let turn = 0; plot.dataset.drawn === undefined; turn++) {
      if (turn === 400) return plot.textContent || "not drawn";
      await new Promise((done) => setTimeout(done, 25));
    }
  }
  return "all";
})()"""


def real_library():
    """What draws the charts; other tests have a stand-in in their cache."""
    return chart_library(cache_folder({}))


@pytest.fixture(scope="module")
def page():
    """A browser with one page, for all tests of this file."""
    with browser(PROGRAM, patience_s=300) as found:
        found.size(1440, 1000, dark=False)
        yield found


@pytest.fixture
def opened(page, tmp_path):
    """Opens the page of a run."""

    def open_page(run, fragment="", library=""):
        file = tmp_path / "report.html"
        file.write_text(run_page([Result(run=run)], library=library), encoding="utf-8")
        page.open(file, fragment)
        return page

    return open_page


def test_hostile_names_do_not_run(opened):
    """Not when the page opens, nor when each case of it is opened with its charts; the policy had nothing to stop."""
    page = opened(hostile_run(), library=real_library())
    title = page.ask("document.title")
    page.ask("document.querySelectorAll('#table tbody tr[id] > th > a').forEach((link) => link.click())")
    assert page.ask("document.querySelectorAll('tr.detail').length") == len(hostile_run().cases)
    if real_library():
        assert page.ask(DRAWN) == "all"
        assert page.ask("document.querySelectorAll('.detail .plot svg').length") > 40
    assert page.ask("document.title") == title
    assert page.ask("document.querySelectorAll('[onerror], [onload], [onmouseover], img, iframe, object').length") == 0
    assert page.said == []


def test_a_script_that_gets_into_the_page_is_stopped_by_its_policy(opened):
    """Whatever the templates forgot: an inline script without our hash, and an attribute that runs."""
    page = opened(sample_run(2))
    page.ask(
        "(() => { const made = document.createElement('script'); made.textContent = 'document.title = \"ran\"'; "
        "document.body.append(made); const image = document.createElement('div'); "
        "image.setAttribute('onclick', 'document.title = \"ran\"'); document.body.append(image); image.click(); })()"
    )
    assert page.ask("document.title") != "ran"
    page.ask("new Promise((done) => setTimeout(done, 50))")
    assert any("Content Security Policy" in line for line in page.said)


VALUES = [
    ("temp_bytes", 3140), ("temp_bytes", 1125), ("temp_bytes", 0), ("temp_bytes", 999), ("temp_bytes", 999_999), ("temp_bytes", 12.5e9),
    ("run_ns", 81_839.96), ("run_ns", 0.5), ("compile_ns", 87_725_591), ("trace_ns", 1e12), ("traces", 1), ("stablehlo_ops", 6927),
    ("jax_calls", 1.125), ("largest_batch", 65_536), ("xla_flops", 3.2e7), ("matmul_flops", 5e14), ("call_uj", 0.02), ("p99_ns", -2500),
]  # fmt: skip


def test_numbers_are_those_of_the_terminal(opened):
    """The script has the same units, digits and rounding as ``report/units.py``."""
    page = opened(sample_run(1))
    shown = page.ask(f"{json.dumps(VALUES)}.map(([name, value]) => cases.show(name, value))")
    assert shown == [show(name, value) for name, value in VALUES]


def test_a_link_opens_its_case(opened):
    """By the case's id in the address; the row has the focus, and says that it is open."""
    name = sample_run(30).cases[17].case
    page = opened(sample_run(30), fragment=f"#{name}")
    assert page.ask("document.querySelector('tr.detail').previousElementSibling.id") == name
    assert page.ask("document.activeElement.textContent") == name
    assert page.ask("document.activeElement.getAttribute('aria-expanded')") == "true"
    assert "All 35 figures" in page.ask("document.querySelector('tr.detail').textContent")


def test_search_and_status_leave_what_is_wanted(opened):
    """All words of the search, any of the pressed statuses; the number is said."""
    page = opened(sample_run(40, red=6))
    page.ask(
        "(() => { const s = document.getElementById('search'); s.value = 'psum KiB'; s.dispatchEvent(new Event('input')); })()"
    )
    page.ask("new Promise((done) => setTimeout(done, 300))")
    visible = "[...document.querySelectorAll('#table tbody tr')].filter((row) => !row.hidden)"
    assert page.ask(f"{visible}.every((row) => row.id.includes('psum'))")
    both = page.ask(f"{visible}.length")
    page.ask("document.querySelector('.filter [data-word=SLOWER]').click()")
    assert page.ask(f"{visible}.length") == 2
    assert both > 2
    assert page.ask("document.getElementById('said').textContent") == "2 of 40 cases"


def test_columns_sort_by_their_numbers(opened):
    """The largest first, then the smallest; an open case keeps its details below it."""
    page = opened(sample_run(30))
    page.ask("document.querySelector('#table tbody tr a').click()")
    first = page.ask("document.querySelector('#table tbody tr').id")
    press = "document.querySelectorAll('#table thead button')[3].click()"  # a call
    values = "[...document.querySelectorAll('#table tbody tr[id]')].map((row) => Number(row.cells[3].dataset.v))"
    page.ask(press)
    largest = page.ask(values)
    page.ask(press)
    smallest = page.ask(values)
    assert largest == sorted(largest, reverse=True)
    assert smallest == sorted(smallest)
    assert page.ask("document.querySelectorAll('#table thead th')[3].getAttribute('aria-sort')") == "ascending"
    assert page.ask("document.querySelector('tr.detail').previousElementSibling.id") == first


def test_the_table_is_read_with_scripts_blocked(page, opened):
    """All rows and what failed, in words; nothing that needs a script is offered."""
    page.scripts(blocked=True)
    try:
        opened(sample_run(30, red=2))
    finally:
        page.scripts(blocked=False)
    assert (
        page.ask("[...document.querySelectorAll('#table tbody tr')].filter((row) => row.offsetHeight > 0).length") == 30
    )
    assert page.ask("document.querySelector('details.failure pre').offsetHeight > 0")
    assert page.ask("[...document.querySelectorAll('button')].filter((button) => button.offsetHeight > 0).length") == 0
