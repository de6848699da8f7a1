"""Fail closed: what cannot be checked is never green, and says in one line what to do."""

import json

import pytest

SIMPLE = """
import jax, jax.numpy as jnp

def step(state, x):
    return state * 0.9 + x, jnp.sum(state)

def test_step(gate):
    gate(step, jnp.ones(64), jnp.ones(64), donate="state")
"""


@pytest.fixture
def simple(project):
    """A project with one test; no baseline yet."""
    return project.write("test_model.py", SIMPLE)


@pytest.fixture
def recorded(simple):
    """The same project with its baseline recorded."""
    return simple.record()


def test_an_unreadable_baseline_of_another_case_fails_the_run(recorded):
    """A broken file is found even if its own case was not selected."""
    recorded.write("test_other.py", SIMPLE.replace("test_step", "test_other"))
    recorded.record("-k", "other")
    recorded.baseline().write_text("{")
    result = recorded.run("-k", "other")
    result.counts(passed=1, deselected=1)
    assert result.code == 1
    result.shows("UNREADABLE baselines/cpu-", "git checkout --")


def test_an_orphan_is_named_and_fails_under_ci(recorded, monkeypatch):
    """A baseline whose test is gone warns locally and fails under CI, with the command that removes it."""
    recorded.edit("test_model.py", "def test_step", "def test_renamed")
    recorded.edit("test_model.py", "0.9", "0.8")  # of the same program it would be a test with another name
    result = recorded.run()
    assert result.code == 0
    result.shows("ORPHAN baselines/cpu-", "step.json", "git rm")
    monkeypatch.setenv("CI", "true")
    assert recorded.run("--perf-update").code == 1  # the new case is recorded, the old file still lies there
    recorded.baseline().unlink()
    assert recorded.run().code == 0


def test_an_orphan_of_a_deleted_file_is_found(recorded):
    recorded.write("test_other.py", SIMPLE.replace("test_step", "test_other").replace("0.9", "0.8"))
    (recorded.path / "test_model.py").unlink()
    recorded.run().shows("ORPHAN baselines/cpu-", "model/step.json")


@pytest.mark.parametrize("arguments", [["-k", "other"], ["test_other.py"], ["test_other.py::test_other"]])
def test_a_case_that_was_not_selected_is_no_orphan(recorded, arguments):
    """Selecting some tests says nothing about the others."""
    recorded.write("test_other.py", SIMPLE.replace("test_step", "test_other"))
    result = recorded.run(*arguments)
    assert "ORPHAN" not in result.text


def test_a_builder_that_raises_is_invalid(project):
    """A case of a catalogue that cannot be built fails with the exception's text and traceback."""
    project.write(
        "test_model.py",
        "from jaxgate import Case\nfrom jaxgate.plugin import catalogue\n"
        "def build():\n    raise RuntimeError('no data')\n"
        "@catalogue([Case(family='a', sentence='b', build=build)])\n"
        "def test_it(case, gate):\n    gate(case)\n",
    )
    result = project.run()
    result.counts(failed=1)
    result.shows("INVALID  a/b", "building the workload: RuntimeError: no data (at test_model.py:4)", "Traceback")


CUT = """
import jax, jax.numpy as jnp
from jaxgate import Batch

def mean(x):
    return jnp.mean(x ** 2, axis=0)

def cut(x):
    return jnp.sum(x[: x.shape[0] // 3 * 3] ** 2)

def test_cut(gate):
    gate(cut, jnp.ones((8, 4)), batch=Batch(argument=0, size=8))

def test_fewer(gate):
    gate(mean, jnp.ones((6, 4)), batch=Batch(argument=0, size=8))
"""


def test_a_batch_that_is_cut_is_invalid(project):
    """Silently, or before the function is called: it fails before anything is timed."""
    project.write("test_model.py", CUT)
    result = project.run()
    result.counts(failed=2)
    result.shows(
        "sample 7 of 8 does not influence the result: the batch is cut",
        "expected 8 samples on axis 0, found 6 in float32[6,4]",
    )


def test_an_empty_catalogue_is_an_error(project):
    """Pytest would skip an empty parameter set in silence."""
    project.write(
        "test_model.py",
        "from jaxgate.plugin import catalogue\n@catalogue([])\ndef test_it(case, gate):\n    gate(case)\n",
    )
    result = project.run()
    assert result.code != 0
    result.shows("expected at least one case in the catalogue, found none")


@pytest.mark.parametrize("how", ["last failed", "ignored file"])
def test_what_was_left_out_while_collecting_is_no_orphan(recorded, how):
    """--lf and --ignore leave tests out before anybody sees them; their baselines are not orphans."""
    recorded.write("test_other.py", SIMPLE.replace("test_step", "test_other").replace("jnp.sum(state)", "jnp.nan * x"))
    if how == "last failed":
        recorded.pytester.runpytest_inprocess()
        result = recorded.pytester.runpytest_inprocess("--lf", "--perf-strict").stdout.str()
    else:
        result = recorded.run("--ignore=test_model.py", "--perf-strict").text
    assert "ORPHAN" not in result


LOOKS = """
import jax, jax.numpy as jnp

@jax.tree_util.register_pytree_node_class
class Box:
    def __init__(self, x):
        {init}
        self.x = x
    def tree_flatten(self):
        return (self.x,), self.x.shape
    @classmethod
    def tree_unflatten(cls, shape, leaves):
        return cls(*leaves)

def step(box, x):
    return Box(box.x * 0.9 + x)

def test_step(gate):
    gate(step, Box(jnp.ones((4, 4))), jnp.ones((4, 4)), donate="box")
"""


def test_a_pytree_that_looks_at_its_leaves_is_judged(project):
    """JAX puts shardings in their place, and so would this engine markers; neither is asked for."""
    project.write("test_plain.py", LOOKS.format(init="pass"))
    project.write("test_looks.py", LOOKS.format(init="assert len(x.shape) == 2"))
    project.run("--perf-update").counts(passed=2)
    result = project.run()
    result.counts(passed=2)
    for family in ("plain", "looks"):
        assert "identical program" in result.line(f"SAME  {family}/step")


def test_a_name_in_a_baseline_does_nothing_to_the_terminal(recorded):
    """An orphan whose name clears the screen and begins a line of its own, and a git command that is one word."""
    name = "ste'p\x1b[2J\n::error::x"
    text = recorded.baseline().read_text().replace("test_step", "test_gone")
    text = text.replace('"case": "model/step"', '"case": ' + json.dumps(f"model/{name}", ensure_ascii=True))
    (recorded.baseline().parent / f"{name}.json").write_text(text)
    result = recorded.run()
    line = result.line("ORPHAN")
    assert "\x1b" not in result.text
    assert "\\u001b[2J ::error::x" in line
    assert """git rm 'baselines/""" in line
    assert "ste'\"'\"'p" in line
    assert not any(line.startswith("::error") for line in result.text.splitlines())
