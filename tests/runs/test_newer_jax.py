"""A release of jax that nobody has tried: it is tried, with one line that says so."""

import pytest
from packaging.requirements import Requirement
from support.paths import REPOSITORY
from support.projects import model

from jaxgate.keep.files import parse_toml, read_text


@pytest.mark.parametrize(
    ("found", "told"), [("0.12.9", False), ("0.12.0.1", False), ("0.13.0", True), ("0.13.0.dev2", True), ("1.0", True)]
)
def test_a_newer_jax_is_named_once(project, monkeypatch, found, told):
    """The cases are judged as ever; the note names both releases."""
    monkeypatch.setattr("jaxgate.plugin.terminal.version", lambda _package: found)
    project.write("test_model.py", model(first="x * 2", second="x + 1"))
    result = project.run()
    result.counts(passed=2)
    said = f"NOTE jax {found} is newer than what jaxgate was tested with (0.12)"
    assert result.text.count(said) == told


def test_no_release_of_jax_is_refused_for_being_new():
    """Neither the package nor an extra of it keeps a project from upgrading."""
    project = parse_toml(read_text(REPOSITORY / "pyproject.toml"))["project"]
    asked = [*project["dependencies"], *(line for extra in project["optional-dependencies"].values() for line in extra)]
    bounds = {line: Requirement(line).specifier for line in asked if Requirement(line).name in ("jax", "jaxlib")}
    assert len(bounds) == 4
    assert all("0.13.1" in bound and "0.10.1" not in bound for bound in bounds.values()), bounds
