"""--perf-update=review: judge, list what moved, ask, and record what was measured already."""

import os
import pty
import re
import subprocess
import sys

import pytest
from support.projects import model

MODEL = model(first="x * 2", second="x + 1", third="x - 1")


@pytest.fixture
def moved(project, lab, monkeypatch):
    """Three recorded cases, of which two are worse now."""
    monkeypatch.setenv("JAXGATE_BUDGET", "0")  # time is not what this is about
    project.write("test_model.py", MODEL).record()
    project.edit("test_model.py", "return x * 2", "return x @ jnp.ones((8, 8))")
    project.edit("test_model.py", "return x + 1", "return x @ jnp.ones((8, 8)) + 1")
    return project


def refreshed(project, before):
    """The cases whose baseline is another one now."""
    after = project.baselines()
    assert sorted(after) == sorted(before)
    return [name.rsplit("/", 1)[1].removesuffix(".json") for name in after if after[name] != before[name]]


def test_without_a_terminal_nothing_is_written(moved):
    """What moved is listed with the figures that decide and the culprit, then the command; the exit code stays."""
    before = moved.baselines()
    result = moved.run("--perf-update=review")
    result.counts(passed=1, failed=2)
    assert result.code == 1
    assert refreshed(moved, before) == []
    result.shows("REVIEW: 2 moved, 0 accepted.", "  REGRESSED  model/first", "matmul_flops 128 FLOP against 0 FLOP")
    result.shows("    culprit: ")
    assert result.line("Accept what is left") == (
        "Nothing was written, as there is no terminal to ask on. Accept what is left: "
        "pytest 'test_model.py::test_first' 'test_model.py::test_second' --perf-update"
    )


def test_yes_and_no(moved, lab):
    """Only what was accepted is recorded, from what was measured already; the other one stays red."""
    asked = lab.answer("y", "what?", "no")
    before = moved.baselines()
    result = moved.run("--perf-update=review", "--perf-why", "by hand")
    assert result.code == 1
    assert refreshed(moved, before) == ["first"]
    assert len(asked) == 3
    assert asked[0].startswith("\nREGRESSED  model/first\n  matmul_flops 128 FLOP against 0 FLOP")
    assert asked[0].endswith("accept? [y]es [n]o [a]ll [q]uit ")
    assert asked[2] == "accept? [y]es [n]o [a]ll [q]uit "
    result.shows("REFRESHED  model/first", "REVIEW: 2 moved, 1 accepted.", "Accept what is left: pytest 'test_model.py")
    (entry,) = [text for text in moved.log() if "by hand" in text]
    assert re.search(r"refreshed `model/first` \(.*\)\. Why: by hand", entry)
    assert moved.run("-k", "first", "--perf-strict").code == 0
    assert moved.run("-k", "second").code == 1


def test_everything_red_accepted_ends_with_0_and_needs_a_commit(moved, lab):
    """All takes this one and those after it; what was replaced leaves the store."""
    asked = lab.answer("a")
    before = moved.baselines()
    result = moved.run("--perf-update=review", "--perf-strict")
    assert len(asked) == 1
    assert result.code == 0
    assert refreshed(moved, before) == ["first", "second"]
    result.shows("Everything red was accepted by hand", "NEEDS COMMIT: ", "Removed 2 programs that no baseline names")
    found = moved.results()
    assert (found["exit_status"], found["green"]) == (0, False)
    assert found["needs_commit"]


@pytest.mark.parametrize("end", [KeyboardInterrupt, EOFError, "q"], ids=["Ctrl-C", "end of input", "quit"])
def test_an_end_loses_nothing_and_writes_nothing_more(moved, lab, end):
    """What was accepted before stays, and is in the log; the rest is red."""
    lab.answer("y", end)
    before = moved.baselines()
    result = moved.run("--perf-update=review")
    assert result.code == 1
    assert refreshed(moved, before) == ["first"]
    assert len(moved.log()) == 2


def test_a_broken_claim_and_an_invalid_case_cannot_be_accepted(moved, lab):
    """They are listed with the reason, and never asked about; nor does a waiver make a claim acceptable."""
    moved.edit("test_model.py", "gate(first, jnp.ones(8))", "gate(first, jnp.ones(8), max_matmul_flops=1)")
    moved.edit("test_model.py", "jnp.ones((8, 8)) + 1", "jnp.ones((8, 8)) + jnp.nan")
    waiver = (
        '[[waiver]]\ncase = "model/first"\nquantity = "matmul_flops ≤ 1"\nup_to = 1000\nowner = "a"\nreason = "b"\n'
    )
    (moved.path / "baselines/waivers.toml").write_text(waiver + "expires = 2100-01-01\n", encoding="utf-8")
    asked = lab.answer()
    before = moved.baselines()
    result = moved.run("--perf-update=review")
    assert result.code == 1
    assert (asked, refreshed(moved, before)) == ([], [])
    result.shows("cannot be accepted: claim matmul_flops ≤ 1: 128 FLOP against 1", "INVALID  model/second")
    assert "Accept what is left" not in result.text


@pytest.mark.parametrize("how", ["after the gate", "in another test", "in its teardown"])
def test_accepting_does_not_cover_other_failures(moved, lab, how):
    """A test that is red for a reason of its own stays red, whatever was accepted."""
    lab.answer("a")
    if how == "after the gate":
        moved.edit("test_model.py", "    gate(first, jnp.ones(8))", RAISES)
    elif how == "in another test":
        moved.write("test_other.py", "def test_other():\n    assert False\n")
    else:
        moved.edit("test_model.py", "def test_first(gate)", TEARDOWN)
    result = moved.run("--perf-update=review")
    assert result.code == 1
    result.shows("REVIEW: 2 moved, 2 accepted.")
    assert "Everything red was accepted" not in result.text


RAISES = """    import pytest
    with pytest.raises(pytest.fail.Exception):
        gate(first, jnp.ones(8))
    assert False, 'of its own'"""
TEARDOWN = """import pytest
@pytest.fixture
def late():
    yield
    assert False

def test_first(late, gate)"""


def test_a_new_case_can_be_accepted(moved, lab):
    """It has no baseline to move from, and fails under CI for that."""
    moved.write("test_new.py", "import jax.numpy as jnp\ndef test_new(gate):\n    gate(lambda x: x / 2, jnp.ones(4))\n")
    lab.answer("y")
    result = moved.run("test_new.py", "--perf-update=review", "--perf-strict")
    assert result.code == 0
    result.shows("CREATED  new/new")


def test_somebody_at_a_real_terminal(moved):
    """Pytest's own capture lets the question out and the answer in."""
    before = moved.baselines()
    ours, theirs = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV"))}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--perf-update=review"]
    process = subprocess.Popen(
        command, cwd=moved.path, env=environment, stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL
    )
    os.close(theirs)
    seen, answered = b"", 0
    try:
        while True:
            try:
                chunk = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            if not chunk:
                break
            seen += chunk
            if seen.count(b"[q]uit ") > answered:
                os.write(ours, b"yn"[answered : answered + 1] + b"\n")
                answered += 1
        code = process.wait(timeout=120)
    finally:
        process.kill()
        os.close(ours)
    text = re.sub(r"\x1b\[[0-9;]*m", "", seen.decode())
    assert (code, answered) == (1, 2), text
    assert refreshed(moved, before) == ["first"]
    assert "REVIEW: 2 moved, 1 accepted." in text
