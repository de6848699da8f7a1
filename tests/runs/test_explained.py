"""What stands below a red case: its buffers where memory decides, what changed in its program, and memory that ran out."""

import shutil

import pytest
from support.corpora import nightly
from support.projects import model

from jaxgate.report.case_page import BUFFERS, CHANGES

MODEL = """
import jax, jax.numpy as jnp

def step(x):
    y = jnp.sin(x)
    return y.sum()

def test_step(gate):
    gate(step, jnp.ones((256, 64)))
"""
SORTS = "    return jnp.sort(y.ravel())[::2].sum() + y.sum()"


SCAN = """
import jax, jax.numpy as jnp

def chain(x, w):
    return jax.lax.scan(lambda x, _: (jnp.tanh(w @ x), x.sum()), x, None, length=20)

def test_chain(gate):
    gate(chain, jnp.ones(64), jnp.eye(64))
"""


def test_a_loop_that_is_unrolled_in_part_is_the_first_culprit(project):
    """`unroll=10` leaves the loop and its products; what stacks the results is new, and not to blame."""
    project.write("test_model.py", SCAN).record().edit("test_model.py", "length=20", "length=20, unroll=10")
    result = project.run()
    result.counts(failed=1)
    result.shows("culprit   a loop is unrolled in part: stablehlo.dot_general 64xf32 1 → 10 at test_")


@pytest.fixture
def recorded(project):
    """A project with a recorded case."""
    return project.write("test_model.py", MODEL).record()


def test_a_red_memory_lists_its_buffers_and_its_program(recorded):
    """The buffers come with operation and line; the difference of the programs shows the operation that came."""
    recorded.edit("test_model.py", "    return y.sum()", SORTS)
    result = recorded.run()
    result.counts(failed=1)
    result.shows("REGRESSED  model/step", "temp_bytes", BUFFERS, CHANGES)
    below = result.text.partition(BUFFERS)[2]
    buffers, _, changes = below.partition(CHANGES)
    assert "65.5 kB" in buffers
    assert "sort" in buffers
    assert "test_model.py:6" in buffers
    changed = [line for line in changes.splitlines() if line.startswith(("+", "-"))]
    assert any("stablehlo.sort" in line for line in changed)
    assert not any("stablehlo.sine" in line for line in changed)


def test_a_broken_claim_without_a_baseline_lists_its_buffers(project):
    """A claim on memory needs no baseline to show what holds it; there is no program to compare with."""
    project.write("test_model.py", MODEL.replace("(256, 64)))", "(256, 64)), max_argument_bytes=100)"))
    result = project.run()
    result.counts(failed=1)
    result.shows("claim argument_bytes ≤ 100", BUFFERS, "65.5 kB argument parameter")
    assert CHANGES not in result.text


def test_memory_that_runs_out_is_a_verdict_of_its_own(recorded):
    """The case is RESOURCE_EXHAUSTED with the numbers, fails, and cannot be recorded."""
    recorded.edit("test_model.py", "return y.sum()", "return jnp.full((1 << 48,), y[0, 0])")
    before = recorded.baselines()
    for arguments in ((), ("--perf-update",)):
        result = recorded.run(*arguments)
        result.counts(failed=1)
        result.shows("RESOURCE_EXHAUSTED  model/step", "asked for 1.1 PB")
        assert "1 RESOURCE_EXHAUSTED" in result.text
    assert recorded.baselines() == before


def test_each_red_text_is_printed_once_under_ci(project, monkeypatch):
    """Pytest's own summary has the first line of each alone."""
    monkeypatch.setenv("CI", "true")
    project.write(
        "test_model.py",
        "import jax.numpy as jnp, pytest\n\n"
        "def step(x):\n    return jnp.tanh(x)\n\n"
        "@pytest.mark.parametrize('size', [8, 16])\n"
        "def test_step(gate, size):\n    gate(step, jnp.ones((size, 64)))\n",
    ).record()
    project.edit("test_model.py", "jnp.tanh(x)", "jnp.tanh(x) @ jnp.tanh(x).T")
    result = project.run()
    result.counts(failed=2)
    for size in (8, 16):
        found = [line for line in result.text.splitlines() if f"float32[{size},64] x float32[64,{size}]" in line]
        assert len(found) == 1
        assert f"FAILED test_model.py::test_step[{size}] - Failed: REGRESSED  model/step-{size}" in result.text


@pytest.fixture
def two(project):
    """Two recorded cases that share a function, and its mistake."""
    again = "\ndef test_again(gate):\n    gate(step, jnp.ones((128, 64)))\n"
    project.write("test_model.py", MODEL + again).record()
    project.edit("test_model.py", "    return y.sum()", SORTS)
    return project


@pytest.mark.parametrize("workers", [(), pytest.param(("-n", "2"), marks=nightly)], ids=["alone", "workers"])
def test_what_several_red_cases_have_on_their_pages_is_not_printed(two, workers):
    """One mistake makes many tests red: each keeps its text, and the log stays short."""
    result = two.run(*workers)
    result.counts(failed=2)
    result.shows("with the difference of each program and its largest buffers (-v prints them)", "culprit")
    assert BUFFERS not in result.text
    assert CHANGES not in result.text
    page = (two.path / "perf-artifacts/model/step/report.md").read_text()
    assert "## Largest buffers" in page
    assert "## What changed in the program since its baseline" in page


def test_all_of_it_is_printed_to_who_asks(two):
    result = two.run("-v")
    assert (result.text.count(BUFFERS), result.text.count(CHANGES)) == (2, 2)


def test_what_is_on_no_page_is_printed(two):
    """A folder that is somebody else's takes no bundle: nothing may be lost for that."""
    shutil.rmtree(two.path / "perf-artifacts", ignore_errors=True)
    (two.path / "perf-artifacts").mkdir()
    (two.path / "perf-artifacts/notes.txt").write_text("mine")
    result = two.run()
    assert (result.text.count(BUFFERS), result.text.count(CHANGES)) == (2, 2)
    assert "-v prints them" not in result.text


def test_little_is_printed_all_the_same(project):
    """A line that changed in each of two programs fills no log."""
    project.write("test_model.py", model("jnp.ones(8), max_stablehlo_ops=1", first="-x", second="jnp.exp(x)")).record()
    project.write("test_model.py", model("jnp.ones(8), max_stablehlo_ops=1", first="-x + x", second="jnp.exp(x) + x"))
    result = project.run()
    result.counts(failed=2)
    assert result.text.count(CHANGES) == 2
    assert "-v prints them" not in result.text
