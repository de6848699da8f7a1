"""Fixtures of other people: a `gate` of the project's own is left alone, one of ours is known however it is asked for."""

import pytest
from support.corpora import nightly
from support.projects import model

OWN = """
import pytest

@pytest.fixture{how}
def gate(request):
    {body}
"""
LOGIC = "def test_and(gate):\n    assert gate == 'AND'\n\ndef test_other():\n    pass\n"
IN_A_CLASS = """
import pytest

class TestLogic:
    @pytest.fixture
    def gate(self):
        return "AND"

    def test_and(self, gate):
        assert gate == "AND"
"""
AS_A_PARAMETER = """
import pytest

@pytest.mark.parametrize("gate", ["AND"])
def test_and(gate):
    assert gate == "AND"

@pytest.mark.parametrize("gate", ["AND"], ids=lambda gate: gate.lower())
class TestGate:
    def test_and(self, gate):
        assert gate == "AND"
"""
BY_A_HOOK = "def pytest_generate_tests(metafunc):\n    metafunc.parametrize('gate', ['AND'])\n"
A_PLUGIN = "pytest_plugins = ['logic']\n"
FIXTURE = OWN.format(how="", body="return 'AND'")


FOLDERS = {
    "conftest": {"conftest.py": FIXTURE, "test_conftest.py": LOGIC},
    "module": {"test_module.py": FIXTURE + LOGIC},
    "class": {"test_class.py": IN_A_CLASS},
    "params": {"conftest.py": OWN.format(how="(params=['AND'])", body="return request.param"), "test_params.py": LOGIC},
    "autouse": {"conftest.py": OWN.format(how="(autouse=True)", body="yield 'AND'"), "test_autouse.py": LOGIC},
    "session": {"conftest.py": OWN.format(how="(scope='session')", body="return 'AND'"), "test_session.py": LOGIC},
    "parameter": {"test_parameter.py": AS_A_PARAMETER},
    "hook": {"conftest.py": BY_A_HOOK, "test_hook.py": "def test_and(gate):\n    assert gate == 'AND'\n"},
    "none": {
        "conftest.py": OWN.format(how="", body="return None"),
        "test_none.py": "def test_none(gate):\n    assert not gate\n",
    },
}
PROJECTS = {
    "folders": {f"{folder}/{name}": text for folder, files in FOLDERS.items() for name, text in files.items()},
    "plugin": {"conftest.py": A_PLUGIN, "logic.py": FIXTURE, "test_logic.py": LOGIC},
}


@pytest.mark.parametrize("files", PROJECTS)
@pytest.mark.parametrize(
    "arguments", [(), ("--perf-strict",), pytest.param(("-n1",), marks=nightly)], ids=["plain", "strict", "workers"]
)
def test_a_gate_of_the_projects_own_is_none_of_ours(project, files, arguments):
    """Its tests run as if jaxgate were not there: nothing is gated, marked or told."""
    for name, text in PROJECTS[files].items():
        project.write(name, text)
    result = project.run("-p", "no:benchmark", *arguments)
    assert result.code == 0, result.text
    assert "jaxgate:" not in result.text
    result.counts(passed=2 if files == "plugin" else 15)
    assert project.run("-m", "perf", "--collect-only").code == 5


DYNAMIC = model(step="x * 2").replace(
    "def test_step(gate):\n", "def test_step(request):\n    gate = request.getfixturevalue('gate')\n"
)
NAMED = ("gate(step, jnp.ones(8))", "gate(step, jnp.ones(8), name='one')")
UNITTEST = """
import unittest, pytest, jax.numpy as jnp

def step(x):
    return x * 2

class TestStep(unittest.TestCase):
    @pytest.fixture(autouse=True)
    def take(self, request):
        self.gate = request.getfixturevalue("gate")

    def test_step(self):
        self.gate(step, jnp.ones(8), name="one")
"""
IN_FRONT = """
import pytest

@pytest.fixture
def gate(gate):
    return lambda function, *args: gate(function, *args, name="one")
"""
HELPER = "import pytest\n\n@pytest.fixture\ndef gated(request):\n    return request.getfixturevalue('gate')\n"
WAYS = {
    "while it runs": {"test_model.py": DYNAMIC.replace(*NAMED)},
    "by another fixture": {
        "conftest.py": HELPER,
        "test_model.py": model(step="x * 2")
        .replace("(gate)", "(gated)")
        .replace(*NAMED)
        .replace("    gate(", "    gated("),
    },
    "unittest": {"test_model.py": UNITTEST},
    "in front of ours": {"conftest.py": IN_FRONT, "test_model.py": model(step="x * 2")},
}


