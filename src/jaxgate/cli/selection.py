"""What the arguments of a command, the project and the environment tell: what to collect, on what, and where baselines are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

SUITE = "perf"
_TAKE_A_VALUE = frozenset({"-c", "-k", "-m", "-n", "-o", "-p", "-r", "-W"})
_PLATFORMS = {"cpu": "cpu", "cuda": "gpu", "gpu": "gpu", "rocm": "gpu", "tpu": "tpu"}


def suite(arguments: Sequence[str]) -> list[str]:
    """The folder of the suite, where the arguments name nothing to collect and there is one."""
    return [SUITE] if not names_a_path(arguments) and Path(SUITE).is_dir() else []


def names_a_path(arguments: Sequence[str]) -> bool:
    """Whether pytest is told what to collect: an argument that is neither an option nor the value of one."""
    return any(
        not argument.startswith("-") and before not in _TAKE_A_VALUE and Path(argument.partition("::")[0]).exists()
        for before, argument in pairwise(["", *arguments])
    )


def has_option(arguments: Sequence[str], *names: str) -> bool:
    """Whether one of these options is among the arguments."""
    return any(argument.partition("=")[0] in names for argument in arguments)


def value_of(arguments: Sequence[str], name: str) -> str:
    """The value of an option, given as ``--name=value`` or ``--name value``; the last one counts. Empty without one."""
    found = ""
    for argument, following in pairwise([*arguments, ""]):
        if argument.startswith(f"{name}="):
            found = argument.partition("=")[2]
        elif argument == name:
            found = following
    return found


def baselines_folder(arguments: Sequence[str] = (), environ: Mapping[str, str] = os.environ) -> Path:
    """Where pytest will look for baselines, from the root folder of the project."""
    return Path(value_of(arguments, "--perf-baselines") or environ.get("JAXGATE_BASELINES") or _configured())


def _configured(file: Path = Path("pyproject.toml")) -> str:
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))["tool"]["pytest"]
    except (OSError, ValueError, KeyError):
        return "baselines"
    return str(tables.get("ini_options", tables).get("perf_baselines") or "baselines")


def platform(environ: Mapping[str, str] = os.environ, ask: Callable[[], str] | None = None) -> str:
    """Where JAX will run: by its variable, else as a process of its own sees it, which lets the devices go."""
    named = environ.get("JAX_PLATFORMS", "").lower().strip()  # of several, JAX may take another than the first
    return _PLATFORMS[named] if named in _PLATFORMS else (ask or _ask)()


def _ask() -> str:
    command = [sys.executable, "-m", "jaxgate.cli.hardware"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        return str(json.loads(done.stdout.strip().splitlines()[-1])["platform"])
    except (IndexError, ValueError, KeyError, TypeError):
        return "unknown"
