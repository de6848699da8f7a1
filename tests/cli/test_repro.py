"""``jaxgate repro``: a file for strangers out of a red case, and one line where there can be none."""

import subprocess
import sys

import pytest
from support.processes import outside_variables
from support.projects import SETTINGS

from jaxgate.cli import main as cli
from jaxgate.ext.repro import run as module
from jaxgate.ext.repro.file import REPRO_MARK
from jaxgate.model.outcome import UsageError
from jaxgate.processes.child import Finished

TEST = """
import jax.numpy as jnp

ACME_TABLE = jnp.arange(24.0).reshape(4, 6) * 0.37

def acme_step(acme_weights, batch):
    hidden = jnp.tanh(batch @ acme_weights)
    return {"acme_loss": (hidden @ ACME_TABLE.T).sum(), "next": acme_weights * 0.9}

def test_acme(gate):
    gate(acme_step, jnp.ones((8, 6)), jnp.ones((4, 8)), donate="acme_weights")
"""
CASE = "model/acme"


def run(folder, *arguments, module="jaxgate.cli.main"):
    """A command in a process of its own."""
    variables = outside_variables(JAXGATE_MACHINE_HELD="tests", JAX_PLATFORMS="cpu")
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)


def test_a_red_case_becomes_a_file(tmp_path):
    """Recorded, broken, written, run: the file shows what is red, and nothing of the project is in it."""
    (tmp_path / "pyproject.toml").write_text(SETTINGS)
    test = tmp_path / "test_model.py"
    test.write_text(TEST)
    recorded = run(tmp_path, "-q", "--perf-update", "--benchmark-disable", module="pytest")
    assert recorded.returncode == 0, recorded.stdout
    test.write_text(TEST.replace(', donate="acme_weights"', ""))
    before = sorted(tmp_path.glob("baselines/**/*"))
    done = run(tmp_path, "repro", CASE, "--issue")
    assert done.returncode == 0, done.stderr
    assert "# A changed program reuses 192 bytes less of its arguments" in done.stdout
    assert "alias bytes                                192               0" in done.stdout
    text = (tmp_path / "repro-model-acme.py").read_text()
    assert text.rstrip() in done.stdout
    assert "acme" not in text.replace("repro-model-acme.py", "")
    assert str(tmp_path) not in text
    assert text.startswith(REPRO_MARK)
    assert sorted(tmp_path.glob("baselines/**/*")) == before, "it records aside"


@pytest.fixture
def called(monkeypatch, tmp_path):
    """The command without processes: a pair that cannot be had unless a test says otherwise."""
    monkeypatch.chdir(tmp_path)
    answers = {"text": "print(1)\n", "done": Finished(status=0, stdout="temp bytes\n", stderr="")}

    def find(case, root, **about):
        if isinstance(answers["text"], Exception):
            raise answers["text"]
        answers["asked"] = about

    monkeypatch.setattr(module, "find_pair", find)
    monkeypatch.setattr(
        module, "written", lambda pair, name, asked: (answers["text"], "found" if asked.reduce else None)
    )
    monkeypatch.setattr(module, "reduced_text", lambda found: f"{found}\n")
    monkeypatch.setattr(module, "run_file", lambda path: (answers["done"], 1.0))
    return answers


def test_what_the_file_prints_is_shown(called, tmp_path, capsys):
    """Under the name that was asked for, no line of it longer than people read; progress goes to the other stream."""
    called["done"] = Finished(status=0, stdout=f"temp bytes\n{12_000 * 'x'}\n", stderr="")
    assert cli.main(["repro", CASE, "--output", "mine.py"]) == 0
    assert (tmp_path / "mine.py").read_text() == "print(1)\n"
    out, err = capsys.readouterr()
    assert out == f"temp bytes\n{199 * 'x'}…\n"
    assert "recording model/acme as it is now" in err
    assert "mine.py: 9 bytes" in err


