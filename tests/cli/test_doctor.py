"""``jaxgate doctor``, as somebody calls it in a project."""

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import PackageNotFoundError

import pytest
from support.factories import HARDWARE, baseline
from support.lines import line_here

from jaxgate.ext.doctor.checkup import EXTRAS, NEEDED, Surroundings
from jaxgate.ext.doctor.command import doctor
from jaxgate.keep.baselines import save_baseline
from jaxgate.observe.machine.environment import first_device


def seen(**changes):
    """A place where all is well, but for these."""
    versions = {**dict.fromkeys((*NEEDED, *EXTRAS), "1.0"), "jax": "0.10.2"}
    return lambda folder: Surroundings(versions=versions, hardware=HARDWARE, folder=folder.name, **changes)


@pytest.mark.parametrize(
    ("changes", "code", "last"),
    [
        ({"own": 3}, 0, "A gate can judge here; 0 notes."),
        ({"own": 3, "cache": "x"}, 0, "A gate can judge here; 1 note."),
        ({}, 1, "1 thing keeps a gate from judging here; 0 notes."),
        ({"unreadable": ("a",), "own": 1}, 1, "1 thing keeps a gate from judging here; 0 notes."),
    ],
)
def test_the_exit_code_says_whether_a_gate_can_judge(changes, code, last, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert doctor(see=seen(**changes)) == code
    assert capsys.readouterr().out.splitlines()[-1] == last


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_no_line_is_longer_than_the_terminal(columns, capsys, tmp_path, monkeypatch):
    """Nor than a person reads; a command is never broken."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(shutil, "get_terminal_size", lambda **_: os.terminal_size((columns, 24)))
    doctor(see=seen(settings={f"XLA_{name}": "value" * 3 for name in "ABCD"}, objections=("load 8.0",) * 5))
    lines = capsys.readouterr().out.splitlines()
    assert max(len(line) for line in lines if "→" not in line) <= min(columns, 110)
    assert '                 → pytest --perf-update --perf-why "first baselines"' in lines


def test_a_project_file_that_cannot_be_read_is_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[")
    assert doctor(see=seen()) == 1
    assert capsys.readouterr().err.startswith("jaxgate doctor: pyproject.toml cannot be read")


def test_a_missing_package_is_no_traceback(tmp_path, monkeypatch, capsys):
    """JAX is not imported to say that it is not there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("jaxgate.ext.doctor.command.version", lambda name: missing() if name == "jaxlib" else "1.0")
    assert doctor() == 1
    assert "not installed: jaxlib" in capsys.readouterr().out


def missing():
    """What ``importlib.metadata`` does of a package that is not installed."""
    raise PackageNotFoundError


def test_baselines_of_another_line_would_be_borrowed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    key = replace(first_device(), devices=1)
    for jax in ("0.8.1", "0.9.1"):
        save_baseline(tmp_path / "baselines", baseline(hardware=key, environment={"jax": jax}))
    assert doctor() == 0
    text = " ".join(capsys.readouterr().out.split())
    assert f"none for {key.slug} with jax {line_here()}; borrowed are 1 of {key.slug}-jax-0.9:" in text


def test_it_looks_at_a_real_machine_and_project(tmp_path):
    """In a process of its own: devices, settings and a baseline that is no JSON."""
    broken = tmp_path / "baselines/cpu-a-1-jax-0.10/scan/case.json"
    broken.parent.mkdir(parents=True)
    broken.write_text("{")
    command = [sys.executable, "-m", "jaxgate.cli.main", "doctor"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    text = " ".join(done.stdout.split())
    assert "1 device of cpu" in text or "devices of" in text
    assert "1 file cannot be trusted: cpu-a-1-jax-0.10/scan/case.json" in text
    assert "steps of" in text
    assert "Traceback" not in done.stderr
