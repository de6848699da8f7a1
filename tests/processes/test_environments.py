"""What --perf-against understands, and the environments that it makes."""

import json
import os
import subprocess
import sys
import zipfile
from contextlib import nullcontext
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.corpora import nightly
from support.factories import ENVIRONMENT, baseline

from jaxgate.ext.upgrade import venv
from jaxgate.ext.upgrade.environment import EnvironmentSpec, parse_environment
from jaxgate.ext.upgrade.environment_runs import refuse_lost_settings
from jaxgate.ext.upgrade.venv import prepare_environment
from jaxgate.keep.baselines import save_baseline
from jaxgate.model.outcome import UsageError
from jaxgate.processes.child import Finished
from jaxgate.processes.pytest_child import child_environment

HERE = Path(sys.executable)


def settings(options=(), **started_with):
    """What is known of how this run was started."""
    return SimpleNamespace(started_with=started_with, options=options)


ENVIRON = child_environment(settings(**os.environ))


def test_an_interpreter_and_its_environment_are_the_same(tmp_path):
    """A folder with bin/python and the interpreter itself name one environment; the link is not resolved."""
    link = tmp_path / "venv/bin/python"
    link.parent.mkdir(parents=True)
    link.symlink_to(sys.executable)
    for item in ("venv", "venv/bin/python", str(link)):
        assert parse_environment([item], tmp_path).python == link


def test_settings_go_where_jax_and_xla_read_them(tmp_path):
    """XLA options become flags, JAX settings variables, others stay as they are; an empty value is one."""
    asked = parse_environment(
        ["xla_cpu_x=1", "jax_enable_x64=1", "XLA_FLAGS=--a=1 --b=2", "OMP_NUM_THREADS="], tmp_path
    )
    assert (asked.flags, asked.settings) == (("--xla_cpu_x=1",), ("jax_enable_x64",))
    assert asked.variables == {"JAX_ENABLE_X64": "1", "XLA_FLAGS": "--a=1 --b=2", "OMP_NUM_THREADS": ""}


@pytest.mark.parametrize("item", ["jax==0.10.2", "jax>=0.10,<0.11", "jax[cuda13]==0.10.2", "tiny @ file:///a/tiny.whl"])
def test_requirements(item, tmp_path):
    """A requirement names a version or a file; it may hold a slash in its address."""
    assert parse_environment([item], tmp_path).requirements == (item,)


@pytest.mark.parametrize(
    ("items", "message"),
    [
        (["jax"], "expected the folder of a virtual environment, a requirement such as jax==0.10.2, or NAME=VALUE"),
        (["jax=="], "found 'jax=='"),
        (["jax=0.10.2"], "found 'jax=0.10.2'"),
        (["no/such/folder"], "expected a virtual environment or an interpreter, found none at"),
        (["."], "expected a virtual environment or an interpreter"),
        ([str(HERE), str(HERE)], "expected one environment, found a second"),
        ([str(HERE), "jax==0.10.2"], "found both; install them into it"),
    ],
)
def test_nonsense_is_a_usage_error(items, message, tmp_path):
    """What is neither a path, a requirement with a version nor a setting is refused, by name."""
    with pytest.raises(UsageError) as error:
        parse_environment(items, tmp_path)
    assert message in str(error.value)


def interpreter(folder, text):
    """A file that answers like an interpreter."""
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_flags_are_added_to_those_that_are_there(tmp_path):
    """An xla_ option joins the flags of this environment; everything else stays."""
    python = interpreter(tmp_path, f'echo \'{{"missing": [], "unknown": [], "jaxgate": "{version("jaxgate")}"}}\'')
    asked = EnvironmentSpec(python=python, flags=("--xla_b=2",))
    found = prepare_environment(asked, tmp_path, {"XLA_FLAGS": "--xla_a=1", "HOME": "h"})
    assert found == (python, {"XLA_FLAGS": "--xla_a=1 --xla_b=2", "HOME": "h"})


