"""What the measurements of ``jaxgate bisect`` depend on: where any of it is another one, it is another search."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path

from jaxgate.keep import run_git
from jaxgate.processes.venv import installed_versions

_ACTS = ("JAX_", "XLA_", "JAXGATE_", "LIBTPU_", "CUDA_", "NVIDIA_", "TPU_")
"""Variables that begin so may change what is measured: under others it is another search."""


def measured_by(environ: Mapping[str, str]) -> list[str]:
    """The machine, Python, packages and variables. A package out of a local file is not among those that an index may have."""
    packages = {**installed_versions(), **{name: version(name) for name in ("jaxgate", "jax", "jaxlib")}}
    variables = [f"{name}={environ[name]}" for name in sorted(environ) if name.startswith(_ACTS)]
    pins = [f"{name}=={number}" for name, number in sorted(packages.items())]
    return [platform.node(), sys.version, sys.prefix, *pins, *variables]


def working_state(project: Path) -> list[str]:
    """What the project is now: its commit, its changes, and when files were written that git does not know."""
    head, changes = run_git(project, "rev-parse", "HEAD"), run_git(project, "diff", "HEAD")
    if head is None or changes is None:
        return [_written(file) for file in _modules_below(project)]
    top = Path(run_git(project, "rev-parse", "--show-toplevel") or project)
    names = run_git(top, "ls-files", "--others", "--exclude-standard", "-z") or ""
    return [head, changes, *(_written(top / name) for name in sorted(names.split("\0")) if name)]


def _written(file: Path) -> str:
    """A file with its size and the time of its last change; another one where it cannot be looked at."""
    try:
        about = file.stat()
    except OSError as error:
        return f"{file} {type(error).__name__}"
    return f"{file} {about.st_size} {about.st_mtime_ns}"


def _modules_below(folder: Path) -> Iterator[Path]:
    """The modules of a project, without hidden folders and virtual environments."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(one for one in folders if one[0] != "." and not Path(place, one, "pyvenv.cfg").exists())
        yield from (Path(place, name) for name in sorted(names) if name.endswith(".py"))
