"""The page in a real browser, where there is one: names do not run, tables sort and are searched, links open."""

import pytest

from ci.page.browser import browser, find_browser
from ci.page.samples import hostile_run, sample_run
from jaxgate.ext.page.run_page import Result, run_page

PROGRAM = find_browser()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="needs chromium")


@pytest.fixture(scope="module")
def page():
    """A browser with one page, for all tests of this file."""
    with browser(PROGRAM, patience_s=300) as found:
        found.size(1440, 1000, dark=False)
        yield found


@pytest.fixture
def opened(page, tmp_path):
    """Opens the page of a run."""

    def open_page(run, fragment=""):
        file = tmp_path / "report.html"
        file.write_text(run_page([Result(run=run)]), encoding="utf-8")
        page.open(file, fragment)
        return page

    return open_page


def test_hostile_names_do_not_run(opened):
    """Not when the page opens, nor when all of it is opened; the policy had nothing to stop."""
    page = opened(hostile_run())
    title = page.ask("document.title")
    page.ask("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
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


def test_a_link_opens_its_case(opened):
    """By the case's id in the address; it has the focus."""
    name = sample_run(30).cases[17].case
    page = opened(sample_run(30), fragment=f"#{name}")
    opened_cases = "[...document.querySelectorAll('#table details')].filter((one) => one.open)"
    assert page.ask(f"{opened_cases}.map((one) => one.closest('th').id)") == [name]
    assert page.ask("document.activeElement.textContent") == name
    assert "temp_bytes" in page.ask(f"{opened_cases}[0].textContent")


def test_search_and_status_leave_what_is_wanted(opened):
    """All words of the search, any of the pressed statuses; the number is said."""
    page = opened(sample_run(40, red=6))
    page.ask(
        "(() => { const s = document.getElementById('search'); s.value = 'psum KiB'; s.dispatchEvent(new Event('input')); })()"
    )
    visible = "[...document.querySelectorAll('#table tbody tr')].filter((row) => !row.hidden)"
    assert page.ask(f"{visible}.every((row) => row.cells[0].id.includes('psum'))")
    both = page.ask(f"{visible}.length")
    page.ask("document.querySelector('.filter [data-word=SLOWER]').click()")
    assert page.ask(f"{visible}.length") == 2
    assert both > 2
    assert page.ask("document.getElementById('count').textContent") == "2 of 40 cases"


def test_columns_sort_by_their_numbers(opened):
    page = opened(sample_run(30))
    press = "document.querySelectorAll('#table thead button')[3].click()"  # a call
    values = "[...document.querySelectorAll('#table tbody tr')].map((row) => Number(row.cells[3].dataset.v))"
    page.ask(press)
    largest = page.ask(values)
    page.ask(press)
    smallest = page.ask(values)
    assert largest == sorted(largest, reverse=True)
    assert smallest == sorted(smallest)
    assert page.ask("document.querySelectorAll('#table thead th')[3].getAttribute('aria-sort')") == "ascending"


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
    assert page.ask("document.querySelector('#failed details pre').offsetHeight > 0")
    assert page.ask("[...document.querySelectorAll('button')].filter((button) => button.offsetHeight > 0).length") == 0
