"""``gate(..., targets=[...])``: a function compiled for hardware that is not there, in a run that calls the other cases."""

import json
from types import SimpleNamespace

import pytest
from support.corpora import nightly
from support.targets import CompilerHere

from jaxgate.ext.targets.gate import compiler_of
from jaxgate.ext.targets.model import Target
from jaxgate.ext.targets.topology import NoTargetError
from jaxgate.settings import RunKind

MODEL = """
import jax, jax.numpy as jnp

def layer(x, w):
    return jnp.tanh(x @ w), None

def loss(ws, x):
    return jnp.sum(jax.lax.scan(jax.checkpoint(layer), x, ws)[0])

def step(ws, x):
    return ws - 0.1 * jax.grad(loss)(ws, x)

def test_step(gate):
    gate(step, jnp.ones((16, 64, 64)), jnp.ones((32, 64)), donate="ws", targets=TARGETS)

def test_here(gate):
    gate(step, jnp.ones((2, 8, 8)), jnp.ones((4, 8)))
"""
ONE, TWO = "targets=['tpu:v5e:1x1']", "targets=['tpu:v5e:1x1', 'tpu:v4:2x2x1']"
WITHOUT_REMAT = ("jax.checkpoint(layer)", "layer")


def write(project, targets):
    """The model, with these targets."""
    project.write("test_model.py", MODEL.replace("targets=TARGETS", targets))


def test_a_target_is_gated_beside_the_cases_that_are_called(project, compilers):
    """It has a baseline of its own, under the target's folder; the run says once that nothing was called there."""
    write(project, ONE)
    assert project.run("--perf-update").code == 0
    (baseline,) = project.path.glob("baselines/cpu-v5e-1x1-1-*/model/step.cpu-v5e-1x1.json")
    assert json.loads(baseline.read_text())["hardware"]["device_kind"] == "v5e:1x1"
    result = project.run("--perf-strict")
    assert result.code == 0
    result.shows("2 SAME", "Compiled for cpu:v5e:1x1 and not called", "model/step.cpu-v5e-1x1", "model/here")
    assert all(compiler.closed for compiler in compilers)


@nightly
def test_each_of_several_targets_is_judged_though_the_first_is_red(project, compilers):
    """The test fails once, with both texts; each compiler was started once."""
    write(project, TWO)
    assert project.run("--perf-update").code == 0
    project.edit("test_model.py", *WITHOUT_REMAT)
    compilers.clear()
    result = project.run("--perf-strict", "-k", "step")
    assert result.code == 1
    result.shows("REGRESSED  model/step.cpu-v5e-1x1", "REGRESSED  model/step.cpu-v4-2x2x1", "remat", "1 failed")
    assert len(compilers) == 2


@nightly
def test_a_target_that_loses_its_test_is_an_orphan(project, compilers):
    write(project, TWO)
    assert project.run("--perf-update").code == 0
    project.edit("test_model.py", TWO, ONE)
    result = project.run("--perf-strict")
    assert result.code == 1
    result.shows("ORPHAN", "step.cpu-v4-2x2x1")


NO_LISTS = {
    "targets=['tpu:v99:2x4']": "expected a target such as",
    "targets='tpu:v5e:2x4'": "expected targets=['tpu:v5e:2x4', ...], found 'tpu:v5e:2x4'",
    "targets=['tpu:v5e:1x1', 'tpu:v5e:1x1']": "expected each target once",
}


def test_what_is_no_list_of_targets_is_refused_in_one_line(project, compilers):
    for place, targets in enumerate(NO_LISTS):
        project.write(f"test_model{place}.py", MODEL.replace("targets=TARGETS", targets))
    result = project.run("-k", "step")
    result.counts(failed=len(NO_LISTS), deselected=len(NO_LISTS))
    result.shows(*(f"gate: {found}" for found in NO_LISTS.values()))
    assert compilers == []


def test_plain_python_has_no_program_for_a_target(project, compilers):
    """Whoever names a target wants a verdict on it: the test is red, not skipped."""
    write(project, ONE + ", eager=True")
    project.edit("test_model.py", 'donate="ws", ', "")
    result = project.run("--no-perf-strict", "-k", "step")
    assert result.code == 1
    result.shows("has no program for cpu:v5e:1x1: plain Python (eager=True)", "expected targets= without it")


@pytest.mark.parametrize(("option", "code"), [("--perf-strict", 1), ("--no-perf-strict", 0)])
def test_a_compiler_that_is_not_installed_is_one_line_with_the_command(project, lab, option, code):
    """Red under CI; elsewhere the test is left out and counted, as the others can be judged."""

    class Missing(CompilerHere):
        @property
        def versions(self):
            raise NoTargetError("tpu:v5e:1x1 cannot be compiled for: pip install 'jaxgate[tpu-aot]'")

        @versions.setter
        def versions(self, _):
            pass

    lab.instruments["open_target"] = Missing
    write(project, ONE)
    result = project.run(option, "-k", "step", "-rs")
    assert result.code == code
    result.shows("pip install 'jaxgate[tpu-aot]'")


def test_a_run_that_only_calls_leaves_a_target_out(compilers):
    settings = SimpleNamespace(kind=RunKind.AGAINST_ENV, ranks=None)
    session = SimpleNamespace(settings=settings, result=SimpleNamespace(left_out={}))
    with pytest.raises(pytest.skip.Exception, match="--perf-against calls the cases, and this one is compiled for "):
        compiler_of(session, Target.parse("tpu:v5e:1x1"), "test_model.py::test_step")
    assert list(session.result.left_out) == ["test_model.py::test_step"]
    assert compilers == []