def test_an_unknown_jax_setting_is_refused(tmp_path):
    """A misspelt setting would compare an environment with itself: refused by the other side's own jax."""
    for item in ("jax_enable_x46=1", "JAX_ENABLE_X46=1"):
        with pytest.raises(UsageError, match="jax there has no setting jax_enable_x46"):
            prepare_environment(parse_environment([item], tmp_path), tmp_path, ENVIRON)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ('echo \'{"missing": ["pytest_benchmark"], "unknown": [], "jaxgate": "0.1.0"}\'', "it lacks pytest-benchmark"),
        ('echo \'{"missing": [], "unknown": [], "jaxgate": "9.9"}\'', "found 9.9; install the same"),
        ("echo 'no such library' >&2; exit 3", "does not start: no such library"),
        ("exit 3", "does not start: exit status 3"),
    ],
)
def test_an_environment_that_cannot_record_is_refused(answer, message, tmp_path):
    """Without pytest, pytest-benchmark or this jaxgate nothing could be recorded there."""
    with pytest.raises(UsageError) as error:
        prepare_environment(EnvironmentSpec(python=interpreter(tmp_path, answer)), tmp_path, os.environ)
    assert message in str(error.value)


def wheel(folder, version):
    """A package with nothing but a version, as a wheel."""
    path = folder / f"tiny_of_mine-{version}-py3-none-any.whl"
    about = f"tiny_of_mine-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("tiny_of_mine.py", f"VERSION = {version!r}\n")
        file.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: tiny-of-mine\nVersion: {version}\n")
        file.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{about}/RECORD", "")
    return path


@nightly
def test_a_requirement_gets_an_environment_of_its_own(tmp_path, monkeypatch):
    """The package comes from there, all others from here; a second time nothing is installed."""
    wheel(tmp_path, "1.5")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    asked = parse_environment(["tiny-of-mine==1.5"], tmp_path)
    python, _ = prepare_environment(asked, tmp_path / "made", ENVIRON)
    code = "import tiny_of_mine, jax, jaxgate, sys; print(tiny_of_mine.VERSION, jax.__version__, jaxgate.__file__)"
    there = subprocess.check_output([python, "-c", code], text=True).split()
    here = subprocess.check_output(
        [sys.executable, "-c", code.replace("tiny_of_mine.VERSION", "1.5").replace("tiny_of_mine, ", "")], text=True
    ).split()
    assert there == here
    made = sorted((tmp_path / "made").iterdir())
    assert len(made) == 1
    stamp = made[0].stat().st_mtime_ns
    assert prepare_environment(asked, tmp_path / "made", ENVIRON)[0] == python
    assert made[0].stat().st_mtime_ns == stamp


@nightly
def test_what_may_have_changed_is_installed_anew(tmp_path):
    """A wheel that was built again has the same address and another content: no old environment is used."""
    asked = parse_environment([f"tiny-of-mine @ {wheel(tmp_path, '1.5').as_uri()}"], tmp_path)
    for text in ("first", "second"):
        with zipfile.ZipFile(tmp_path / "tiny_of_mine-1.5-py3-none-any.whl", "a") as file:
            file.writestr(f"tiny_{text}.py", "")
        python, _ = prepare_environment(asked, tmp_path / "made", ENVIRON)
        assert subprocess.run([python, "-c", f"import tiny_{text}"], check=False).returncode == 0


def test_a_requirement_that_something_else_hides_is_refused(tmp_path):
    """Another version comes first on the path there: what was asked for would not have been compared."""
    answer = 'echo \'{"missing": [], "unknown": [], "jaxgate": "0.1.0", "seen": {"tiny-of-mine": "1.4"}}\''
    asked = EnvironmentSpec(python=interpreter(tmp_path, answer), requirements=("tiny-of-mine==1.5",))
    with pytest.raises(UsageError, match=r"asked for tiny-of-mine==1.5, found 1.4 there; is another on PYTHONPATH"):
        prepare_environment(asked, tmp_path, os.environ)


@nightly
def test_a_failed_installation_leaves_nothing(tmp_path):
    """What cannot be installed is an error with pip's reason, and no half-made environment stays behind."""
    asked = EnvironmentSpec(requirements=(f"tiny-of-mine @ {(tmp_path / 'gone.whl').as_uri()}",))
    with pytest.raises(UsageError, match="cannot be installed"):
        prepare_environment(asked, tmp_path / "made", ENVIRON)
    assert list((tmp_path / "made").iterdir()) == []


def test_an_interpreter_beside_requirements_makes_their_environment(tmp_path):
    """Where it may: it is not the environment itself then."""
    asked = parse_environment(["jax==0.12.0.1", str(HERE)], tmp_path, may_make=True)
    assert (asked.base, asked.python, asked.requirements) == (HERE, None, ("jax==0.12.0.1",))
    assert parse_environment([str(HERE)], tmp_path, may_make=True).python == HERE


