"""What the arguments of a command, the project and the environment say: what to collect, on what, and where baselines are."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from jaxgate.ext.history.model import HISTORY_PLACE
from jaxgate.keep.files import parse_toml, read_text
from jaxgate.model.outcome import UsageError
from jaxgate.processes.jax_query import ask_hardware

SUITE = "perf"
_TAKE_A_VALUE = frozenset({"-c", "-k", "-m", "-n", "-o", "-p", "-r", "-W"})
DEFAULT, ARTIFACTS = "baselines", "perf-artifacts"
_PLATFORMS = {"cpu": "cpu", "cuda": "gpu", "gpu": "gpu", "rocm": "gpu", "tpu": "tpu"}


class IniError(Exception):
    """``pyproject.toml`` cannot be read, so where the baselines are is not known."""


def suite(arguments: Sequence[str]) -> list[str]:
    """The folder of the suite, where the arguments name nothing to collect and there is one."""
    return [SUITE] if not divided(arguments)[0] and Path(SUITE).is_dir() else []


def takes_a_value(argument: str) -> bool:
    """Whether the next argument is the value of this one."""
    return argument in _TAKE_A_VALUE


def divided(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """What the arguments say to collect, and the rest, where options and their values are."""
    paths: list[str] = []
    rest: list[str] = []
    for before, argument in pairwise(["", *arguments]):
        is_value = argument.startswith("-") or takes_a_value(before)
        there = os.path.exists(argument.partition("::")[0])  # noqa: PTH110 - what can be no path is no error there
        (rest if is_value or not there else paths).append(argument)
    return paths, rest


def project_of(start: Path) -> Path:
    """The folder that pytest takes for its root: the nearest one with a ``pyproject.toml``."""
    return next((folder for folder in (start, *start.parents) if (folder / "pyproject.toml").is_file()), start)


def has_option(arguments: Sequence[str], *names: str) -> bool:
    """Whether one of these options is among the arguments."""
    return any(argument.partition("=")[0] in names for argument in arguments)


def value_of(arguments: Sequence[str], name: str) -> str:
    """The value of an option, given as ``--name=value`` or ``--name value``; the last one counts. Empty without one."""
    return next(reversed(values_of(arguments, name)), "")


def values_of(arguments: Sequence[str], name: str) -> list[str]:
    """All values of an option that may be given several times."""
    found = []
    for argument, following in pairwise([*arguments, ""]):
        if argument.startswith(f"{name}="):
            found.append(argument.partition("=")[2])
        elif argument == name:
            found.append(following)
    return found


def without_option(arguments: Sequence[str], name: str) -> list[str]:
    """The arguments without an option and its values."""
    return [
        argument
        for before, argument in pairwise(["", *arguments])
        if name not in (argument, before) and not argument.startswith(f"{name}=")
    ]


def baselines_folder(arguments: Sequence[str], environ: Mapping[str, str] = os.environ) -> Path:
    """Where pytest will look for baselines; where it cannot read its settings it will say so itself."""
    return _folder(arguments, environ, "baselines", DEFAULT)


def artifacts_folder(arguments: Sequence[str], environ: Mapping[str, str] = os.environ) -> Path:
    """Where pytest will leave bundles and results; where it cannot read its settings it will say so itself."""
    return _folder(arguments, environ, "artifacts", ARTIFACTS)


def _folder(arguments: Sequence[str], environ: Mapping[str, str], name: str, default: str) -> Path:
    named = value_of(arguments, f"--perf-{name}")
    try:
        return Path(named) if named else _usual(Path(), environ, name, default)
    except IniError:
        return Path(default)


def history_place(start: Path, environ: Mapping[str, str] = os.environ) -> tuple[str, Path]:
    """Where pytest would remember a run, and what a path among that is relative to.

    Raises:
        IniError: If ``pyproject.toml`` cannot be read.
    """
    return _named(start, environ, "history", HISTORY_PLACE), project_of(start)


def usual_folder(start: Path, environ: Mapping[str, str] = os.environ) -> Path:
    """Where pytest would look: the environment, ``perf_baselines`` of the nearest ``pyproject.toml``, the default.

    Raises:
        IniError: If that file cannot be read.
    """
    return _usual(start, environ, "baselines", DEFAULT)


def usual_programs(start: Path, environ: Mapping[str, str] = os.environ) -> str:
    """The store of programs beside git, as pytest would find it; empty where there is none.

    Raises:
        IniError: If that file cannot be read.
    """
    return _named(start, environ, "programs", "")


def _usual(start: Path, environ: Mapping[str, str], name: str, default: str) -> Path:
    return project_of(start) / _named(start, environ, name, default)


def _named(start: Path, environ: Mapping[str, str], name: str, default: str) -> str:
    pyproject = project_of(start) / "pyproject.toml"
    return environ.get(f"JAXGATE_{name.upper()}", "").strip() or _ini(pyproject, f"perf_{name}") or default


def _ini(file: Path, key: str) -> str:
    """An ini key of the project; empty where there is none."""
    if not file.is_file():
        return ""
    try:
        content = parse_toml(read_text(file))
    except (OSError, ValueError) as error:
        raise IniError(f"{file.name} cannot be read: {error}") from error
    section = _table(_table(content, "tool"), "pytest")
    found = section.get(key) or _table(section, "ini_options").get(key)
    return found if isinstance(found, str) else ""


def _table(content: dict[str, Any], name: str) -> dict[str, Any]:
    found = content.get(name)
    return found if isinstance(found, dict) else {}


def platform(environ: Mapping[str, str] = os.environ, ask: Callable[[], str] | None = None) -> str:
    """Where JAX will run: by its variable, else as a process of its own sees it, which lets the devices go."""
    named = environ.get("JAX_PLATFORMS", "").lower().strip()  # of several, JAX may take another than the first
    return _PLATFORMS[named] if named in _PLATFORMS else (ask or _ask)()


def _ask() -> str:
    try:
        return ask_hardware().platform
    except UsageError:
        return "unknown"
