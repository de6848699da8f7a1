"""Two files of one name: neither judges by the other's baseline, nor records over it; what is new has its folder in its name."""

import pytest
from support.corpora import nightly
from support.git import commit
from support.projects import model

from jaxgate.model.workload import possible_names

A, B = model("jnp.ones((8, 8))", step="jnp.tanh(x)"), model("jnp.ones((8, 8))", step="jnp.sin(jnp.tanh(x @ x))")


@pytest.fixture
def both(project):
    """Two folders with a file of one name."""
    for folder, content in (("a", A), ("b", B)):
        project.write(f"{folder}/__init__.py", "").write(f"{folder}/test_model.py", content)
    return project


@pytest.fixture
def namesakes(both):
    """The same, of which b's test was recorded."""
    return both.record("b")


def cases(project):
    """The names of what is stored."""
    return sorted(path.partition("/")[2].removesuffix(".json") for path in project.baselines())


@nightly
def test_the_other_one_has_its_folder_in_its_name(namesakes):
    """Judged or recorded, apart or together: what was recorded keeps its name and its content."""
    (path,) = (namesakes.path / "baselines").glob("*/model/step.json")
    before = path.read_bytes()
    result = namesakes.run("a")
    assert result.line("a.model/step").startswith("NO_BASELINE")
    assert namesakes.run("a", "--perf-update").code == 0
    assert cases(namesakes) == ["a.model/step", "model/step"]
    assert path.read_bytes() == before
    for selection in (("a", "b"), ("b", "a"), ("a",), ("b",), (), ("-n", "2")):
        result = namesakes.run(*selection, "--perf-strict")
        assert result.code == 0, result.text
        assert "NO_BASELINE" not in result.text


def test_two_new_ones_both_have_it(both):
    """Neither comes first; what comes later to their files has it too, in all runs."""
    assert both.run("--perf-update").code == 0
    assert cases(both) == ["a.model/step", "b.model/step"]
    both.write("a/test_model.py", A + model("jnp.ones(8)", other="x + 1").replace("import jax", "import jax "))
    assert both.run("--perf-update=create").code == 0
    assert cases(both) == ["a.model/other", "a.model/step", "b.model/step"]
    result = both.run("a", "--perf-strict")
    assert result.code == 0, result.text


def test_a_name_that_was_given_stands_in_the_folder(both):
    """name= replaces the sentence; with a family of its own it says all, and two tests cannot share it."""
    for folder in "ab":
        both.edit(
            f"{folder}/test_model.py", "gate(step, jnp.ones((8, 8)))", "gate(step, jnp.ones((8, 8)), name='mine')"
        )
    result = both.run()
    assert result.line("a.model/mine")
    assert result.line("b.model/mine")
    for folder in "ab":
        both.edit(f"{folder}/test_model.py", "'mine'", "'layers/mine'")
    both.record("b")
    result = both.run("a")
    assert result.code == 1
    result.shows(
        "INVALID", "expected a baseline of a/test_model.py::test_step, found that of b/test_model.py::test_step"
    )


def test_a_process_that_measures_again_uses_the_same_names(both):
    """It collects one file only, and finds its case under the name that it has in the whole run."""
    both.run("--perf-update")
    both.records_here()
    both.write(".gitignore", "__pycache__\nperf-artifacts\nbaselines\n")
    commit(both.path)
    for selection in ((), ("a",)):
        result = both.run(*selection, "--perf-against", "HEAD")
        assert result.line("a.model/step").startswith("SAME"), result.text


def test_a_file_that_moved_keeps_its_baselines(namesakes):
    (namesakes.path / "b/test_model.py").replace(namesakes.path / "a/test_model.py")
    result = namesakes.run("a")
    assert result.code == 0
    result.shows("1 case: 1 SAME")


def test_a_method_that_was_recorded_under_an_older_name_keeps_it(project):
    """A class was spelt with a hash once; what is new is spelt as in Python."""
    method = "import jax.numpy as jnp\n\nclass TestModel:\n    def test_step(self, gate):\n        gate(jnp.tanh, jnp.ones(8))\n"
    project.write("test_model.py", method)
    assert project.run("--perf-update").code == 0
    assert cases(project) == ["model/TestModel.step"]
    (_, older) = possible_names("test_model.py::TestModel::test_step", None)[1]
    path = project.baseline("model/TestModel.step")
    path.write_text(path.read_text().replace('"model/TestModel.step"', f'"model/{older}"'))
    path.rename(path.with_name(f"{older}.json"))
    result = project.run("--perf-strict")
    assert result.line(f"model/{older}").startswith("SAME")


CLASSES = """
import jax.numpy as jnp

class Training:
    def test_step(self, gate):
        gate(jnp.tanh, jnp.ones(8))

class TestTraining:
    def test_step(self, gate):
        gate(jnp.tanh, jnp.ones(8))
"""


def test_classes_of_any_name(project):
    """Those that pytest is told to collect are named alike."""
    project.write("pyproject.toml", '[tool.pytest]\npython_classes = ["Test*", "Train*"]\n').write("test_m.py", CLASSES)
    assert project.run("--perf-update").code == 0
    assert cases(project) == ["m/TestTraining.step", "m/Training.step"]
