"""``--perf-watch`` end to end: any suite, without a gate and without a change to a test."""

import re

import jax
import pytest
from support.corpora import nightly

LIB = """
import jax
@jax.jit
def shared(x): return x * 2
def made_anew(x): return jax.jit(lambda x: x + 1)(x)
"""
TESTS = """
import unittest
import numpy as np, pytest
from lib import made_anew, shared
X = np.ones(3, np.float32)
def test_first(): shared(X)
def test_second(): shared(X)
@pytest.mark.parametrize("n", [1, 2])
def test_anew(n): [made_anew(X) for _ in range(n)]
class TestOld(unittest.TestCase):
    def test_method(self):
        with self.subTest("a"): shared(np.ones(4, np.float32))
"""


@pytest.fixture
def suite(project):
    """A suite of a library, as projects have them."""
    project.write("lib.py", LIB)
    project.write("test_lib.py", TESTS)
    project.write("conftest.py", "import sys, pathlib\nsys.path.insert(0, str(pathlib.Path(__file__).parent))\n")
    return project


@pytest.fixture
def locked(suite):
    """The same with its lock file."""
    found = suite.run("--perf-watch=update")
    assert found.code == 0
    assert "perf-watch.lock: 3 programs of 5 tests; commit it" in found.text
    return suite


def test_a_first_run_reports_and_judges_nothing(suite):
    found = suite.run("--perf-watch")
    assert found.code == 0
    assert re.search(r"5 tests in \d+\.\d s, \d+% of it making programs: tracing .* s, compiling .* s", found.text)
    assert "there is no perf-watch.lock; pytest --perf-watch=update writes it" in found.text
    mistyped = suite.run("--perf-watch", "test_lib.py")
    assert mistyped.code == pytest.ExitCode.USAGE_ERROR
    assert "found 'test_lib.py'; was a path meant? Write --perf-watch=judge, or put it last" in mistyped.text


def test_a_lock_file_that_is_gone_is_red_under_ci(suite, monkeypatch):
    """A deleted file must not pass; a report needs none, nor one that can be read."""
    monkeypatch.setenv("CI", "true")
    found = suite.run("--perf-watch")
    assert found.code == 1
    assert "REGRESSED  nothing is judged: there is no perf-watch.lock" in found.text
    suite.write("perf-watch.lock", "<<<<<<< HEAD")
    assert suite.run("--perf-watch=report").code == 0
    assert suite.run("--perf-watch").code == pytest.ExitCode.USAGE_ERROR


@pytest.mark.parametrize("arguments", [(), ("-k", "second"), ("test_lib.py::TestOld", "test_lib.py::test_first")])
def test_an_unchanged_suite_is_green(locked, arguments):
    """Whole, in part, and in another order: who is first compiles for the others."""
    found = locked.run(*arguments, "--perf-watch")
    assert found.code == 0
    assert "REGRESSED" not in found.text


def test_a_test_that_is_run_again_counts_once(locked):
    """As plug-ins for flaky tests do it: within one protocol, its phases once more."""
    locked.write(
        "conftest.py",
        "from _pytest.runner import runtestprotocol\n\n"
        "def pytest_runtest_protocol(item, nextitem):\n"
        "    runtestprotocol(item, nextitem=nextitem, log=False)\n"
        "    item._initrequest()\n",
    )
    found = locked.run("--perf-watch")
    assert (found.code, "REGRESSED" in found.text) == (0, False)


def test_workers_are_judged_together(locked):
    """Each of them may pay for what they share; none of them writes the file."""
    found = locked.run("--perf-watch", "-n", "2", "-p", "xdist")
    assert (found.code, "REGRESSED" in found.text) == (0, False)
    assert "5 tests in" in found.text
    refused = locked.run("--perf-watch=update", "-n", "2", "-p", "xdist")
    assert refused.code == pytest.ExitCode.USAGE_ERROR
    assert "leave out -n" in refused.text


def test_a_function_that_is_jitted_anew_is_red(locked):
    """Though each test makes it once; the text names it, its line and why."""
    locked.write(
        "lib.py",
        LIB.replace(
            "@jax.jit\ndef shared(x): return", "def shared(x): return jax.jit(_twice)(x)\ndef _twice(x): return"
        ),
    )
    found = locked.run("--perf-watch")
    assert found.code == 1
    assert "REGRESSED  _twice is compiled which no test compiled before: f32[3]" in found.text
    locked.write(
        "lib.py",
        LIB.replace("return jax.jit(lambda x: x + 1)(x)", "return [jax.jit(lambda x: x + 1)(x) for _ in 'ab']"),
    )
    found = locked.run("--perf-watch")
    assert found.code == 1
    assert "REGRESSED  <lambda> is compiled 6 times for f32[3], 3 before" in found.text
    assert re.search(r"<lambda> at lib.py:5 in test_lib.py::test_anew\[2\]: a new function object", found.text)


@nightly
def test_a_larger_program_is_red_and_a_new_test_is_told(locked):
    """What the new test compiles is added by an update."""
    locked.write("lib.py", LIB.replace("return x * 2", "return jax.lax.map(lambda y: y * 2, x)"))
    found = locked.run("--perf-watch")
    assert found.code == 1
    assert re.search(r"REGRESSED  shared needs more for f32\[3\]: .*temp_bytes", found.text)
    locked.write("lib.py", LIB)
    locked.write(
        "test_new.py", "from lib import shared\nimport numpy as np\ndef test_new(): shared(np.ones(9, np.float32))\n"
    )
    found = locked.run("--perf-watch")
    assert (found.code, "1 test is new" in found.text) == (0, True)
    assert locked.run("test_new.py", "--perf-watch=update").code == 0
    text = (locked.path / "perf-watch.lock").read_text()
    assert "f32[9]" in text
    assert text.count("\ntest\t") == 6


@nightly
def test_a_gate_in_the_suite_is_judged_by_its_baseline_alone(locked):
    locked.write("test_gate.py", "import jax.numpy as jnp\ndef test_g(gate): gate(jnp.sin, jnp.ones(3))\n")
    found = locked.run("--perf-watch")
    assert "NO_BASELINE" in found.text
    assert "is new" not in found.text


@nightly
def test_an_ini_key_watches_each_run_and_never_writes(suite):
    suite.write("pytest.ini", "[pytest]\nperf_watch = report\n")
    assert "5 tests in" in suite.run().text
    suite.write("pytest.ini", "[pytest]\nperf_watch = update\n")
    refused = suite.run()
    assert refused.code == pytest.ExitCode.USAGE_ERROR
    assert "expected judge or report, found update" in refused.text


@nightly
def test_without_jit_it_says_so(suite):
    jax.config.update("jax_disable_jit", True)
    try:
        found = suite.run("--perf-watch")
    finally:
        jax.config.update("jax_disable_jit", False)
    assert "jit is switched off" in found.text


@nightly
def test_gates_are_written_for_what_the_tests_compile(suite):
    """They run as they stand; a file that is there is not replaced, and workers write none."""
    found = suite.run("--perf-watch=gates")
    assert found.code == 0
    assert (
        "perf/test_watched.py: 1 gate of the largest programs; not gated: <lambda> stands within a function"
        in found.text
    )
    assert suite.run("perf", "--perf-update").code == 0
    found = suite.run("perf")
    assert (found.code, "1 case: 1 SAME" in found.text) == (0, True)
    again = suite.run("--perf-watch=gates")
    assert again.code == pytest.ExitCode.USAGE_ERROR
    assert "expected no perf/test_watched.py" in again.text
