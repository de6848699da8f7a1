"""pytest-xdist: the same facts, verdicts and reports as one process gives, and nothing lost with a worker."""

import json
from unittest.mock import Mock
from xml.etree import ElementTree as ET

import pytest
from support.corpora import nightly
from support.git import commit
from support.paths import REPOSITORY
from support.projects import TWO

MODEL = """
import os, signal
import jax, jax.numpy as jnp, pytest

def step(x):
    return jnp.tanh(x)

@pytest.mark.parametrize("size", [8, 16, 32, 64, 128, 256])
def test_step(gate, size):
    if str(size) == os.environ.get("DIES"):
        os.kill(os.getpid(), signal.SIGKILL)
    gate(step, jnp.ones(size))
"""
MORE = ("    return jnp.tanh(x)", "    return jnp.tanh(x) if x.size != 32 else (jnp.tanh(x), x * 2)")
SLOW = ("    return jnp.tanh(x)", "    return jnp.tanh(x) if x.size != 64 else jnp.sin(x)")
CONFTEST = f"""
import sys
sys.path.append({str(REPOSITORY / "tests")!r})
import pytest
from support.fakes import duel, fix_clocks, have_short_duels, judge_no_phases

def pytest_configure(config):
"""
NO_PHASES = (
    CONFTEST
    + """
    judge_no_phases(config)  # a busy machine is not what these tests are about
    have_short_duels(config)
"""
)
SLOWER = CONFTEST + '    fix_clocks(config).finds["baseline"] = duel(1.3)\n'
DIES_WHILE_IT_WAITS = """
import os, signal

@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtestloop(session):
    result = yield
    from jaxgate.plugin.stash import SESSION
    gates = session.config.stash.get(SESSION, None)
    if hasattr(session.config, "workerinput") and gates is not None and gates.result.provisional:
        os.kill(os.getpid(), signal.SIGKILL)
    return result
"""
FACTS = ("case", "test", "hardware", "status", "fails", "findings", "origin")


@pytest.fixture
def written(project, monkeypatch):
    """A module with six cases; nothing of GitHub's."""
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "DIES"):
        monkeypatch.delenv(name, raising=False)
    project.write("test_model.py", MODEL)
    project.write("conftest.py", NO_PHASES)
    return project


@pytest.fixture
def recorded(written):
    """The same, recorded by one process."""
    written.record()
    return written


def facts(project, *, timed=True):
    """What no clock had a say in; of a timed run, causes have: a slow-down has its own."""
    found = project.results()
    cases = [{key: case[key] for key in FACTS + (() if timed else ("causes",))} for case in found["cases"]]
    for case in cases:
        case["findings"] = [finding for finding in case["findings"] if finding["kind"] not in ("time", "phase")]
    return {key: found[key] for key in ("green", "exit_status", "not_judged", "problems")}, cases


@pytest.mark.parametrize("options", [(), pytest.param(("--benchmark-disable",), marks=nightly)])
def test_it_is_as_one_process_gives_it(recorded, monkeypatch, tmp_path, options):
    """Facts, verdicts, order, exit status; with and without the clock, with one case red.

    The lock of the machine is at work: timed sections exclude each other, and nothing waits for itself.
    """
    monkeypatch.delenv("JAXGATE_MACHINE_HELD")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    recorded.edit("test_model.py", *MORE)
    alone = recorded.run(*options)
    one = facts(recorded, timed=not options)
    parallel = recorded.run("-n", "2", *options)
    assert (alone.code, parallel.code) == (1, 1)
    assert facts(recorded, timed=not options) == one
    assert [case["status"] for case in one[1]].count("REGRESSED") == 1
    assert options or list(tmp_path.glob("*/timing.db"))
    parallel.shows("REGRESSED  model/step-32", "6 cases: 5 SAME, 1 REGRESSED")
    lines = [line.split()[:2] for line in alone.text.splitlines() if line.startswith(("SAME  ", "REGRESSED  "))]
    assert lines == [
        line.split()[:2] for line in parallel.text.splitlines() if line.startswith(("SAME  ", "REGRESSED  "))
    ]