class Pip:
    """Another Python, whose pip lacks some versions; every command that it is given is kept."""

    def __init__(self, lacks=(), complaint="", pins=""):
        self.lacks, self.complaint, self.pins = set(lacks), complaint, pins
        self.commands, self.pinned = [], []

    def __call__(self, command, **_):
        said, status = "", 0
        self.commands.append(command[1:])
        if "print('%d.%d'" in command[-1]:
            return Finished(status=0, stdout="3.99\n", stderr="")
        if command[1:3] == ["-m", "venv"]:
            python = Path(command[3]) / "bin" / "python"
            python.parent.mkdir(parents=True)
            python.symlink_to(sys.executable)
        if "--no-deps" in command:
            self.pinned = Path(command[-1]).read_text().split()
            lost = next((pin for pin in self.pinned if pin.partition("==")[0] in self.lacks), None)
            said = self.pins if lost is None else f"ERROR: No matching distribution found for {lost}"
            status = int(bool(said))
        elif command[1:4] == ["-m", "pip", "install"]:
            said, status = self.complaint, int(bool(self.complaint))
        elif command[1] == "-c":
            seen = {"missing": [], "unknown": [], "jaxgate": version("jaxgate"), "seen": {"jax": "0.12.0.1"}}
            return Finished(status=0, stdout=json.dumps(seen), stderr="")
        return Finished(status=status, stdout="", stderr=said)


@pytest.fixture
def other_python(tmp_path, monkeypatch):
    """What is asked for, and where; ``Pip`` answers."""

    def make(pip):
        monkeypatch.setattr(venv, "run_child", pip)
        asked = parse_environment(["jax==0.12.0.1", str(HERE)], tmp_path, may_make=True)
        return prepare_environment(asked, tmp_path / "made", {})

    return make


def test_another_python_gets_all_packages_of_this_one_and_then_the_requirement(other_python):
    """First what is here, at its versions; what that Python lacks is left out; then the requirement, and local projects."""
    pip = Pip(lacks=["numpy", "scipy"])
    python, _ = other_python(pip)
    assert python.is_file()
    names = {pin.partition("==")[0] for pin in pip.pinned}
    assert {"pytest", "packaging"} <= names
    assert not names & {"jax", "jaxlib", "numpy", "scipy", "jaxgate"}
    installs = [command for command in pip.commands if "install" in command and "--no-deps" not in command]
    assert len(installs) == 1
    assert "jax==0.12.0.1" in installs[0]
    assert "-e" in installs[0]  # jaxgate itself, as it is installed here
    before = len(pip.commands)
    assert other_python(pip)[0] == python
    assert not any("install" in command for command in pip.commands[before:])


OF_ANOTHER_PYTHON = (
    "ERROR: Ignored the following versions that require a different python version: 0.11.0 Requires-Python >=3.12; "
    "0.12.0.1 Requires-Python >=3.12\n"
    "ERROR: Could not find a version that satisfies the requirement jax==0.12.0.1 (from versions: 0.10.1, 0.10.2)\n"
    "ERROR: No matching distribution found for jax==0.12.0.1\n"
)


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ({"complaint": OF_ANOTHER_PYTHON}, r"^jax==0\.12\.0\.1 is for Python >=3\.12, and this is [^\n]*$"),
        # What is compared would be the newest of all, and not what was asked for.
        (
            {"pins": "building\nERROR: Failed to build 'tiny'"},
            r"cannot be installed for .*\nERROR: Failed to build 'tiny'",
        ),
    ],
    ids=["a release for another Python", "pins that cannot be built"],
)
def test_what_another_python_cannot_have_is_said_in_pips_words(other_python, answers, message):
    with pytest.raises(UsageError, match=message):
        other_python(Pip(**answers))


NAMED = (
    f"jax==0.12.0.1 is for Python >=3.12, and this is {sys.version.split()[0]}; let another make its environment: "
    "jaxgate upgrade 'jax==0.12.0.1' --python python3.13"
)


