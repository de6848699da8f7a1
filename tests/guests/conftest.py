"""What all projects of guests have in common: their programs are compiled quickly, as no fact speaks of machine code."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.corpora import compiled_quickly, one_of
from support.project import Project


@pytest.fixture(autouse=True)
def _compiled_quickly() -> Iterator[None]:
    with compiled_quickly():
        yield


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Plant each mistake of a file."""
    if "planted" in metafunc.fixturenames:
        metafunc.parametrize("planted", one_of(metafunc.module.PLANTS))


@pytest.fixture
def guest(project: Project, request: pytest.FixtureRequest) -> Project:
    """The project of a file, with its baselines; with that of the one test that a mistake turns red, where no other runs."""
    for name, text in request.module.FILES.items():
        project.write(name, text)
    if hasattr(request.module, "test_unchanged") or "planted" not in request.fixturenames:
        return project.record()
    (file,) = project.path.glob("test_*.py")
    return project.record(f"{file.name}::{request.getfixturevalue('planted').test}", "--benchmark-disable")
