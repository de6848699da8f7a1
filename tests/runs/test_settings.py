"""What a device program does not show: flags, settings and state of the process that make the same program slower."""

import json
import os

import jax
import pytest
from support.corpora import nightly
from support.jax_settings import settings_restored

from ci.attacks.gated_sources import FUSED
from jaxgate.observe.machine.environment import read_environment
from jaxgate.observe.machine.process import usable_cores

MODEL = FUSED + "\ndef test_step(gate):\n    gate(step, jnp.linspace(0.0, 1.0, 1_000_000))\n"
PLAIN = "import os\n"
NO_FUSION = 'os.environ["XLA_FLAGS"] = "--xla_disable_hlo_passes=fusion,cpu-instruction-fusion"\n'


@pytest.fixture
def accepted(project):
    """A project with a baseline, recorded in a process of its own: XLA reads its flags once in a process."""
    return project.write("test_model.py", MODEL).write("conftest.py", PLAIN).record(alone=True)


@pytest.fixture
def here(project):
    """A project with a baseline, recorded in this process, which has its settings back afterwards."""
    with settings_restored():
        yield project.write("test_model.py", MODEL).write("conftest.py", "").record()


def verdict(project, *arguments, **environ):
    """Exit code and verdict of the one case, gated in a process of its own without duels."""
    done = project.alone("-m", "pytest", "-q", *arguments, **environ)
    (row,) = project.results()["cases"]
    return done.returncode, row, done.stdout


def verdict_here(project, *arguments):
    """The same verdict, gated in this process, and what was printed."""
    found = project.run("--benchmark-disable", *arguments)
    (row,) = project.results()["cases"]
    return row["status"], found.text


@nightly
def test_an_unchanged_project_is_the_same(accepted):
    """The entries below are not there where nobody set anything."""
    code, row, text = verdict(accepted, "--benchmark-disable")
    assert (code, row["status"]) == (0, "SAME"), text
    found = json.loads(accepted.baseline().read_text())["environment"]
    assert not {"compile_options", "settings"} & found.keys()
    assert found.get("cores") == read_environment(jax.devices()[0]).get("cores")  # a container may have a quota


@nightly
def test_a_flag_that_the_change_sets_is_a_change(accepted):
    """What the compiler makes of the program under it is held against what is stored, and not against itself."""
    accepted.write("conftest.py", PLAIN + NO_FUSION)
    code, row, text = verdict(accepted, "--benchmark-disable")
    assert (code, row["status"]) == (1, "REGRESSED"), text
    assert "xla_bytes" in text
    assert "XLA_FLAGS" in text


AT_THE_START = {
    "read when the backend started": PLAIN
    + 'os.environ["XLA_FLAGS"] = "--xla_backend_optimization_level=0"\n'
    + 'import jax\njax.devices()\ndel os.environ["XLA_FLAGS"]\n',
    "read from a file": PLAIN
    + 'open("flags", "w").write("--xla_backend_optimization_level=0")\nos.environ["XLA_FLAGS"] = os.path.abspath("flags")\n',
}
LATER = {
    "a setting of jax": 'import jax\njax.config.update("jax_disable_most_optimizations", True)\n',
    "a level of effort": 'import jax\njax.config.update("jax_memory_fitting_level", "O0")\n',
}
UNCHANGED = ("SAME", "FASTER", "IMPROVED")


@pytest.mark.parametrize("conftest", AT_THE_START.values(), ids=AT_THE_START)
def test_flags_are_never_called_identical(accepted, conftest):
    """None shows in the device program, and some not even in the executable."""
    accepted.write("conftest.py", conftest)
    _, row, text = verdict(accepted, "--benchmark-disable", "--perf-max-undecided=1")
    assert row["status"] not in UNCHANGED, text


@pytest.mark.parametrize("what", LATER)
def test_what_was_set_is_never_called_identical(here, what):
    """The same of what may be set while JAX is at work."""
    status, text = verdict_here(here.write("conftest.py", LATER[what]), "--perf-max-undecided=1")
    assert status not in UNCHANGED, text


@pytest.mark.skipif(usable_cores() < 2, reason="this process may use one core, and none can be taken away")
def test_cores_that_the_project_gives_up_are_never_called_identical(here):
    """The same program has fewer threads then, and no machine took them."""
    before = os.sched_getaffinity(0)
    here.write("conftest.py", PLAIN + "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n")
    try:
        status, text = verdict_here(here, "--perf-max-undecided=1")
    finally:
        os.sched_setaffinity(0, before)
    assert status not in UNCHANGED, text
    assert "cores_given_up" in text


@pytest.mark.skipif(usable_cores() < 2, reason="this process may use one core, and none can be taken away")
def test_fewer_cores_are_another_machine(accepted):
    """Whoever starts pytest chose them: equal programs are equal, whatever takes longer, and the line says so."""
    mine = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(mine)})
    try:
        code, row, text = verdict(accepted)
    finally:
        os.sched_setaffinity(0, mine)
    assert (code, row["status"]) == (0, "SAME"), text
    assert "cores" in text


def test_variables_of_the_job_are_named(here, monkeypatch):
    """The compiler's and the runtime's own; each can make the same program slower."""
    names = ("JAX_DISABLE_MOST_OPTIMIZATIONS", "NVIDIA_TF32_OVERRIDE", "NCCL_PROTO")
    for name in names:
        monkeypatch.setenv(name, "1")
    jax.config.update("jax_disable_most_optimizations", True)  # as JAX does when it is imported under the first
    status, text = verdict_here(here, "--perf-max-undecided=1")
    assert status == "UNDECIDED", text
    named = (here.path / "perf-artifacts" / "summary.md").read_text().lower()
    assert all(name.lower() in named for name in names), named


def test_what_changes_no_program_changes_no_verdict(here):
    """Else a project that logs more would be undecided for ever."""
    settings = {"jax_log_compiles": True, "jax_traceback_filtering": "off", "jax_enable_compilation_cache": False}
    lines = [f"jax.config.update({name!r}, {value!r})\n" for name, value in settings.items()]
    status, text = verdict_here(here.write("conftest.py", "import jax\n" + "".join(lines)))
    assert status == "SAME", text
