"""Scenarios of ``--perf-update``: each mode, what it writes, and what it refuses."""

from __future__ import annotations

from goldens.transcript import ALL, Transcript, scenario
from support.git import git

THREE = """
import jax, jax.numpy as jnp
from jaxgate import claim

def first(x):
    return x * 2

def second(x):
    return x + 1

def third(x):
    return x - 1

def test_first(gate):
    gate(first, jnp.ones(8))

def test_second(gate):
    gate(second, jnp.ones(8))

def test_third(gate):
    gate(third, jnp.ones(8))
"""
WORSE = "x @ jnp.ones((8, 8))"


@scenario
def create_and_refresh(play: Transcript) -> None:
    """Only what has none, only what has one, both; the rest is judged."""
    play.write("test_model.py", THREE)
    play.run("--perf-update=refresh")
    play.run("-k", "first", "--perf-update=create", "--perf-why", "the  first\none", files=ALL)
    play.edit("x * 2", WORSE)
    play.run("--perf-update=create")
    play.run("--perf-update=refresh", "-k", "first or second", "--perf-why=it is better", files=ALL)
    play.show("baselines/log/*.md")
    play.run("--perf-strict")
    play.run("--perf-update", files=[])


@scenario
def what_cannot_be_recorded(play: Transcript) -> None:
    """A broken claim and a case that is INVALID stay as they were; recordings before and after them count."""
    play.write("test_model.py", THREE)
    play.edit("x * 2", "x * jnp.nan")
    play.edit("gate(second, jnp.ones(8))", "gate(second, jnp.ones(8), expected_traces=2)")
    play.run("--perf-update")


def moved(play: Transcript) -> None:
    """Two of three are worse."""
    play.patch.setenv("JAXGATE_BUDGET", "0")
    play.recorded(THREE)
    play.edit("x * 2", WORSE)
    play.edit("x + 1", f"{WORSE} + 1")


@scenario
def review_without_anybody(play: Transcript) -> None:
    """No terminal: what moved is listed, and nothing is written."""
    moved(play)
    play.run("--perf-update=review")


@scenario
def review_yes_and_no(play: Transcript) -> None:
    """One is accepted."""
    moved(play)
    play.lab.answer("y", "what?", "n")
    play.run("--perf-update=review", "--perf-why=by hand", "-s", files=ALL)
    play.show("baselines/log/*.md")


@scenario
def review_all(play: Transcript) -> None:
    """All that is red is accepted; then nothing has moved."""
    moved(play)
    play.lab.answer("a")
    play.run("--perf-update=review", "--perf-strict", "-s")
    play.run("--perf-update=review", "--perf-strict", "-s", files=[])


@scenario
def review_quit(play: Transcript) -> None:
    """One accepted, then the end."""
    moved(play)
    play.lab.answer("y", "q")
    play.run("--perf-update=review", "-s", files=[])


@scenario
def trim(play: Transcript) -> None:
    """A test is gone; then there is nothing to remove; a file that cannot be read keeps all."""
    play.recorded(THREE)
    play.edit(THREE[THREE.index("def test_third") :], "")
    play.run()
    play.run("--perf-strict")
    play.run("--perf-update=trim", "--perf-why=it is gone")
    play.show("baselines/log/*.md")
    play.run("--perf-update=trim")
    play.run("--perf-update=trim", "-k", "first")
    (path,) = play.path.glob("baselines/*/model/first.json")
    path.write_text("{")
    play.run("--perf-update=trim")


@scenario
def baselines_to_commit(play: Transcript) -> None:
    """Recorded and not committed; committed; edited by a branch."""
    play.write("test_model.py", THREE)
    play.write(".gitignore", "perf-artifacts/\n__pycache__/\n.benchmarks/\n")
    git(play.path, "init", "--quiet", "-b", "main")
    git(play.path, "add", ".")
    git(play.path, "commit", "--quiet", "-m", "one")
    play.run("--perf-update=create", "--perf-strict")
    git(play.path, "add", ".")
    git(play.path, "commit", "--quiet", "-m", "two")
    play.run("--perf-strict")
    git(play.path, "checkout", "--quiet", "-b", "change")
    play.edit("x * 2", WORSE)
    play.run("--perf-update=refresh", "-k", "first", files=[])
    git(play.path, "commit", "--quiet", "-a", "-m", "three")
    play.run("--perf-strict", files=ALL)
    play.jaxgate("comment")
    play.jaxgate("comment", "--commit", "0" * 40)
