"""The pages as a whole: short where they must be, linked from the index, and true where a test can hold them to it."""

import inspect
import re
import runpy
from importlib import import_module

import pytest
from support.paths import REPOSITORY

import jaxgate
from jaxgate import plugin
from jaxgate.plugin.gate import Gate

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
DOCS = REPOSITORY / "docs"
PAGES = [REPOSITORY / "README.md", *sorted(DOCS.glob("*.md"))]
MOST_LINES = 90
"""Of the README: what a newcomer reads."""


def links(text):
    """The targets of a page's links into the repository."""
    return [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text) if not re.match(r"\w+:|#", link)]


def test_the_readme_is_short():
    assert len(README.splitlines()) <= MOST_LINES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_links_lead_somewhere(page):
    assert [link for link in links(page.read_text(encoding="utf-8")) if not (page.parent / link).exists()] == []


def test_every_page_is_in_the_index():
    """A page that nobody links is a page that nobody reads."""
    linked = set(links((DOCS / "README.md").read_text(encoding="utf-8")))
    assert {page.name for page in DOCS.glob("*.md")} - {"README.md"} <= linked


def test_culprits_in_the_readme_were_said_of_planted_mistakes():
    planted = (DOCS / "planted.md").read_text(encoding="utf-8")
    rows = [re.split(r"(?<!\\)\|", row) for row in README.partition("## What it catches")[2].splitlines()]
    said = [text for row in rows if len(row) == 5 for text in re.findall(r"`([^`]+)`", row[3])]
    assert len(said) >= 8
    assert [text for text in said if text.removesuffix(", …") not in planted] == []


def test_the_score_in_the_readme_is_that_of_the_page():
    """Of planted mistakes, and of programs that only look different."""
    planted = (DOCS / "planted.md").read_text(encoding="utf-8")
    for line in ("first culprit clause right", "unchanged, no alarm"):
        count = re.search(rf"{line}\s+(\d+ of \d+)", planted)[1]
        assert count in README


def test_figures_of_other_tools_in_the_readme_are_those_of_the_page():
    """Mistakes that each caught and its false alarms, on the same programs; a change of the page is a change of both."""
    page = (DOCS / "evaluation.md").read_text(encoding="utf-8")
    rows = [
        row.strip("| ").split(" | ")
        for row in README.splitlines()
        if row.startswith(("| mistakes caught", "| false alarms"))
    ]
    tools = ("**jaxgate**", "pytest-benchmark, `--benchmark-compare-fail=mean:10%`", "", "asv, factor 1.1")
    assert len(rows) == 2
    for column, tool in enumerate(tools, 1):
        caught, false = (row[column] for row in rows)
        said = next((row.split(" | ") for row in page.splitlines() if tool and row.startswith(f"| {tool}")), None)
        assert (caught, false) == ((said[1], said[3]) if said else ("–", "–"))


def test_the_page_of_the_gate_has_all_its_arguments():
    """And of the fields that it takes for ``Computation``, those that the docstring names."""
    page = (DOCS / "gate.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(\w+)=", page))
    taken = set(inspect.signature(Gate.__call__).parameters) - {"self", "subject", "args", "options"}
    assert taken <= named


def test_the_glossary_is_in_order():
    words = re.findall(r"^\| \*\*(.+?)\*\* \|", (DOCS / "glossary.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert len(words) > 20
    assert words == sorted(set(words))


def test_every_page_is_in_the_navigation_of_the_site():
    """Once, with the catalogue and the page of the API."""
    groups = runpy.run_path(str(DOCS / "site/conf.py"))["navigation"]().values()
    pages = sorted(page for group in groups for page in group)
    ours = [f"docs/{page.stem}" for page in DOCS.glob("*.md")]
    assert pages == sorted([*ours, "workloads/README", "workloads/contrast/README", "docs/site/api"])
    assert all(groups)


def test_what_the_site_has_no_page_for_is_there():
    """A name that moved would be an exception for nothing, and the one that took its place a broken link."""
    names = runpy.run_path(str(DOCS / "site/conf.py"))["RETURNED"]
    assert names
    for name in names:
        module, _, attribute = f"jaxgate.{name}".rpartition(".")
        assert hasattr(import_module(module), attribute), name


def test_the_page_of_the_api_has_the_public_names():
    """All of them once, where users import them from, and no other."""
    page = (DOCS / "site/api.rst").read_text(encoding="utf-8")
    named = re.findall(r"^\.\. auto\w+:: ([\w.]+)", page, flags=re.MULTILINE)
    public = [f"jaxgate.{name}" for name in jaxgate.__all__]
    public += [f"jaxgate.plugin.{name}" for name in plugin.__all__]
    assert sorted(named) == sorted(public)
