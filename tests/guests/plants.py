"""Mistakes in projects of other people's libraries: each turns its test red, and names its culprit in one short line."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any

import pytest
from support.corpora import EVERY

MAX_LINE = 300
"""Characters of a first culprit line that a person still reads, without where it comes from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plant:
    """A small diff in a project, and what must be said of it."""

    name: str  # what the author did, as a clause
    test: str  # the test that must turn red
    edits: tuple[tuple[str, str, str], ...]  # replacements of text that stands once in a file: the file, old, new
    finds: str  # a quantity that must be among what is found
    culprit: str  # what the first clause of the culprit must say (a regular expression)
    at: str  # a text of the edited file whose line the culprit must name; empty where what is blamed has no line
    origin: str  # where it comes from: a number or an optimiser that stands outside of all functions is no source


def plant(
    name: str,
    test: str,
    *edits: tuple[str, str, str],
    finds: str,
    culprit: str,
    at: str = "",
    origin: str = "code",
    wrong: str = "",
) -> Any:
    """Give the parameter of a test; ``wrong`` says what is known to be wrong with what the gate says of it."""
    marks = [pytest.mark.xfail(strict=True, reason=wrong)] if wrong else []
    one = Plant(name=name, test=test, edits=edits, finds=finds, culprit=culprit, at=at, origin=origin)
    return pytest.param(one, marks=marks, id=name.replace(" ", "-"))


whole_suite = pytest.mark.skipif(
    not os.environ.get(EVERY), reason=f"a recipe of docs/recipes.md is run unchanged in its place; this with {EVERY}=1"
)
"""For projects of libraries of which ``tests/ci/test_recipes.py`` records a program and finds it again."""


def test_unchanged(guest: Any, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing changed: under CI each test is green, and SAME."""
    monkeypatch.setenv("CI", "true")
    result = guest.run()
    result.counts(passed=sum(text.count("def test_") for text in request.module.FILES.values()))
    assert result.code == 0, result.text
    assert {case["status"] for case in guest.results()["cases"]} == {"SAME"}, result.text


@whole_suite
def test_unchanged_in_a_recipe(guest: Any, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same of a project that is run in another place, too."""
    test_unchanged(guest, request, monkeypatch)


def test_planted(guest: Any, planted: Plant) -> None:
    """A mistake turns its test red for the right reason; no clock is asked."""
    for edit in planted.edits:
        guest.edit(*edit)
    (file,) = guest.path.glob("test_*.py")
    result = guest.run(f"{file.name}::{planted.test}", "--benchmark-disable")
    result.counts(failed=1)
    found = result.line("found")
    assert planted.finds in found, result.text
    culprit = result.line("culprit").split("culprit", 1)[1].strip()
    first = culprit.split("; ")[0]  # the clause that a person reads first
    assert re.search(planted.culprit, first), culprit
    assert len(culprit.partition("; comes from")[0]) <= MAX_LINE, culprit
    assert culprit.endswith(f"; comes from: {planted.origin}"), culprit
    if planted.at:
        assert _place(guest, planted) in culprit, culprit


def _place(project: Any, planted: Plant) -> str:
    """Where the culprit stands, as ``file:line``."""
    for name, _, _ in planted.edits:
        for number, line in enumerate((project.path / name).read_text().splitlines(), 1):
            if planted.at in line:
                return f"{name}:{number}"
    raise AssertionError(f"expected {planted.at!r} in an edited file of {planted.name}")
