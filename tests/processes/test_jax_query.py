"""The process that tells JAX's defaults was told nothing."""

import os
import re
from pathlib import Path

import jax
import pytest

from jaxgate.processes.child import own_program
from jaxgate.processes.jax_query import ask_defaults, ask_hardware, find_defaults


@pytest.fixture(scope="module")
def defaults():
    """What a process tells that has this one's variables."""
    return ask_defaults()


def test_variables_that_set_something_do_not_reach_it(defaults):
    """The installation is this one's, and its options are the same whatever this process was told."""
    told = {"JAX_ENABLE_X64": "1", "XLA_FLAGS": "--xla_backend_optimization_level=0", "JAX_PLATFORMS": "none"}
    found = ask_defaults({**os.environ, **told})
    assert found == defaults
    assert (found.jax, found.file, found.config["jax_enable_x64"]) == (jax.__version__, jax.__file__, "False")
    assert len(found.compile_options) == 12


def test_this_process_knows_them_whatever_ran_before(defaults):
    """They are asked for once: a test that replaces ``subprocess.run`` must not have been the first to ask."""
    assert defaults is not None
    assert find_defaults() == defaults


def test_a_process_that_cannot_tell_is_no_answer():
    assert ask_defaults({**os.environ, "PYTHONHOME": "nowhere"}) is None


def test_every_program_of_ours_is_started_in_the_same_way():
    """No module starts one by a command of its own, in which the folder that it starts in would come first."""
    root = Path(own_program.__code__.co_filename).parents[1]
    ours = {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in root.rglob("*.py")}
    started = {name for name, text in ours.items() if "own_program(" in text}
    workers = ("duel_worker", "jax_query")
    assert started >= {*(f"processes/{name}.py" for name in workers), "ext/profile/worker.py"}
    assert [name for name, text in ours.items() if re.search(r'"-m",\s*f?"jaxgate', text)] == []


def test_files_of_the_project_are_not_taken_for_pythons_own(tmp_path, monkeypatch):
    """A project that has a ``types.py`` is asked from within its folder, as ``pytest`` is started there."""
    (tmp_path / "types.py").write_text("raise SystemExit('the types of a project')")
    monkeypatch.chdir(tmp_path)
    assert ask_hardware().platform == jax.default_backend()