@nightly
def test_the_rows_of_all_workers_are_in_one_table_and_one_file(recorded):
    """With the times and what is beside them, and without the warning that nothing was measured.

    A plain benchmark beside them stays switched off: those would disturb each other.
    """
    recorded.write("test_plain.py", "def test_plain(benchmark):\n    benchmark(sum, [1])\n")
    result = recorded.run("-n", "2", "--benchmark-json=rows.json")
    result.counts(passed=7)
    rows = json.loads((recorded.path / "rows.json").read_text())["benchmarks"]
    assert sorted(row["name"] for row in rows) == sorted(f"test_step[{2**power}]" for power in range(3, 9))
    assert all(row["extra_info"]["verdict"] == "SAME" for row in rows)
    assert all(3 <= row["stats"]["rounds"] <= 20 for row in rows)
    result.shows("benchmark 'model': 6 tests")
    assert "automatically disabled" not in result.text
    assert result.text.count("Wrote benchmark data") == 1


@nightly
def test_a_recording_is_one_recording(written):
    """Of a clean checkout, with one line in the log; the next run finds all of it."""
    commit(written.write(".gitignore", "__pycache__/\nperf-artifacts/\n").path)
    assert written.run("-n", "2", "--perf-update", "--perf-why=first").code == 0
    (entry,) = (written.path / "baselines/log").iterdir()
    assert entry.read_text().count("first") == 1
    stored = [json.loads(content) for content in written.baselines().values()]
    assert len(stored) == 6
    assert not any(baseline["provenance"]["dirty"] for baseline in stored)
    written.run("--perf-strict").shows("6 cases: 6 SAME")


@pytest.mark.parametrize("options", [pytest.param((), marks=nightly), ("--max-worker-restart=0",)])
def test_a_killed_worker_loses_the_case_it_was_running(recorded, monkeypatch, options):
    """That one is INVALID and red; if no worker may follow, the rest is not judged, and never green."""
    monkeypatch.setenv("DIES", "16")
    result = recorded.run("-n", "1", *options)
    found = recorded.results()
    statuses = {case["test"]: case["status"] for case in found["cases"]}
    assert statuses["test_model.py::test_step[16]"] == "INVALID"
    assert result.code != 0
    assert not found["green"]
    if options:
        assert "test_model.py::test_step[256]" in found["not_judged"]
    else:
        assert list(statuses.values()).count("SAME") == 5
        result.shows("worker gw0 died while it ran")


@nightly
def test_a_slow_down_is_confirmed_by_its_worker(written, monkeypatch):
    """By its fresh processes, after the last test, as in one process; under CI pytest's summary has its first line alone."""
    recorded = written.write("conftest.py", SLOWER).record()
    monkeypatch.setenv("CI", "true")
    recorded.edit("test_model.py", *SLOW)
    result = recorded.run("-n", "1", "-k", "64 or [8]")
    result.counts(failed=1, passed=1)
    [slow] = [case for case in recorded.results()["cases"] if case["case"] == "model/step-64"]
    assert (slow["status"], slow["time"]["confirmed"]) == ("SLOWER", [1.3, 1.3])
    assert result.text.count("next      reproduce: pytest") == 1


@nightly
def test_what_waits_in_a_worker_that_dies_is_red(recorded):
    """Its slow-down was seen and never confirmed: INVALID, and not forgotten."""
    recorded.edit("test_model.py", *SLOW)
    recorded.write("conftest.py", SLOWER + DIES_WHILE_IT_WAITS)
    result = recorded.run("-n", "1", "-k", "64")
    assert result.code == 1
    [case] = recorded.results()["cases"]
    assert (case["case"], case["status"]) == ("model/step-64", "INVALID")
    result.shows("died before it could be confirmed")


@nightly
def test_one_case_of_two_tests_is_found_across_workers(project):
    """They would share one baseline, though no process sees both."""
    lines = [f"def test_{n}(gate):\n    gate(jnp.tanh, jnp.ones(8), name='{n % 3}')\n" for n in range(4)]
    project.write("test_model.py", "import jax.numpy as jnp\n" + "\n".join(lines))
    result = project.run("-n", "2")
    assert result.code == 1
    result.shows("expected one test for the case `model/0`, found two")


@pytest.mark.parametrize("mode", [pytest.param("each", marks=nightly), "loadgroup"])
def test_ways_to_distribute_that_mix_up_cases_are_refused(recorded, mode):
    result = recorded.run("-n", "1", "--dist", mode)
    assert result.code == 1
    result.shows(f"--dist {mode} ", "run again with --dist load")


