"""A whole pull request, played in a scratch repository with the commands that CI and people use."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from functools import partial

import pytest
from support.corpora import nightly
from support.git import git

from jaxgate.cli import main as commands
from jaxgate.cli import record

MODEL = "import jax.numpy as jnp\n\n\ndef step(x):\n    return jnp.tanh(x)\n\n\ndef other(x):\n    return jnp.sin(x)\n"
TESTS = """
import jax.numpy as jnp
import model

def test_step(gate):
    gate(model.step, jnp.ones(64))

def test_other(gate):
    gate(model.other, jnp.ones(64))
"""
NEW = "\ndef test_new(gate):\n    gate(jnp.cos, jnp.ones(64))\n"


class Checkout:
    """A clone of the scratch repository, as somebody works in it; each command is a process, and pytest another."""

    def __init__(self, project):
        self.project = project
        self.path = project.path

    def git(self, *arguments):
        """What git answers."""
        return git(self.path, *arguments)

    def commit(self, why):
        """Commit everything."""
        self.git("add", ".")
        self.git("commit", "-m", why)

    def run(self, *command):
        """Run one of the commands; exit code and output."""
        dropped = ("JAXGATE", "PYTEST", "GITHUB", "CI")
        environ = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
        done = subprocess.run(
            command, cwd=self.path, env=environ, capture_output=True, text=True, check=False, timeout=300
        )
        return done.returncode, done.stdout + done.stderr

    def jaxgate(self, *arguments):
        """Run ``jaxgate``; exit code and output."""
        return self.run(sys.executable, "-m", "jaxgate.cli.main", *arguments)

    def gate(self, *arguments):
        """``ci/gate`` without make."""
        return self.jaxgate("gate", *arguments)

    def comment(self):
        """What the pull request shows."""
        return self.jaxgate("comment", "--commit", self.git("rev-parse", "HEAD"))[1]

    def edit(self, name, old, new):
        """Replace a text that stands once in a file."""
        text = (self.path / name).read_text()
        assert text.count(old) == 1
        (self.path / name).write_text(text.replace(old, new))


class CheckoutHere(Checkout):
    """The same, whose commands and whose pytest are run in this process."""

    def __init__(self, project, patch, capsys):
        super().__init__(project)
        self.capsys = capsys
        run = subprocess.run

        def pytest_here(command, environ):
            for cache in self.path.rglob("__pycache__"):
                shutil.rmtree(cache)  # a file that was edited within a second looks like the cached one
            return project.run_here(command, folder=self.path, variables=environ)

        def run_here(command, **options):
            if command[0] != sys.executable:
                return run(command, **options)
            done = pytest_here(command, options["env"])
            return subprocess.CompletedProcess(command, done.status, done.stdout, done.stderr)

        patch.chdir(self.path)
        patch.setenv("JAX_PLATFORMS", "cpu")  # else a process is asked where JAX will run
        gate = partial(commands.gate, run=lambda command, environ, _: pytest_here(command, environ).status)
        patch.setattr(commands, "gate", gate)
        patch.setattr(record.subprocess, "run", run_here)

    def pytest(self, *arguments):
        """Run pytest; exit code and output."""
        command = [sys.executable, "-m", "pytest", *arguments]
        done = self.project.run_here(command, folder=self.path, variables=os.environ)
        return done.status, done.stdout

    def jaxgate(self, *arguments):
        self.capsys.readouterr()
        code = commands.main(arguments)
        return code, "".join(self.capsys.readouterr())


@pytest.fixture
def trunk(project):
    """A pull request's branch that changes nothing yet; the trunk has two tests and no baselines."""
    (project.path / "perf").mkdir()
    (project.path / ".gitignore").write_text("__pycache__/\nperf-artifacts/\n.pytest_cache/\n")
    (project.path / "model.py").write_text(MODEL)
    (project.path / "perf/test_model.py").write_text(TESTS)
    git(project.path, "init", "-b", "main")
    git(project.path, "add", ".")
    git(project.path, "commit", "-m", "trunk")
    git(project.path, "checkout", "-b", "change")
    return project


@pytest.fixture
def checkout(trunk):
    """The branch, and real commands: one of each is enough."""
    return Checkout(trunk)


@pytest.fixture
def here(trunk, monkeypatch, capsys):
    """The branch, and commands in this process."""
    return CheckoutHere(trunk, monkeypatch, capsys)


