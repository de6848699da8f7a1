"""The other environment of a comparison: what the user asked for.

Each ``--perf-against``, or argument of ``jaxgate upgrade``, adds one item: a virtual environment (or its interpreter), a
requirement, or a setting ``NAME=VALUE``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

from jaxgate.model.outcome import UsageError
from jaxgate.model.words import cut

OPTION = "--perf-against"
LAUNCHES = 5
"""Processes of each environment: chance alone separates them once in 252."""
_EXPECTED = (
    "the folder of a virtual environment, a requirement such as jax==0.10.2, or NAME=VALUE (XLA_FLAGS, xla_…, jax_…)"
)
_SETTING = re.compile(r"((?:jax|xla)_[a-z0-9_]+|[A-Z_][A-Z0-9_]*)=(?!=)(.*)", re.DOTALL)
"""Other names in lower case are no settings: ``jax=0.10.2`` lacks a sign, and would change nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentSpec:
    """What the user asked of the other environment."""

    python: Path | None = None  # its interpreter, if one was named
    requirements: tuple[str, ...] = ()  # what to install
    base: Path | None = None  # the interpreter that makes an environment for them; `None` for this one
    variables: Mapping[str, str] = field(default_factory=dict)  # environment variables to set
    flags: tuple[str, ...] = ()  # XLA options to add to `XLA_FLAGS`
    settings: tuple[str, ...] = ()  # names of JAX settings among the variables


def parse_environment(items: Sequence[str], folder: Path, *, may_make: bool = False) -> EnvironmentSpec:
    """Understand the items of a command line; relative paths start in ``folder``.

    With ``may_make`` an interpreter beside requirements is the one that makes their environment.

    Raises:
        UsageError: If one is neither a path, a requirement with a version nor a setting.
    """
    python: Path | None = None
    requirements, variables, flags, settings = [], {}, [], []
    for item in items:
        setting = _SETTING.fullmatch(item)
        if setting is not None:
            name, value = setting.groups()
            if name.startswith("xla_"):
                flags.append(f"--{name}={value}")
                continue
            if name.upper().startswith("JAX_"):
                settings.append(name.lower())
                name = name.upper()
            variables[name] = value
        elif is_requirement(item):
            requirements.append(item)
        elif os.sep in item or os.path.exists(folder / item):  # noqa: PTH110 - what can be no path is no error there
            if python is not None:
                raise UsageError(f"expected one environment, found a second: {item}")
            python = interpreter(_path(item, folder))
        else:
            raise UsageError(f"expected {_EXPECTED}, found {cut(repr(item), 200)}")
    if python is not None and requirements and not may_make:
        raise UsageError("expected an environment or requirements, found both; install them into it")
    return EnvironmentSpec(
        python=None if requirements else python,
        requirements=tuple(requirements),
        base=python if requirements else None,
        variables=variables,
        flags=tuple(flags),
        settings=tuple(settings),
    )


def interpreter(path: Path) -> Path:
    """The interpreter of a virtual environment, or the one that the path names.

    Raises:
        UsageError: If there is none.
    """
    if (found := _interpreter_at(path)) is None:
        raise UsageError(f"expected a virtual environment or an interpreter, found none at {cut(str(path), 200)}")
    return found


def _interpreter_at(path: Path) -> Path | None:
    for candidate in (path / "bin" / "python", path / "Scripts" / "python.exe", path):
        if os.path.isfile(candidate) and os.access(candidate, os.X_OK):  # noqa: PTH113 - what can be no path is no error there
            return candidate.absolute()  # not resolved: a virtual environment's interpreter is a link
    return None


def _path(item: str, folder: Path) -> Path:
    return folder / os.path.expanduser(item)  # noqa: PTH111 - an unknown user is no error there


def is_environment(item: str, folder: Path) -> bool:
    """Whether an item says what an environment has, and is no revision: a branch may have the form of a path."""
    return is_setting(item) or is_requirement(item) or _interpreter_at(_path(item, folder)) is not None


def is_requirement(item: str) -> bool:
    """Whether an item names a package with a version or address; a bare name may be a folder mistyped."""
    try:
        found = Requirement(item)
    except InvalidRequirement:
        return False
    return bool(found.specifier or found.url)


def is_setting(item: str) -> bool:
    """Whether an item is ``NAME=VALUE`` of a variable, an XLA option or a JAX setting."""
    return _SETTING.fullmatch(item) is not None
