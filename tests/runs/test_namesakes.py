"""Two files of one name that are run apart: neither judges by the other's baseline, nor records over it."""

from __future__ import annotations

import pytest
from support.projects import model

A, B = model("jnp.ones((8, 8))", step="jnp.tanh(x)"), model("jnp.ones((8, 8))", step="jnp.sin(jnp.tanh(x @ x))")


@pytest.fixture
def namesakes(project):
    """Two folders with a file of one name; b's test was recorded."""
    for folder, content in (("a", A), ("b", B)):
        (project.path / folder).mkdir()
        project.write(f"{folder}/test_model.py", content)
    assert project.run("b", "--perf-update").code == 0
    return project


@pytest.mark.parametrize("mode", [(), ("--perf-update",)], ids=["judged", "recorded"])
def test_the_other_ones_baseline_is_refused(namesakes, mode):
    """Red, with both tests and the way out; what was recorded stays."""
    (path,) = (namesakes.path / "baselines").glob("*/model/step.json")
    before = path.read_bytes()
    result = namesakes.run("a", *mode)
    assert result.code == 1
    result.shows(
        "INVALID", "expected a baseline of a/test_model.py::test_step, found that of b/test_model.py::test_step"
    )
    assert path.read_bytes() == before
    assert namesakes.run("b").code == 0


def test_a_file_that_moved_keeps_its_baselines(namesakes):
    """The old one is gone: the test is the same."""
    (namesakes.path / "b/test_model.py").replace(namesakes.path / "a/test_model.py")
    result = namesakes.run("a")
    assert result.code == 0
    result.shows("1 case: 1 SAME")
