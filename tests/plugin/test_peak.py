"""``--perf-peak`` through the real pytest: fresh processes measure, the run says what they found and fails closed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from jaxgate.cli import main as cli
from jaxgate.keep import read_record, write_record
from jaxgate.model import PeakRecord
from jaxgate.observe.memory import allocator
from jaxgate.plugin.modes import peak
from jaxgate.processes.pytest_child import child_environment
from jaxgate.report import PeakOutcome
from jaxgate.settings.variables import PEAK_INTO

MODEL = """
import jax, jax.numpy as jnp, pytest

def wave(x):
    return jnp.exp(-x)

def test_wave(gate):
    gate(wave, jnp.ones((64, 64)))
    assert False, "nothing behind a gate is run"

def test_broken(gate):
    gate(lambda x: x + undefined, jnp.ones(8))

@pytest.mark.skip(reason="needs eight devices")
def test_wide(gate):
    gate(wave, jnp.ones(8))

def test_plain():
    assert False, "no gate, no process"
"""
COUNTS = """
import jaxgate.observe.memory.allocator as allocator

looks = []

def statistics(device):
    looks.append(device)
    peak = 50_000 if len(looks) > 2 else 20_000
    return {"bytes_in_use": 16_384, "peak_bytes_in_use": peak, "bytes_limit": 10**9, "num_allocs": len(looks)}

allocator.statistics_of = statistics
"""


def test_figures_are_shown_and_a_case_that_fails_is_red(project, monkeypatch):
    """For real, with an allocator that counts: the row, the failure with its stage, the skip that is none of both."""
    monkeypatch.setenv("CI", "true")
    monkeypatch.setattr(
        allocator, "statistics_of", allocator.statistics_of
    )  # the conftest is read in this process, too
    project.write("test_model.py", MODEL)
    project.write("conftest.py", COUNTS)
    result = project.run("--perf-peak")
    assert result.code == 1
    result.shows(
        "MEASURED  model/wave",
        "50 kB on cpu:0 · 1.53 × the compiler's 32.8 kB · its own 33.6 kB · 3 allocations in 3 calls · limit 1 GB · "
        "fragmentation unknown · nothing to preallocate on cpu",
        "FAILED    model/broken",
        "tracing the subject: NameError",
        "SKIPPED   test_model.py::test_wide",
        "needs eight devices",
        "3 cases: 1 MEASURED, 1 SKIPPED, 1 FAILED",
    )
    result = project.run("--perf-peak", "-k", "wave or wide")
    assert result.code == 0
    result.shows("2 cases: 1 MEASURED, 1 SKIPPED")


SEVERAL = """
import jax.numpy as jnp

def test_both(gate):
    gate(jnp.sin, jnp.ones(8), name="first")
    gate(jnp.cos, jnp.ones(8), name="second")
    gate(jnp.tan, jnp.ones(8), name="third")
