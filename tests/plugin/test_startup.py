"""Starting costs little: a run without gates loads two rooms of jaxgate; options, --help and collection initialise no JAX."""

from __future__ import annotations

import os
import subprocess
import sys
from textwrap import dedent

import pytest
from support.paths import REPOSITORY


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a fresh process at the root of the repository."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=REPOSITORY,
        env=kept | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_collecting_initialises_no_backend():
    """``pytest perf --collect-only`` works with a platform that does not exist: no backend is looked for."""
    arguments = ["perf", "--collect-only", "-q", "-p", "no:cacheprovider"]
    done = run(f"import sys, pytest; sys.exit(pytest.main({arguments}))", JAX_PLATFORMS="none_such")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "perf/test_scan.py::test_scan[rnn-forward-over-32-steps-scan-vs-loop]" in done.stdout


@pytest.mark.parametrize(
    "module",
    [
        "jaxgate",
        "jaxgate.model.workload",
        "jaxgate.judge.verdict",
        "jaxgate.report.text",
        "jaxgate.plugin",
        "jaxgate.cli.main",
    ],
)
def test_light_modules_do_not_import_jax(module):
    """What workloads, judges and reports need comes without JAX, and without what makes pages."""
    done = run(f"import sys, {module}; sys.exit(not {{'jax', 'jinja2'}}.isdisjoint(sys.modules))")
    assert done.returncode == 0, done.stderr


SMALL = {"jaxgate", "jaxgate.plugin", "jaxgate.settings"}
SMALL |= {f"jaxgate.plugin.options.{name}" for name in ("command_line", "kinds", "option", "settings", "table")}
SMALL |= {f"jaxgate.plugin.xdist.{name}" for name in ("devices", "nodes")}
SMALL |= {f"jaxgate.plugin.{name}" for name in ("benchmark_rows", "gating", "hooks", "options")}
SMALL |= {f"jaxgate.plugin.{name}" for name in ("stash", "time_limit", "xdist")}
SMALL |= {"jaxgate.observe", "jaxgate.observe.machine", "jaxgate.observe.machine.process"}
"""What a run without gates may load: every project pays for it whose environment has jaxgate."""
HEAVY = {"filelock", "jax", "jinja2", "numpy", "pydantic", "scipy"}
TELLS = """
    import os, pathlib, sys

    def pytest_unconfigure():
        names = [name for name in sys.modules if name.split(".")[0] in {HEAVY} or name.startswith("jaxgate")]
        pathlib.Path(os.environ.get("PYTEST_XDIST_WORKER", "main") + ".loaded").write_text(" ".join(names))
"""


def loaded(project, *arguments, **environ):
    """What each process of a run has loaded at its end, of jaxgate and of what is slow to import, by its name."""
    project.write("conftest.py", dedent(TELLS).replace("{HEAVY}", str(HEAVY)))
    done = project.alone("-m", "pytest", "-p", "no:cacheprovider", *arguments, **environ)
    assert done.returncode == 0, done.stdout + done.stderr
    return {file.stem: set(file.read_text().split()) for file in project.path.glob("*.loaded")}


@pytest.mark.parametrize(
    ("arguments", "processes"),
    [
        ([], {"main"}),
        (["-n1"], {"main", "gw0"}),
        (["--fixtures"], {"main"}),
        (["--help"], {"main"}),
        (["--collect-only"], {"main"}),
        (["--perf-time-limit=60", "--perf-budget=1"], {"main"}),
    ],
    ids=["tests", "workers", "fixtures", "help", "collection", "options"],
)
def test_a_run_without_gates_loads_little(project, arguments, processes):
    """Options and hooks, none of the rooms that measure, judge, keep and report; in each process of the run."""
    project.write("test_plain.py", "def test_it(tmp_path):\n    pass\n")
    found = loaded(project, *arguments, JAXGATE_HISTORY="none")
    assert found == dict.fromkeys(processes, SMALL)


@pytest.mark.parametrize(
    ("arguments", "test"),
    [
        (["--collect-only"], "def test_gated(gate):\n    gate(print)\n"),
        (["-k", "plain"], "def test_gated(gate):\n    gate(print)\n\ndef test_plain():\n    pass\n"),
        (["-n1", "--benchmark-skip"], "def test_gated(gate):\n    gate(print)\n"),
        (["--perf-plan", "--collect-only"], "def test_plain():\n    pass\n"),
    ],
    ids=["a gate", "one that is not selected", "a gate in a worker", "a kind of run"],
)
def test_a_gate_or_a_kind_of_run_loads_the_rest(project, arguments, test):
    """Collected here or in a worker, or asked for by an option; JAX comes when a gate runs."""
    project.write("test_it.py", test)
    for names in loaded(project, *arguments).values():
        assert {"jaxgate.plugin.gating_run", "jaxgate.engine.run.ending"} <= names
        assert names.isdisjoint({"jax", "numpy", "pydantic"})


def test_the_plugin_keeps_its_place_among_the_hooks_of_others(project):
    """A hook of a conftest sees the report as the gate left it, though what gates need is loaded later than the conftest."""
    project.write(
        "conftest.py",
        "import pytest\n"
        "@pytest.hookimpl(wrapper=True)\n"
        "def pytest_runtest_makereport(item, call):\n"
        "    report = yield\n"
        "    if call.when == 'call':\n"
        "        print('seen:', report.outcome)\n"
        "    return report\n",
    )
    project.write("test_gated.py", "def test_gated(gate):\n    pass\n")
    result = project.run("-s")
    result.counts(failed=1)
    result.shows("seen: failed")


def test_tests_that_gate_are_marked(project):
    """They can be left out, or be all that is run, with strict markers too."""
    project.write("pytest.ini", "[pytest]\nstrict_markers = true\n")
    project.write("test_model.py", "def test_gated(gate):\n    pass\n\ndef test_plain():\n    pass\n")
    project.run("--collect-only", "-q", "-m", "perf").shows("test_gated", "1/2 tests collected (1 deselected)")
    project.run("--collect-only", "-q", "-m", "not perf").shows("test_plain", "1/2 tests collected (1 deselected)")
    project.run("--markers").shows("@pytest.mark.perf: takes the fixture `gate` of jaxgate")


def test_the_fixture_has_a_public_type():
    import jaxgate
    from jaxgate.plugin.gate import Gate

    assert jaxgate.Gate is Gate


def test_completion_offers_what_is_public():
    """All of it, and nothing that the file needs itself."""
    import jaxgate

    assert [name for name in dir(jaxgate) if not name.startswith("__")] == sorted(jaxgate.__all__)