@pytest.mark.parametrize("chosen", [True, False], ids=["named", "by default"])
@pytest.mark.parametrize(
    ("make", "found"),
    [
        (lambda path: path.write_text("def test_mine(): pass\n"), "a file that jaxgate did not write"),
        (lambda path: path.write_text(f"# {REPRO_MARK[:40]}"), "a file that jaxgate did not write"),
        (lambda path: path.symlink_to("real.py"), "a link"),
        (lambda path: path.symlink_to("nowhere.py"), "a link"),
        (lambda path: path.mkdir(), "a folder"),
    ],
    ids=["a test", "nearly ours", "a link", "a link to nothing", "a folder"],
)
def test_a_file_of_the_project_stays(called, tmp_path, capsys, make, found, chosen):
    """Before anything is recorded: what this command did not write is not replaced, and no link is followed."""
    (tmp_path / "real.py").write_text("mine")
    path = tmp_path / ("test_case.py" if chosen else "repro-model-acme.py")
    make(path)
    before = path.lstat()
    assert cli.main(["repro", CASE, *(["--output", path.name] if chosen else [])]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"jaxgate repro: {path.name} cannot be written: expected ")
    assert f"found {found}" in error
    assert "asked" not in called
    assert (path.lstat().st_ino, path.lstat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert (tmp_path / "real.py").read_text() == "mine"


def test_a_file_that_came_meanwhile_stays(called, tmp_path, monkeypatch, capsys):
    """A reduction takes minutes, in which somebody may have saved one."""
    monkeypatch.setattr(module, "find_pair", lambda *_, **__: (tmp_path / "mine.py").write_text("mine"))
    assert cli.main(["repro", CASE, "--output", "mine.py"]) == 1
    assert (tmp_path / "mine.py").read_text() == "mine"
    assert "name another file, or remove this one" in capsys.readouterr().err


def test_its_own_file_is_written_anew(called, tmp_path):
    called["text"] = f'{REPRO_MARK}repro-model-acme.py\n"""'
    assert cli.main(["repro", CASE]) == cli.main(["repro", CASE]) == 0


def test_a_case_that_cannot_be_had_is_one_line(called, tmp_path, capsys):
    called["text"] = UsageError("expected a case, found none")
    assert cli.main(["repro", CASE]) == 1
    assert capsys.readouterr().err.splitlines()[-1] == "jaxgate repro: expected a case, found none"
    assert not list(tmp_path.iterdir())


def test_a_file_that_does_not_run_is_told(called, capsys):
    """It is there to be looked at, and nobody may take it for a reproduction."""
    called["done"] = Finished(status=1, stdout="", stderr="Traceback\nValueError: broken\n")
    assert cli.main(["repro", CASE]) == 2
    assert "was written and fails here: ValueError: broken" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("typed", "code", "message"),
    [
        (["-k", "x"], 2, "unknown arguments -k x"),
        (["--python", "bin/python"], 1, "add --reduce"),
        (["--about", "time"], 1, "add --reduce"),
        (["--at-least", "2"], 1, "add --reduce"),
        (["--reduce", "--about", "speed"], 1, "expected one of results, time, temp_bytes"),
        (["--output", "nowhere/mine.py"], 1, "expected a folder that can be written"),
    ],
)
def test_what_makes_no_sense_is_refused_at_once(called, typed, code, message, capsys):
    """Before anything is recorded or reduced, which takes minutes."""
    assert cli.main(["repro", CASE, *typed]) == code
    assert message in capsys.readouterr().err
    assert "asked" not in called


@pytest.mark.parametrize("wrong", ["0", "-3", "soon", "nan", "inf"])
def test_a_budget_is_a_number_of_seconds(called, wrong, capsys):
    with pytest.raises(SystemExit):
        cli.main(["repro", CASE, "--reduce", "--budget", wrong])
    assert "expected a number above 0" in capsys.readouterr().err


def test_a_reduction_of_results_records_what_is_right(called, capsys):
    """A NaN would keep the case from being recorded; no baseline is asked for."""
    assert cli.main(["repro", CASE, "--reduce", "--about", "results"]) == 0
    assert called["asked"]["alone"]
    assert "--xla_cpu_experimental_ynn_fusion_type=" in called["asked"]["environ"]["XLA_FLAGS"]
    assert capsys.readouterr().out == "found\ntemp bytes\n"
    assert cli.main(["repro", CASE, "--reduce", "--output", "other.py"]) == 0
    assert not called["asked"]["alone"]
