"""The charts' JavaScript: made once, kept by its version, and never a reason for a run to fail."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError
from types import SimpleNamespace

import pytest

from jaxgate.ext.page.chart_library import chart_library
from jaxgate.keep.machine import cache_folder


@pytest.fixture
def made(monkeypatch):
    """A converter that says how often it was asked."""
    asked = []

    def bundle():
        asked.append(1)
        return "program"

    module = sys.modules[chart_library.__module__]
    monkeypatch.setattr(module, "version", lambda name: "1.2")
    monkeypatch.setitem(sys.modules, "vl_convert", SimpleNamespace(javascript_bundle=bundle))
    return asked


def test_it_is_made_once(made, tmp_path):
    """The next page reads what is kept; another version is made anew."""
    assert [chart_library(tmp_path), chart_library(tmp_path)] == ["program", "program"]
    assert len(made) == 1
    assert (tmp_path / "charts/1.2.js").read_text() == "program"


def test_a_cache_that_cannot_be_written_is_no_error(made, tmp_path):
    """It is made for this page."""
    (tmp_path / "charts").write_text("a file where the folder should be")
    assert chart_library(tmp_path) == "program"


def test_without_the_package_there_is_none(monkeypatch, tmp_path):
    """The page says then how to have charts."""

    def missing(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(sys.modules[chart_library.__module__], "version", missing)
    assert chart_library(tmp_path) == ""


def test_a_package_that_does_not_work_is_none(made, monkeypatch, tmp_path):
    """Its library does not load on this system."""
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    assert chart_library(tmp_path) == ""


def test_the_real_one_can_draw_under_a_strict_policy():
    """It has the interpreter of expressions that needs no `eval`, and nothing that ends a script."""
    pytest.importorskip("vl_convert")
    program = chart_library(cache_folder({}))  # other tests have a stand-in in their cache
    assert "expressionInterpreter" in program
    assert "window.vegaEmbed" in program


@pytest.mark.usefixtures("made")
def test_a_library_that_raises_is_none(tmp_path, monkeypatch):
    """A page without charts is better than none, and nothing of it is kept."""

    def broken():
        raise ValueError("no bundle")

    monkeypatch.setitem(sys.modules, "vl_convert", SimpleNamespace(javascript_bundle=broken))
    assert chart_library(tmp_path) == ""
    assert list(tmp_path.iterdir()) == []