@pytest.mark.parametrize(
    ("way", "arguments"), [*((way, ()) for way in WAYS), pytest.param("while it runs", ("-n1",), marks=nightly)]
)
def test_a_named_gate_is_red_however_it_was_asked_for(project, way, arguments):
    """It is sampled and has its row; what it finds is in pytest's exit code, and not in the last lines alone."""
    for name, text in WAYS[way].items():
        project.write(name, text)
    assert project.record().run(*arguments).code == 0
    project.edit("test_model.py", "x * 2", "jnp.concatenate([x] * 9) @ jnp.ones((72, 9))")
    result = project.run("--perf-profile=never", *arguments)
    assert result.code == 1
    result.counts(failed=1)
    result.shows("REGRESSED  model/one  on", "1 case: 1 REGRESSED")


def test_a_test_that_asks_and_never_gates_fails(project):
    project.write("test_model.py", "def test_it(request):\n    request.getfixturevalue('gate')\n")
    result = project.run()
    result.counts(failed=1)
    result.shows("test_model.py::test_it passed without calling gate(...): nothing was measured")


def test_a_test_that_runs_again_has_a_gate_of_its_own(project):
    """Plugins that run a test again keep its item; the gate of the first time is forgotten with what it found."""
    project.write(
        "conftest.py",
        "from _pytest.runner import runtestprotocol\n"
        "def pytest_runtest_protocol(item, nextitem):\n"
        "    runtestprotocol(item, nextitem=nextitem, log=False)\n"
        "    item._initrequest()\n"
        "    runtestprotocol(item, nextitem=nextitem)\n"
        "    return True\n",
    )
    first = "    times.append(1)\n    if len(times) == 1:\n        gate = request.getfixturevalue('gate')\n"
    text = DYNAMIC.replace(*NAMED).replace("    gate = request.getfixturevalue('gate')\n", first)
    text = text.replace("    gate(step", "        gate(step").replace("name='one'", "name='one', max_output_bytes=8")
    result = project.write("test_model.py", "times = []\n" + text).run()
    assert result.code == 0, result.text
    result.counts(passed=1)


WITHOUT = "-p", "no:benchmark"


@pytest.mark.parametrize("text", [model(step="x * 2"), DYNAMIC], ids=["gate", "while it runs"])
@pytest.mark.parametrize("arguments", [(), ("-n1",)], ids=["one process", "workers"])
def test_without_pytest_benchmark_one_line_says_what_to_do(project, text, arguments):
    """No traceback and no list of fixtures; what does not gate runs, also where unknown markers are an error."""
    project.write("test_model.py", text + "\ndef test_plain():\n    pass\n")
    result = project.run(*WITHOUT, "--strict-markers", *arguments)
    assert result.code == 1
    line = "not judged: expected the plugin pytest-benchmark, whose fixture `benchmark` a gate fills, found it switched off"
    found = [one for one in result.text.splitlines() if line in one]
    assert found[0].endswith("leave out `-p no:benchmark`, or the gates: -m 'not perf'")
    assert "fixture 'benchmark' not found" not in result.text
    assert "Traceback" not in result.text
    result.shows("1 passed")


def test_a_benchmark_of_another_plugin_is_not_taken_for_that(project):
    """A project that has a fixture `benchmark` in its place is told the same."""
    project.write("conftest.py", "import pytest\n\n@pytest.fixture\ndef benchmark():\n    return print\n")
    result = project.write("test_model.py", model(step="x * 2")).run(*WITHOUT)
    result.counts(errors=1)
    result.shows("expected the plugin pytest-benchmark")
