"""The page as a whole: nothing that a name holds can run or lead elsewhere, and nothing else than ours may."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from urllib.parse import unquote

import pytest

from ci.page.samples import MARKS, hostile_run, sample_run
from jaxgate.ext.page.blocks import Cell, Column, Section, Table
from jaxgate.ext.page.cases import to_file
from jaxgate.ext.page.document import document, source
from jaxgate.ext.page.run_page import Result, run_page

PLAIN_ELEMENTS = {
    "a", "b", "body", "button", "caption", "circle", "code", "dd", "details", "div", "dl", "dt", "figcaption", "figure", "g", "h1",
    "h2", "h3", "h4", "head", "header", "html", "input", "label", "li", "main", "meta", "nav", "ol", "p", "path", "pre", "script",
    "section", "small", "span", "style", "summary", "svg", "table", "tbody", "td", "text", "th", "thead", "title", "tr", "ul",
}  # fmt: skip
"""Nothing among them loads anything by itself; scripts have no address, as is tested."""


class Read(HTMLParser):
    """What a browser would make of a page: its elements with their attributes, and its scripts."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.texts: list[str] = []
        self._within = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        assert len({name for name, _ in attrs}) == len(attrs), "an attribute that stands twice"
        self.elements.append((tag, dict(attrs)))
        self._within = tag
        if tag in ("script", "style"):
            self.scripts.append("")

    def handle_endtag(self, tag):
        self._within = ""

    def handle_data(self, data):
        if self._within in ("script", "style"):
            self.scripts[-1] += data
        else:
            self.texts.append(data)

    def attributes(self, name):
        """All values of an attribute."""
        return [found[name] for _, found in self.elements if name in found]


@pytest.fixture(scope="module")
def hostile():
    """A page whose every text attacks it."""
    return Read(run_page([Result(run=hostile_run(), name=MARKS[0]), Result(run=hostile_run(), name=MARKS[1])]))


def test_hostile_texts_make_no_element(hostile):
    """All elements are those that templates write; none has an attribute that runs."""
    assert {tag for tag, _ in hostile.elements} <= PLAIN_ELEMENTS
    names = {name for _, attributes in hostile.elements for name in attributes}
    assert [
        name for name in names if name.startswith("on") or name in ("src", "srcdoc", "action", "formaction", "style")
    ] == []


def test_hostile_texts_lead_nowhere(hostile):
    """Each link is a fragment, or a path below the folder of the bundles."""
    links = hostile.attributes("href")
    assert len(links) > 20
    assert [
        link for link in links if not re.fullmatch(r"#[\w%/.~@:=,\[\]-]*|\./[\w%/.~-]*", link, flags=re.ASCII)
    ] == []
    assert [link for link in links if link[0] != "#" and ".." in link.split("/")] == []


def test_hostile_texts_close_no_script(hostile):
    """There are our style and our script, as they lie beside the template."""
    assert [attributes for tag, attributes in hostile.elements if tag == "script"] == [{}]
    assert hostile.scripts == [source("page.css"), source("page.js")]


def test_hostile_texts_are_shown_as_they_are_written(hostile):
    """To the letter, but for what acts on the reader's screen."""
    whole = "".join(hostile.texts)
    assert "</script><script>document.title='ran'</script>" in whole
    assert "{{ 7*7 }}{% raw %}" in whole
    for sign in ("\u202e", "\u2066", "\x1b", "\x00", "\u2028"):
        assert sign not in whole
        assert not any(sign in text for text in hostile.scripts)


def policy(read):
    """The page's policy: what each directive allows."""
    content = next(a["content"] for tag, a in read.elements if a.get("http-equiv") == "Content-Security-Policy")
    return {part.split()[0]: part.split()[1:] for part in content.split(";")}


def test_nothing_but_our_scripts_may_run(hostile):
    """The policy names the hash of each script as a browser reads it, and allows no network."""
    hashes = [
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in hostile.scripts
    ]
    allowed = policy(hostile)
    assert [*allowed["style-src"], *allowed["script-src"]] == hashes
    assert allowed["default-src"] == ["'none'"]
    assert "connect-src" not in allowed


def test_a_page_names_no_address():
    """Nothing is loaded, and no link leaves the page."""
    page = run_page([Result(run=sample_run(red=3))])
    assert re.findall(r"(?:https?:)?//[\w-]+\.\w+", page) == []


def test_no_two_cases_have_one_id(hostile):
    """A name without gaps, and a number where it stands twice; each link of the page leads to one of them."""
    ids = hostile.attributes("id")
    assert len(set(ids)) == len(ids)
    assert not any(re.search(r"\s", one) for one in ids)
    assert {unquote(link[1:]) for link in hostile.attributes("href") if link[0] == "#"} <= set(ids)


@pytest.mark.parametrize("case", ["../x", "a/../../x", "a//x", "/etc/passwd", "a\\x", "a/\0", ".", ""])
def test_a_name_that_leads_elsewhere_has_no_link(case):
    assert to_file("", case) == ""


def test_links_to_bundles_are_relative():
    """To the page, also where the bundles lie elsewhere; a name is quoted."""
    assert to_file("", "scan/rnn") == "./scan/rnn"
    assert to_file("../perf-artifacts", "scan/a:b #1") == "./../perf-artifacts/scan/a%3Ab%20%231"


def test_another_page_is_made_of_the_same_parts():
    """A title, a section of a table, no chart: nothing of a run is needed."""
    table = Table(
        caption="Sides",
        columns=(Column(title="a"), Column(title="b", number=True)),
        rows=[["<x>", Cell(text="2 kB", order=2e3)]],
    )
    section = Section(key="diff", title="Difference", blocks=[table], note="<i>")
    page = document(title="A <b> against B", sections=[section])
    read = Read(page)
    assert "A <b> against B" in read.texts
    assert "<x>" in read.texts
    assert "2000.0" in read.attributes("data-v")