"""


def test_each_gate_of_a_test_has_a_process_of_its_own(project, monkeypatch):
    """An allocator keeps one peak: the figures of the first gate would stand for the second one too."""
    monkeypatch.setattr(allocator, "statistics_of", allocator.statistics_of)
    project.write("test_model.py", SEVERAL)
    project.write("conftest.py", COUNTS)
    result = project.run("--perf-peak")
    assert [line.split()[1] for line in result.text.splitlines() if line.startswith("MEASURED")] == [
        *("model/first", "model/second", "model/third")
    ]
    assert (result.code, result.text.count("50 kB on cpu:0")) == (0, 3)


def test_a_process_with_the_variable_is_never_green(project, monkeypatch, tmp_path):
    """Who set it by hand sees red: what passes looks judged. The file holds the case, the ini key starts nothing."""
    into = tmp_path / "peak.json"
    monkeypatch.setenv(PEAK_INTO, str(into))
    project.write("pyproject.toml", '[tool.pytest]\naddopts = ["--perf-peak"]\n')
    project.write("test_model.py", MODEL)
    result = project.run("-k", "wave")
    assert result.code == 1
    result.counts(failed=1)
    result.shows("model/wave: JAXGATE_PEAK_INTO is set: its peak was measured, nothing was judged")
    assert read_record(into, PeakRecord).case == "model/wave"


def run_with(monkeypatch, *, stdout="", stderr="", code=1, content=None, text=None):
    """What is made of a fresh process that ends like this."""
    asked = []

    def ended(command, *, cwd, env, **how):
        asked.append((command, cwd, env))
        if content is not None:
            write_record(Path(env[PEAK_INTO]), content)
        if text is not None:
            Path(env[PEAK_INTO]).write_text(text)
        return subprocess.CompletedProcess(command, code, stdout, stderr)

    monkeypatch.setattr(subprocess, "run", ended)
    outcome, record = peak.measure_in_fresh_process(
        Path("project"),
        "test_model.py::test_wave",
        child_environment(SimpleNamespace(started_with=os.environ, options=())),
    )
    return outcome, record, asked


def test_a_fresh_process_is_told_the_test_and_the_file_and_no_more(monkeypatch):
    """Variables of this run of jaxgate do not reach it; those of XLA do."""
    monkeypatch.setenv("JAXGATE_STRICT", "1")
    monkeypatch.delenv("JAXGATE_MACHINE_HELD")
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    kept = PeakRecord(case="model/wave", why_not="none")
    outcome, record, [(command, cwd, env)] = run_with(monkeypatch, content=kept)
    assert (outcome, record) == (PeakOutcome.UNAVAILABLE, kept)
    expected = ["test_model.py::test_wave", "-q", "-rfEs", "--color=no", "-p", "no:cacheprovider", "--no-perf-strict"]
    assert command == [sys.executable, "-m", "pytest", *expected]
    assert cwd == Path("project")
    assert [name for name in env if name.startswith("JAXGATE_")] == [PEAK_INTO]
    assert env["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"


@pytest.mark.parametrize(
    ("ended", "outcome", "why"),
    [
        ({"text": "{"}, PeakOutcome.FAILED, "its figures cannot be read: "),
        ({"text": '{"case": "a/b", "more": 1}'}, PeakOutcome.FAILED, "its figures cannot be read: "),
        (
            {"stdout": "x\nFAILED test_model.py::test_wave - TypeError: no\n1 failed in 1s"},
            PeakOutcome.FAILED,
            "no gate was reached: test_model.py::test_wave - TypeError: no",
        ),
        (
            {"stderr": "Killed", "code": -9},
            PeakOutcome.FAILED,
            "no gate was reached: the process ended with -9: Killed",
        ),
        ({"code": -11}, PeakOutcome.FAILED, "no gate was reached: the process ended with -11: it said nothing"),
        (
            {"stdout": "1 passed", "code": 0},
            PeakOutcome.FAILED,
            "no gate was reached: the process ended with 0: 1 passed",
        ),
        (
            {"stdout": "SKIPPED [1] test_model.py:9: later\n1 skipped", "code": 0},
            PeakOutcome.SKIPPED,
            "[1] test_model.py:9: later",
        ),
        (
            {"stdout": "SKIPPED [1] a.py:9: later\nERROR a.py::test - RuntimeError: worse\n"},
            PeakOutcome.FAILED,
            "no gate was reached: a.py::test - RuntimeError: worse",
        ),
    ],
    ids=["half a file", "another file", "failed", "killed", "crashed", "no gate", "skipped", "skipped and failed"],
)
def test_a_process_that_left_no_figures_says_why(monkeypatch, ended, outcome, why):
    """Each way to end without them; only a skip is not red."""
    found, record, _ = run_with(monkeypatch, **ended)
    assert found is outcome
    assert record.why_not.startswith(why)
    assert record.case == "test_model.py::test_wave"


@pytest.mark.parametrize(("outcomes", "code"), [("M", 0), ("MS", 0), ("S", 1), ("MU", 1), ("MF", 1)])
def test_what_is_green(outcomes, code):
    """At least one case measured, and none without figures."""
    kinds = {outcome.value[0]: outcome for outcome in PeakOutcome}
    run = peak.Peaks()
    run._rows = [(kinds[letter], PeakRecord(case=f"a/{letter}", why_not="so")) for letter in outcomes]
    assert run.exit_status(0) == code


def test_nothing_that_gates_is_a_usage_error(project):
    """As for stored times; a bare collection starts nothing."""
    project.write("test_plain.py", "def test_plain():\n    pass\n")
    result = project.run("--perf-peak")
    assert result.code == 4
    result.shows("--perf-peak: none of the selected tests gates")
    assert project.run("--perf-peak", "--collect-only").code == 0


def test_a_file_that_cannot_be_collected_is_red(project):
    """As in any run of pytest."""
    project.write("test_model.py", "import no_such_module\n")
    assert project.run("--perf-peak").code == 2


def test_the_process_that_waits_takes_no_device(project):
    """It does not even import JAX: a TPU belongs to one process, and a GPU would be preallocated twice."""
    project.write("test_wide.py", "import pytest\n\n@pytest.mark.skip\ndef test_wide(gate):\n    pass\n")
    code = (
        "import sys, pytest; code = pytest.main(['--perf-peak', '-p', 'no:cacheprovider'])\n"
        "print('ended:', int(code), 'jax' in sys.modules)\n"
    )
    done = project.alone("-c", code)
    assert "1 case: 1 SKIPPED" in done.stdout
    assert done.stdout.splitlines()[-1] == "ended: 1 False", done.stdout + done.stderr


def test_the_command_becomes_pytest(monkeypatch, tmp_path):
    """``jaxgate peak``: the suite by default, all arguments on to pytest."""
    seen = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "execv", lambda path, arguments: seen.append((path, arguments[3:])))
    (tmp_path / "perf").mkdir()
    cli.main(["peak", "-k", "scan", "-x"])
    cli.main(["peak", "perf"])
    assert seen == [
        (sys.executable, ["perf", "--perf-peak", "-k", "scan", "-x"]),
        (sys.executable, ["--perf-peak", "perf"]),
    ]
