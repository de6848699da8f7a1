"""Fail closed: what cannot be checked is never green, and says in one line what to do."""

from __future__ import annotations

import json

import pytest

from jaxgate.model import BASELINE_SCHEMA

SIMPLE = """
import jax, jax.numpy as jnp

def step(state, x):
    return state * 0.9 + x, jnp.sum(state)

def test_step(gate):
    gate(step, jnp.ones(64), jnp.ones(64), donate="state")
"""
BASELINE = "baselines/cpu-*/model/step.json"


@pytest.fixture
def simple(project):
    """A project with one test; no baseline yet."""
    project.write("test_model.py", SIMPLE)
    return project


@pytest.fixture
def recorded(simple):
    """The same project with its baseline recorded."""
    simple.record()
    return simple


def stored(project):
    """The one baseline file."""
    (path,) = project.path.glob(BASELINE)
    return path


def test_no_baseline_warns_locally(simple):
    """Locally a missing baseline is a visible warning; claims still gate."""
    result = simple.run()
    result.counts(passed=1)
    assert result.line("model/step").startswith("NO_BASELINE")
    result.shows("6 claims hold", "Record with --perf-update and commit; under CI this fails.")


@pytest.mark.parametrize("how", ["environment", "option", "ini"])
def test_no_baseline_fails_under_ci(simple, monkeypatch, how):
    """Under CI, or with --perf-strict, it fails and prints the command that records."""
    if how == "environment":
        monkeypatch.setenv("CI", "true")
    if how == "ini":
        simple.write("pyproject.toml", '[tool.pytest]\nperf_strict = "true"\n')
    result = simple.run(*(["--perf-strict"] if how == "option" else []))
    result.counts(failed=1)
    result.shows("NO_BASELINE  model/step", "No baseline for `model/step` on `cpu-", "record: add --perf-update")


def test_a_claim_gates_without_a_baseline(project):
    """Without a baseline a broken claim is red, not a warning."""
    project.write(
        "test_model.py",
        SIMPLE.replace('donate="state")', 'donate="state", claims=[at_most(0.0, "output_bytes", of="one")])').replace(
            "import jax,", "from jaxgate import at_most\nimport jax,"
        ),
    )
    result = project.run()
    result.counts(failed=1)
    result.shows("REGRESSED  model/step", "claim output_bytes ≤ 0: 276 B against 0 B")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text[: len(text) // 2], "is not JSON (truncated or merged badly?)"),
        (lambda _: "", "is not JSON"),
        (
            lambda text: text.replace(f'"schema": {BASELINE_SCHEMA}', '"schema": 99'),
            f"expected schema {BASELINE_SCHEMA}, found 99",
        ),
        (
            lambda text: text.replace(f'"schema": {BASELINE_SCHEMA}', '"schema": 2'),
            f"expected schema {BASELINE_SCHEMA}, found 2",
        ),
        (lambda text: text.replace('"temp_bytes"', '"tmp_bytes"'), "tmp_bytes"),
        (lambda text: f"<<<<<<< ours\n{text}", "is not JSON"),
    ],
    ids=["truncated", "empty", "unknown schema", "older schema", "unknown key", "merge conflict"],
)
def test_an_unreadable_baseline_fails_everywhere(recorded, damage, message):
    """A baseline file that cannot be trusted is INVALID, locally too, and names file, key and remedy."""
    path = stored(recorded)
    path.write_text(damage(path.read_text()))
    result = recorded.run()
    assert result.code == 1
    result.counts(failed=1)
    result.shows("INVALID  model/step", message, f"git checkout -- {path.relative_to(recorded.path)}", "--perf-update")


def test_an_unreadable_baseline_of_another_case_fails_the_run(recorded):
    """A broken file is found even if its own case was not selected."""
    recorded.write("test_other.py", SIMPLE.replace("test_step", "test_other"))
    assert recorded.run("-k", "other", "--perf-update").code == 0
    stored(recorded).write_text("{")
    result = recorded.run("-k", "other")
    result.counts(passed=1, deselected=1)
    assert result.code == 1
    result.shows("UNREADABLE baselines/cpu-", "git checkout --")


def test_a_changed_signature_is_stale(recorded, monkeypatch):
    """A case whose arguments changed cannot be compared: warned of locally, red under CI."""
    recorded.edit("test_model.py", "jnp.ones(64), jnp.ones(64)", "jnp.ones(32), jnp.ones(32)")
    result = recorded.run()
    result.counts(passed=1)
    assert result.line("model/step").startswith("STALE_BASELINE")
    monkeypatch.setenv("CI", "true")
    result = recorded.run()
    result.counts(failed=1)
    result.shows("STALE_BASELINE  model/step", "state: float32[64] then, float32[32] now", "accept: add --perf-update")


def test_an_orphan_is_named_and_fails_under_ci(recorded, monkeypatch):
    """A baseline whose test is gone warns locally and fails under CI, with the command that removes it."""
    recorded.edit("test_model.py", "def test_step", "def test_renamed")
    result = recorded.run()
    assert result.code == 0
    result.shows("ORPHAN baselines/cpu-", "step.json", "git rm")
    monkeypatch.setenv("CI", "true")
    assert recorded.run("--perf-update").code == 1  # the new case is recorded, the old file still lies there
    stored(recorded).unlink()
    assert recorded.run().code == 0


def test_an_orphan_of_a_deleted_file_is_found(recorded):
    """The file of the test may be gone altogether."""
    recorded.write("test_other.py", SIMPLE.replace("test_step", "test_other"))
    (recorded.path / "test_model.py").unlink()
    recorded.run().shows("ORPHAN baselines/cpu-", "model/step.json")


