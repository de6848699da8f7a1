"""Attacks 1 and 2: flags, settings and state of the process that make the same program slower, and stand in no program."""

from __future__ import annotations

import os

from attack import FACTS, Attack, CannotRunError, Change, Seen, seen_of
from gated_sources import FUSED
from scratch_project import Workshop

TEST = """
import jax.numpy as jnp
from package import model

def test_case(gate):
    gate(model.step, jnp.linspace(0.0, 1.0, 1_000_000))
"""
FILES = {"package/__init__.py": "", "package/model.py": FUSED, "test_case.py": TEST}
NO_FUSION = "--xla_disable_hlo_passes=fusion,cpu-instruction-fusion"
NO_EFFORT = "--xla_backend_optimization_level=0"
OPEN = ("UNDECIDED", "REGRESSED", "SLOWER")
"""Verdicts that are enough where only time is worse: anything but the same program."""
AT_THE_START = "import os, jax\nos.environ['XLA_FLAGS'] = {flags!r}\njax.devices()\ndel os.environ['XLA_FLAGS']\n"
ONE_CORE = "import os\nos.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
IN_A_FIXTURE = """
import jax, pytest

@pytest.fixture(autouse=True)
def quick_tests():
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
"""


def _setting(name: str, value: object) -> str:
    return f"import jax\njax.config.update({name!r}, {value!r})\n"


def _sets(flags: str) -> str:
    return f"import os\nos.environ['XLA_FLAGS'] = {flags!r}\n"


def _against_head(workshop: Workshop) -> Seen:
    """The other side must not inherit what the conftest of this one sets."""
    project = workshop.recorded(FILES, then=(FACTS,))
    project.write("conftest.py", _sets(NO_FUSION))
    return seen_of(project.gate("--perf-against=HEAD", FACTS, "--perf-max-undecided=1"), ("REGRESSED",))


def _flags_file(workshop: Workshop) -> Seen:
    """XLA reads flags from a file whose content changes; its name does not."""
    file = workshop.folder / "xla.flags"
    file.write_text("--xla_cpu_enable_fast_math=false\n")
    files = FILES | {"conftest.py": _sets(str(file))}
    project = workshop.recorded(files, then=(FACTS,))
    public = "".join(path.read_text() for path in project.path.glob("baselines/**/*.json"))
    file.write_text(f"{NO_EFFORT}\n")
    seen = seen_of(project.gate(FACTS, "--perf-max-undecided=1"), OPEN)
    shown = "; its path stands in the baseline" if str(file) in public else ""
    return Seen(seen.outcome, seen.what + shown)


def _one_core(workshop: Workshop) -> Seen:
    if len(os.sched_getaffinity(0)) < 2:  # noqa: PLR2004 - one is left, and another is taken away
        raise CannotRunError("this process may use one core, and none can be taken away")
    return Change(FILES, {"conftest.py": ONE_CORE}, held=OPEN)(workshop)


ATTACKS = (
    Attack("1a", "XLA_FLAGS set by the conftest: no fusion", Change(FILES, {"conftest.py": _sets(NO_FUSION)})),
    Attack(
        "1b", "XLA_FLAGS set by the conftest: no effort", Change(FILES, {"conftest.py": _sets(NO_EFFORT)}, held=OPEN)
    ),
    Attack("1c", "XLA_FLAGS set by the package", Change(FILES, {"package/__init__.py": _sets(NO_FUSION)})),
    Attack("1d", "XLA_FLAGS set by the job", Change(FILES, environ={"XLA_FLAGS": NO_FUSION})),
    Attack("1e", "XLA_FLAGS set by the conftest, against HEAD", _against_head),
    Attack(
        "2a",
        "a variable of jax, set by the job",
        Change(FILES, environ={"JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}, held=OPEN),
    ),
    Attack(
        "2b",
        "a setting of jax, made by the conftest",
        Change(FILES, {"conftest.py": _setting("jax_disable_most_optimizations", value=True)}, held=OPEN),
    ),
    Attack("2c", "the content of a file of flags", _flags_file),
    Attack(
        "2d",
        "flags that are gone when the backend is up",
        Change(FILES, {"conftest.py": AT_THE_START.format(flags=NO_EFFORT)}, held=OPEN),
    ),
    Attack("2e", "fewer cores", _one_core),
    Attack(
        "2f",
        "another setting of jax: a level of effort",
        Change(FILES, {"conftest.py": _setting("jax_memory_fitting_level", "O0")}, held=OPEN),
    ),
    Attack("2g", "a setting of jax, made by a fixture", Change(FILES, {"conftest.py": IN_A_FIXTURE}, held=OPEN)),
)
