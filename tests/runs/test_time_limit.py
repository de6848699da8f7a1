"""A hard time limit: the rest is not run, and never green."""

import pytest
from support.projects import STOPPED, time_is_over

MODEL = """
import time
import jax.numpy as jnp

def test_first(gate):
    gate(jnp.tanh, jnp.ones(8))

def test_second(gate, request):
    {meanwhile}
    gate(jnp.sin, jnp.ones(8))

def test_third(gate):
    gate(jnp.cos, jnp.ones(8))
"""


@pytest.mark.parametrize("options", [(), ("-n", "1")])
def test_no_test_begins_after_it(project, options):
    """The one that runs may end; the rest is listed as not judged, the reason told, the exit code not 0."""
    project.write("test_model.py", MODEL.format(meanwhile=STOPPED))
    assert project.run("-k", "first", "--perf-update").code == 0
    project.write("conftest.py", time_is_over("second"))
    result = project.run("--perf-time-limit=8", *options)
    found = project.results()
    assert result.code == 2
    assert [case["case"] for case in found["cases"]] == ["model/first", "model/second"]
    assert found["not_judged"] == ["test_model.py::test_third"]
    assert (found["green"], found["gate_exit"]) == (False, 2)
    assert "the time limit of 8 s is over" in found["unfit"][0]
    assert "the time limit of 8 s is over" in (project.path / "perf-artifacts/summary.md").read_text()


WAITS = """
import pytest

class Waits:
    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session):
        assert session.config.pluginmanager.get_plugin("jaxgate-deadline")._over.is_set()

def pytest_sessionstart(session):
    session.config.pluginmanager.register(Waits())
"""


def test_who_waits_at_the_end_takes_none_of_its_time(project):
    """As a rank does for the others, in a hook that is registered last."""
    project.write("test_plain.py", "def test_plain():\n    pass\n")
    project.write("conftest.py", WAITS)
    assert project.run("--perf-time-limit=60").code == 0


def test_a_test_that_hangs_does_not_keep_the_rest(project):
    """What was judged before is written down, then the process ends."""
    project.write("test_model.py", MODEL.format(meanwhile="time.sleep(600)"))
    project.write("conftest.py", time_is_over("second"))
    project.write(
        "run.py",
        "import pytest\nfrom jaxgate.plugin.time_limit import Deadline\nDeadline.__init__.__kwdefaults__['grace_s'] = 1.0\npytest.main(['--perf-update'])\n",
    )
    done = project.alone("run.py", JAXGATE_TIME_LIMIT="10")
    assert done.returncode == 2
    assert "test_model.py::test_second was still running 1 s later; 2 of 3 not judged" in done.stderr
    found = project.results()
    assert [case["case"] for case in found["cases"]] == ["model/first"]
    assert found["not_judged"] == ["test_model.py::test_second", "test_model.py::test_third"]
    assert not found["green"]
    (entry,) = (project.path / "baselines/log").iterdir()  # what was recorded before it is in the log, too
    assert "created `model/first`" in entry.read_text()