@pytest.mark.parametrize("arguments", [["-k", "other"], ["test_other.py"], ["test_other.py::test_other"]])
def test_a_case_that_was_not_selected_is_no_orphan(recorded, arguments):
    """Selecting some tests says nothing about the others."""
    recorded.write("test_other.py", SIMPLE.replace("test_step", "test_other"))
    result = recorded.run(*arguments)
    assert "ORPHAN" not in result.text


BROKEN = {
    "raises": (
        "    raise ValueError('no such layer')",
        ["INVALID  model/step", "tracing the subject: ValueError: no such layer", "test_model.py:5"],
    ),
    "runs out of memory": (
        "    raise MemoryError",
        ["RESOURCE_EXHAUSTED  model/step", "tracing the subject: out of memory on the host"],
    ),
    "cannot be traced": (
        "    return state if float(x[0]) > 0 else x",
        ["INVALID  model/step", "tracing the subject: ConcretizationTypeError"],
    ),
    "gives NaN": (
        "    return state * jnp.nan, x",
        ["INVALID  model/step", "expected numbers, found 64 NaN of 64 in result[0]"],
    ),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_workload_that_fails_is_red(project, fault):
    """A function that raises, exhausts memory, cannot be traced or gives NaN fails, with stage and reason."""
    body, pieces = BROKEN[fault]
    project.write("test_model.py", SIMPLE.replace("    return state * 0.9 + x, jnp.sum(state)", body))
    result = project.run()
    result.counts(failed=1)
    result.shows(*pieces, "reproduce: pytest 'test_model.py::test_step'")


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


DISAGREE = """
import jax, jax.numpy as jnp
from jaxgate import Batch

def mean(x):
    return jnp.mean(x ** 2, axis=0)

def wrong(x):
    return jnp.mean(x ** 2, axis=0).at[3].add(0.5)

def cut(x):
    return jnp.sum(x[: x.shape[0] // 3 * 3] ** 2)

def test_disagree(gate):
    gate(wrong, jnp.ones((8, 4)), reference=mean)

def test_cut(gate):
    gate(cut, jnp.ones((8, 4)), batch=Batch(argument=0, size=8))

def test_fewer(gate):
    gate(mean, jnp.ones((6, 4)), batch=Batch(argument=0, size=8))
"""


def test_wrong_results_are_invalid(project):
    """Subject and reference that disagree, and a batch that is silently cut, fail before anything is timed."""
    project.write("test_model.py", DISAGREE)
    result = project.run()
    result.counts(failed=3)
    result.shows(
        "comparing subject and reference: result[3]: subject gives 1.5, reference 1; 1 of 4 elements differ",
        "sample 7 of 8 does not influence the result: the batch is cut",
        "expected 8 samples on axis 0, found 6 in float32[6,4]",
    )


def test_a_gate_that_is_never_called_fails(project):
    """A test that asks for the gate and passes without calling it has measured nothing."""
    project.write("test_model.py", "def test_step(gate):\n    pass\n")
    result = project.run()
    result.counts(failed=1)
    result.shows("test_model.py::test_step passed without calling gate(...): nothing was measured")


def test_an_empty_catalogue_is_an_error(project):
    """Pytest would skip an empty parameter set in silence."""
    project.write(
        "test_model.py",
        "from jaxgate.plugin import catalogue\n@catalogue([])\ndef test_it(case, gate):\n    gate(case)\n",
    )
    result = project.run()
    assert result.code != 0
    result.shows("expected at least one case in the catalogue, found none")


def test_nothing_collected_is_not_green(simple):
    """A selection that matches nothing ends with pytest's own exit code 5."""
    assert simple.run("-k", "nothing_like_it").code == 5


SKIPPED = SIMPLE.replace("def test_step", "import pytest\n@pytest.mark.skip(reason='no device')\ndef test_step")


def test_a_run_in_which_no_gate_was_judged_fails_under_ci(project):
    """Gates that were selected and all skipped are counted; under CI such a run is not green."""
    project.write("test_model.py", SKIPPED)
    result = project.run()
    assert result.code == 0
    result.shows("jaxgate: 1 of 1 gates was not judged")
    result = project.run("--perf-strict")
    assert result.code == 1
    result.shows("no gate was judged")
    assert project.run("--perf-strict", "--benchmark-skip").code == 0


def test_two_tests_with_one_case_name_fail(project):
    """Two tests must not share a baseline."""
    project.write("a/test_model.py", SIMPLE)
    project.write("b/test_model.py", SIMPLE)
    result = project.run("--import-mode=importlib")
    result.counts(passed=1, failed=1)
    result.shows("expected one test for the case `model/step`, found two: a/test_model.py::test_step and b/")


def test_a_vanished_metric_is_invalid(recorded):
    """A fact that the baseline has and today's measurement lacks must not pass."""
    path = stored(recorded)
    content = json.loads(path.read_text())
    assert content["facts"]["temp_bytes"] is not None
    # What a backend that stopped telling would look like: patch the observer's reader.
    recorded.write(
        "conftest.py",
        "import pytest\nfrom dataclasses import replace\nimport jaxgate.observe.trace.stages as stages\n"
        "@pytest.fixture(autouse=True)\ndef no_temp(monkeypatch):\n"
        "    real = stages._facts\n"
        "    monkeypatch.setattr(stages, '_facts', lambda *a: replace(real(*a), temp_bytes=None))\n",
    )
    result = recorded.run()
    result.counts(failed=1)
    result.shows("INVALID  model/step", "temp_bytes: the baseline has it, today's measurement does not")


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
