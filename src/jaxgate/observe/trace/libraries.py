"""The packages that a traced function comes from, with their versions: a newer one changes programs, and no source of the project."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from typing import Any

from jaxgate.observe.machine.environment import has_version
from jaxgate.observe.source_lines import is_own_file, package_of

_LOOKED_AT = 100
"""Equations whose frames are looked through: spread over all of them, some milliseconds."""


def libraries_of(equations: Sequence[Any]) -> dict[str, str]:
    """Versions of the packages whose functions made some of these equations, but for those that the environment names."""
    found: set[str] = set()
    for equation in equations[:: len(equations) // _LOOKED_AT + 1]:
        for frame in getattr(equation.source_info.traceback, "frames", ()):  # the innermost first
            if is_own_file(frame.file_name):
                break  # whoever asked for the measurement stands above
            found.add(package_of(frame.file_name))
    return {name: known for name in sorted(found) if name and not has_version(name) and (known := _version(name))}


@cache
def _version(package: str) -> str:
    """Of the distribution that a package came with; empty if it came with none."""
    try:
        return version(package)
    except PackageNotFoundError:
        names = _distributions().get(package, ())
        return version(names[0]) if names else ""


@cache
def _distributions() -> Mapping[str, Sequence[str]]:
    return packages_distributions()
