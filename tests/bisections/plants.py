"""Repositories in which one commit is the culprit, made by git's own fast import."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

COMMITS = 60
CONFIG = '[tool.pytest]\npythonpath = ["."]\n'
CONFTEST = """
import jax.numpy as jnp, pytest

@pytest.fixture
def batch():
    return jnp.linspace(-1, 1, 128 * 64).reshape(128, 64)
"""
TEST = """
import jax.numpy as jnp
from model import step

def test_step(gate, batch):
    gate(step, jnp.full((64, 64), 0.01), batch)
"""
MODEL = """
import jax, jax.numpy as jnp

def step(w, x):
    for layer in range({layers}):
        x = jnp.tanh(x @ w)
    return jax.lax.fori_loop(0, {turns}, lambda _, y: jnp.sin(y) + {shift}, x)
"""

Files = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plant:
    """A repository with one bad commit."""

    name: str  # for people
    at: int  # number of the bad commit, from 1
    files: Callable[[int], Files]  # all files of a commit, by its number
    fact: str  # what must be named as the quantity that moved


def project(number: int, *, layers: int = 2, turns: int = 200, every: int = 7, **files: str) -> dict[str, str]:
    """A project at a commit: most commits change what no program depends on, every seventh one a constant of it."""
    shift = 0.001 * (number // every + 1)
    return {
        "pyproject.toml": CONFIG,
        "conftest.py": CONFTEST,
        "test_model.py": TEST,
        "model.py": f"# commit {number}\n" + MODEL.format(layers=layers, turns=turns, shift=shift),
        **files,
    }


def _a_fact(number: int) -> Files:
    return project(number, layers=2 if number < 38 else 3)


def _only_time(number: int) -> Files:
    return project(number, turns=200 if number < 23 else 240)


def _broken(number: int) -> Files:
    found = project(number, layers=2 if number < 41 else 3)
    return found | {"model.py": found["model.py"] + "def half(:\n"} if 27 <= number <= 34 else found


def _new_test(number: int) -> Files:
    found = project(number, layers=2 if number < 17 else 3)
    return found if number >= 55 else {name: found[name] for name in ("pyproject.toml", "model.py")}


PLANTS = (
    Plant(name="a fact", at=38, files=_a_fact, fact="matmul_flops"),
    Plant(name="only time", at=23, files=_only_time, fact="run_ns"),
    Plant(name="broken commits", at=41, files=_broken, fact="matmul_flops"),
    Plant(name="a new test", at=17, files=_new_test, fact="matmul_flops"),
)


def build(folder: Path, files: Callable[[int], Files], commits: int = COMMITS) -> list[str]:
    """Make a repository on the branch main, checked out at its last commit; gives the commits, oldest first.

    Args:
        folder: Where; it is made.
        files: All files of a commit, by its number from 0: the first commit has nothing wrong.
        commits: How many follow the first one.
    """
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet", "--initial-branch=main")
    stream = []
    for number in range(commits + 1):
        stream += ["commit refs/heads/main", f"mark :{number + 1}"]
        stream += [f"author A <a@example.org> {1_700_000_000 + 3600 * number} +0000"]
        stream += [f"committer A <a@example.org> {1_700_000_000 + 3600 * number} +0000"]
        subject = f"Commit {number}"
        stream += [f"data {len(subject)}", subject, *([f"from :{number}"] if number else []), "deleteall"]
        for name, text in files(number).items():
            stream += [f"M 100644 inline {name}", f"data {len(text.encode())}", text]
    git(folder, "fast-import", "--quiet", question="\n".join([*stream, ""]))
    git(folder, "checkout", "--quiet", "--force", "main")
    return git(folder, "rev-list", "--reverse", "main").split()


def git(folder: Path, *arguments: str, question: str | None = None) -> str:
    """What git answers; an error ends the program."""
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, input=question, check=True, capture_output=True, text=True).stdout.strip()
