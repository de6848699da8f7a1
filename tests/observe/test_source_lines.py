"""Whose code a line is: in an environment that is laid over another one, that one's packages are no project's."""

from __future__ import annotations

import sys

import pytest

from jaxgate.observe import source_lines


@pytest.fixture
def laid_over(tmp_path, monkeypatch):
    """Packages of another environment on the path, as a requirement's environment has them."""
    folder = tmp_path / "other" / "lib" / "site-packages"
    monkeypatch.setattr(sys, "path", [*sys.path, str(folder)])
    source_lines._foreign.cache_clear()
    source_lines.is_project_file.cache_clear()
    yield folder
    source_lines._foreign.cache_clear()
    source_lines.is_project_file.cache_clear()


def test_packages_of_the_environment_below_are_not_the_projects(laid_over, tmp_path):
    """A warning of flax there must not be said to be at a line of the user's."""
    assert not source_lines.is_project_file(str(laid_over / "flax" / "core.py"))
    assert source_lines.is_project_file(str(tmp_path / "train.py"))