@pytest.mark.parametrize(
    ("requirement", "complaint", "there", "end"),
    [
        ("jax==0.12.0.1", OF_ANOTHER_PYTHON, ("python3.11", "python3.13"), NAMED),
        (
            "jax==0.12.0.1",
            OF_ANOTHER_PYTHON,
            (),
            "no python3.12 or python3.13 here: install one, and name it with --python",
        ),
        ("jax==0.12.0.1", OF_ANOTHER_PYTHON.replace(">=3.12", ">=3.20"), (), "jaxgate runs on none of these"),
        ("jax==0.99", OF_ANOTHER_PYTHON, (), ""),
        ("numpy==9", OF_ANOTHER_PYTHON, (), ""),
        ("jax @ file:///x.whl", OF_ANOTHER_PYTHON, (), ""),
    ],
    ids=["on the path", "none here", "none for jaxgate", "no such version", "another package", "a file"],
)
def test_the_first_python_that_would_do_is_named_with_the_command(requirement, complaint, there, end):
    """Of the interpreters on the path the oldest that both the requirement and jaxgate run on; else what to install."""
    found = venv.why_other_python([requirement], complaint, lambda name: name if name in there else None)
    assert bool(found) is bool(end)
    assert found.endswith(end)


@pytest.mark.parametrize(
    ("uv", "settings", "asked"),
    [
        (None, "", ["pip"]),
        (0, "global.cert='/etc/ca.crt'\n", ["uv"]),
        (1, "", ["uv", "pip"]),
        (0, "global.extra-index-url='https://packages.example/simple'\n", ["pip"]),
        (0, ":env:.find-links='/wheels'\n", ["pip"]),
    ],
    ids=["no uv", "uv", "uv fails", "an index that uv does not know", "a folder that uv does not know"],
)
def test_uv_installs_where_it_looks_in_the_same_place_and_pip_has_the_last_word(uv, settings, asked, monkeypatch):
    """What uv cannot install is asked of pip; where pip's settings name other packages, uv is not asked at all."""
    tried = []

    def run(command):
        if command[1:4] == ["-m", "pip", "config"]:
            return Finished(status=0, stdout=settings, stderr="")
        tried.append("uv" if command[0] == "uv" else "pip")
        assert command[-1] == "jax==0.10.2"
        return Finished(status=uv or 0 if tried[-1] == "uv" else 0, stdout="", stderr="")

    monkeypatch.setattr(venv, "run_child", run)
    monkeypatch.setattr(venv.shutil, "which", lambda name: None if uv is None else name)
    assert venv._add(HERE, ["jax==0.10.2"]).status == 0
    assert tried == asked


@pytest.mark.parametrize(
    ("started", "options", "now", "found"),
    [
        # Options of this run of pytest stay here, the project's own reach it.
        ({"JAXGATE_STRICT": "1", "PYTEST_ADDOPTS": "-x", "PATH": "p"}, (), {}, {"PATH": "p"}),
        ({"PYTEST_ADDOPTS": "-x"}, ("--width", "a b"), {}, {"PYTEST_ADDOPTS": "--width 'a b'"}),
        # What a conftest set since is the code of this side; the size that this run chose is not.
        (
            {"XLA_FLAGS": "--before"},
            (),
            {"XLA_FLAGS": "--xla_slow", "JAXGATE_SIZE": "full"},
            {"XLA_FLAGS": "--before", "JAXGATE_SIZE": "full"},
        ),
    ],
)
def test_the_environment_of_this_run_reaches_it_as_it_was_at_first(monkeypatch, started, options, now, found):
    for name, value in now.items():
        monkeypatch.setenv(name, value)
    assert child_environment(settings(options, **started)) == found | {"COLUMNS": "400"}


@pytest.mark.parametrize(
    ("item", "there", "lost"),
    [
        ("jax_enable_x64=1", {"jax_enable_x64": "True"}, None),
        ("jax_enable_x64=t", {"jax_enable_x64": "True"}, None),
        ("jax_enable_x64=1", {"jax_enable_x64": "False"}, "jax_enable_x64=1 did not reach jax there, it has False"),
        ("XLA_FLAGS=--xla_a=1 --xla_b=2", {"XLA_FLAGS": "--xla_a=1 --xla_b=2"}, None),
        ("XLA_FLAGS=--xla_a=1 --xla_b=2", {"XLA_FLAGS": "--xla_a=1"}, "--xla_b=2 did not reach jax there"),
        ("xla_a=1", {}, "--xla_a=1 did not reach jax there"),
    ],
)
def test_a_setting_that_did_not_arrive_is_refused(item, there, lost, tmp_path):
    """A conftest may have set it back: an environment would be compared with itself."""
    save_baseline(tmp_path, baseline(environment={**ENVIRONMENT, **there}))
    asked = parse_environment([item], tmp_path)
    with nullcontext() if lost is None else pytest.raises(UsageError, match=lost):
        refuse_lost_settings(asked, [tmp_path])