@nightly
def test_another_revision_is_recorded_once(recorded):
    commit(recorded.write(".gitignore", "__pycache__/\nperf-artifacts/\n").path)
    recorded.edit("test_model.py", *MORE)
    recorded.records_here()
    record = Mock(wraps=recorded.instruments["record_other"])
    recorded.instruments["record_other"] = record
    result = recorded.run("-n", "2", "--perf-against", "HEAD", "-k", "32 or [8]")
    assert record.call_count == 1
    result.counts(failed=1, passed=1)
    result.shows("Compared with ", "REGRESSED  model/step-32")


@nightly
def test_bundles_of_all_workers_are_kept_and_counted_together(recorded, monkeypatch, tmp_path):
    """The folder is emptied once; of three red cases one is profiled, as many as may be: they count under the machine's lock."""
    monkeypatch.delenv("JAXGATE_MACHINE_HELD")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("JAXGATE_PROFILE", "failing")
    recorded.edit("test_model.py", "    return jnp.tanh(x)", "    return jnp.tanh(x), x * 2, x * 3, x * 4")
    recorded.write("conftest.py", "from jaxgate.ext.profile import evidence\nevidence.MAX_PROFILED = 1\n")
    result = recorded.run("-n", "2", "-k", "[8] or 16 or 32")
    assert len(list(recorded.path.glob("perf-artifacts/model/*/report.md"))) == 3
    assert len(list(recorded.path.glob("perf-artifacts/model/*/now/plugins/profile/*"))) == 1
    result.shows("3 bundles in perf-artifacts", "NOT PROFILED, 2 of them")


def test_the_controller_says_what_its_workers_do_not_know(project):
    """Which baseline a new case may have, and each verdict once in junit."""
    project.write("test_model.py", TWO).record()
    project.edit("test_model.py", "x * 2", "x @ x * 2")
    project.edit("test_model.py", "def test_second", "def test_renamed")
    project.run("-n", "1", "--perf-budget=0", "--junit-xml=junit.xml").shows("RENAMED? model/renamed")
    found = {}
    for case in ET.parse(project.path / "junit.xml").iter("testcase"):
        pairs = [(each.get("name"), each.get("value")) for each in case.iter("property")]
        found[case.get("name")] = dict(pairs)
        assert len(pairs) == len(found[case.get("name")])
    assert {name: one["jaxgate.status"] for name, one in found.items()} == {
        "test_first": "REGRESSED",
        "test_renamed": "NO_BASELINE",
    }


def test_a_worker_that_cannot_gate_says_why_for_each_test(project):
    """A device is taken before it can be divided: a line for each test, and no internal error of pytest-xdist."""
    project.write("conftest.py", "import jax; jax.devices()")
    project.write("pytest.ini", "[pytest]\nperf_cpu_devices = 99")
    project.write("test_model.py", "import jax.numpy as jnp\ndef test_step(gate):\n    gate(jnp.tanh, jnp.ones(8))\n")
    result = project.run("-n", "1")
    assert result.code == 1
    result.shows("expected to divide the CPU into 99 devices", "1 of 1 gates was not judged")
    assert "INTERNALERROR" not in result.text


def test_without_a_gate_nothing_is_touched(project):
    """Plain tests under pytest-xdist know nothing of us."""
    project.write("test_plain.py", "def test_plain():\n    pass\n")
    (project.path / "perf-artifacts").mkdir()
    (project.path / "perf-artifacts/mine.txt").write_text("")
    result = project.run("-n", "1")
    assert (result.code, "jaxgate on" in result.text) == (0, False)
    assert (project.path / "perf-artifacts/mine.txt").exists()


OPTION = """
def pytest_addoption(parser):
    parser.addoption("--width", type=int, default=8)
"""
WIDE = """
import jax.numpy as jnp
from jaxgate.plugin.stash import SETTINGS
def test_step(gate, request):
    options = request.config.stash[SETTINGS].options
    assert (request.config.getoption("width"), options) == (16, ("--width", "16"))
    gate(lambda x: jnp.tanh(x @ x), jnp.ones((16, 16)))
"""


@nightly
def test_workers_know_the_projects_own_options(project):
    """Processes that a worker starts get them on a command line; pytest-xdist hands them to a worker in another way."""
    project.write("conftest.py", OPTION).write("test_model.py", WIDE)
    project.run("-n", "1", "--width", "16", "--perf-update").counts(passed=1)
