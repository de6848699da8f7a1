"""What a device program does not show: flags, settings and state of the process that make the same program slower."""

from __future__ import annotations

import json

import pytest

MODEL = """
import jax.numpy as jnp

def step(x):
    y = x
    for _ in range(12):
        y = y * x + 0.5 - y * y * 0.1
    return y

def test_step(gate):
    gate(step, jnp.linspace(0.0, 1.0, 1_000_000))
"""
"""One fusion; without it every operation writes 4 MB."""
PLAIN = "import os\n"
NO_FUSION = 'os.environ["XLA_FLAGS"] = "--xla_disable_hlo_passes=fusion,cpu-instruction-fusion"\n'


@pytest.fixture
def accepted(project):
    """A project with a baseline, recorded in a process of its own: XLA reads its flags once in a process."""
    return project.write("test_model.py", MODEL).write("conftest.py", PLAIN).record(alone=True)


def verdict(project, *arguments, **environ):
    """Exit code and verdict of the one case, gated in a process of its own without duels."""
    done = project.alone("-m", "pytest", "-q", *arguments, **environ)
    (row,) = json.loads((project.path / "perf-artifacts" / "results.json").read_text())["cases"]
    return done.returncode, row, done.stdout


def test_an_unchanged_project_is_the_same(accepted):
    """The entries below are not there where nobody set anything."""
    code, row, text = verdict(accepted, "--benchmark-disable")
    assert (code, row["status"]) == (0, "SAME"), text
    assert (
        not {"compile_options", "cores", "settings"} & json.loads(accepted.baseline().read_text())["environment"].keys()
    )


def test_a_flag_that_the_change_sets_is_a_change(accepted):
    """What the compiler makes of the program under it is held against what is stored, and not against itself."""
    accepted.write("conftest.py", PLAIN + NO_FUSION)
    code, row, text = verdict(accepted, "--benchmark-disable")
    assert (code, row["status"]) == (1, "REGRESSED"), text
    assert "xla_bytes" in text
    assert "XLA_FLAGS" in text


SET = {
    "read when the backend started": PLAIN
    + 'os.environ["XLA_FLAGS"] = "--xla_backend_optimization_level=0"\n'
    + 'import jax\njax.devices()\ndel os.environ["XLA_FLAGS"]\n',
    "a setting of jax": 'import jax\njax.config.update("jax_disable_most_optimizations", True)\n',
    "a level of effort": 'import jax\njax.config.update("jax_memory_fitting_level", "O0")\n',
    "read from a file": PLAIN
    + 'open("flags", "w").write("--xla_backend_optimization_level=0")\nos.environ["XLA_FLAGS"] = os.path.abspath("flags")\n',
    "fewer cores": PLAIN + "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n",
}


@pytest.mark.parametrize("conftest", SET.values(), ids=SET)
def test_what_was_set_is_never_called_identical(accepted, conftest):
    """None of it shows in the device program, and some of it not even in the executable."""
    accepted.write("conftest.py", conftest)
    _, row, text = verdict(accepted, "--benchmark-disable", "--perf-max-undecided=1")
    assert row["status"] not in ("SAME", "FASTER", "IMPROVED"), text


def test_variables_of_the_job_are_named(accepted):
    """The compiler's and the runtime's own; each can make the same program slower."""
    names = ("JAX_DISABLE_MOST_OPTIMIZATIONS", "NVIDIA_TF32_OVERRIDE", "NCCL_PROTO")
    _, row, text = verdict(accepted, "--benchmark-disable", "--perf-max-undecided=1", **dict.fromkeys(names, "1"))
    assert row["status"] == "UNDECIDED", text
    named = (accepted.path / "perf-artifacts" / "summary.md").read_text().lower()
    assert all(name.lower() in named for name in names), named


def test_what_changes_no_program_changes_no_verdict(accepted):
    """Else a project that logs more would be undecided for ever."""
    settings = {"jax_log_compiles": True, "jax_traceback_filtering": "off", "jax_enable_compilation_cache": False}
    lines = [f"jax.config.update({name!r}, {value!r})\n" for name, value in settings.items()]
    accepted.write("conftest.py", "import jax\n" + "".join(lines))
    assert verdict(accepted, "--benchmark-disable")[1]["status"] == "SAME"