def test_a_pull_request(here):
    """Unknown hardware, green, planted regression, accepted by the printed command, green again, a new case."""
    (here.path / "model.py").write_text(
        MODEL.replace("def step(x)", "def step(value)").replace("tanh(x)", "tanh(value)")
    )
    here.commit("rename an argument")

    code, out = here.gate()
    assert code == 0, out
    assert "no baseline in baselines: comparing with the merge base" in out
    assert "2 cases: 2 SAME" in out
    assert "are in baselines/cpu-" in out  # ready, of the merge base

    here.git("add", "--force", "baselines")
    here.commit("baselines of this hardware")
    code, out = here.gate()
    assert code == 0, out
    assert "merge base" not in out
    assert here.comment().startswith("<!-- jaxgate -->\n## ✅ jaxgate: 2 cases passed")

    here.edit("model.py", "return jnp.tanh(value)", "return jnp.tanh(value), value * 2")
    here.commit("return more")
    code, out = here.gate()
    assert code == 1, out
    assert "jaxgate gate: 1 case failed (exit code 1)" in out
    comment = here.comment()
    assert "## ❌ jaxgate: 1 of 2 cases failed" in comment
    assert "| ❌ REGRESSED | `model/step` | `output_bytes` |" in comment
    assert (here.path / "perf-artifacts/model/step/report.md").exists()

    reproduce, accept = re.search(r"reproduce: (.*?)   accept: add (--perf-update)", comment).groups()
    code, out = here.pytest(*shlex.split(reproduce)[1:], accept, "--perf-why=it is needed")
    assert code == 0, out
    here.commit("accept")
    code, out = here.gate()
    assert code == 0, out
    comment = here.comment()
    assert "## ✅ jaxgate: 2 cases passed" in comment
    assert "This change edits" in comment
    assert "model/step.json" in comment

    with (here.path / "perf/test_model.py").open("a") as file:
        file.write(NEW)
    here.commit("a new case")
    code, out = here.gate()
    assert code == 3, out
    assert "1 baseline missing or of other arguments; record them where CI runs" in out


@nightly
def test_the_commands_are_processes(checkout):
    """What else is played in this process, once as people run it: with the merge base, a page and a bundle."""
    checkout.edit("model.py", "return jnp.tanh(x)", "return jnp.tanh(x), x * 2")
    checkout.commit("return more")
    code, out = checkout.gate("-k", "step")
    assert code == 1, out
    assert "no baseline in baselines: comparing with the merge base" in out
    assert "| ❌ REGRESSED | `model/step` | `output_bytes` |" in checkout.comment()
    bundle = checkout.path / "perf-artifacts/model/step"
    assert (bundle / "now.hlo.txt").exists()
    assert list(bundle.glob("now/plugins/profile/*/*.xplane.pb"))


def test_the_trunk_is_not_held_against_itself(here):
    """That would be green whatever it holds: its baselines are missing, and it says so."""
    here.git("checkout", "-q", "main")
    code, out = here.gate()
    assert code == 3, out
    assert "this is the trunk: nothing to compare with" in out


def test_what_broke_is_not_a_regression(here):
    """A suite that cannot be collected, or selects nothing, is 2, and an old green comment does not stay."""
    code, out = here.gate("-k", "nothing_of_that_name")
    assert code == 2, out
    here.edit("perf/test_model.py", "import model", "import no_such_model")
    code, out = here.gate()
    assert code == 2, out
    assert "judged nothing (exit code 2)" in out
    assert "## ❌ jaxgate: no result" in here.comment()


def test_baselines_are_recorded_as_a_patch(here):
    """That applies to the commit that it was made from, with what a rule of git leaves out; changes are refused."""
    here.edit(".gitignore", ".pytest_cache/\n", ".pytest_cache/\n*.gz\n")
    here.commit("a rule of many projects")
    command = ("record", "--why", "first of this machine", "--busy-ok")
    code, out = here.jaxgate(*command)
    assert code == 0, out
    assert "first of this machine" in out
    patch = here.path / "perf-artifacts/baselines.patch"
    assert here.git("status", "--porcelain") == "?? baselines/"
    assert here.jaxgate(*command)[0] == 2
    kept = {path.name: path.read_bytes() for path in here.path.glob("baselines/*/*/*.json")}
    here.git("clean", "-fdq", "baselines")
    code, out = here.jaxgate(*command)
    assert code == 2
    assert "expected no file of the baselines ignored by git" in out
    here.git("clean", "-fdxq", "baselines")
    here.git("apply", str(patch))
    assert {path.name: path.read_bytes() for path in here.path.glob("baselines/*/*/*.json")} == kept
    assert len(kept) == 2
    code, out = here.gate()
    assert code == 3, out  # nobody else has them yet
    assert "5 files of them to commit" in out
    here.git("add", "--force", "baselines")
    here.commit("baselines of this hardware")
    code, out = here.gate()
    assert code == 0, out
    found = json.loads((here.path / "perf-artifacts/results.json").read_text())
    assert found["commit"] == here.git("rev-parse", "HEAD")
