"""Where a requirement has no release for a Python: which one would do, and how it is named here."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import metadata

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet

_IGNORED = re.compile(r"([\w.!+-]+) Requires-Python ([^;\n]+)")
"""A version that pip passed over, and the Pythons that it is for."""
_MINORS = range(8, 40)


def why_other_python(
    requirements: Sequence[str], complaint: str, which: Callable[[str], str | None] = shutil.which
) -> str:
    """Say that a requirement is for another Python, from what pip complained of; empty if that is not it.

    Args:
        requirements: What was to be installed.
        complaint: pip's, on stderr.
        which: Finds a command on the path.
    """
    passed_over = _IGNORED.findall(complaint)
    for item in requirements:
        try:
            wanted = Requirement(item)
        except InvalidRequirement:
            continue
        if wanted.url or f"No matching distribution found for {wanted.name}" not in complaint:
            continue
        fits = [pythons for number, pythons in passed_over if wanted.specifier.contains(number, prereleases=True)]
        if fits:
            return _described(item, fits[-1].strip().rstrip(")"), which)
    return ""


def _described(item: str, pythons: str, which: Callable[[str], str | None]) -> str:
    try:
        allowed = SpecifierSet(pythons) & SpecifierSet(metadata("jaxgate")["Requires-Python"] or "")
    except InvalidSpecifier:
        return f"{item} is for Python {pythons}, and not for {sys.version.split()[0]}"
    names = [f"python3.{minor}" for minor in _MINORS if f"3.{minor}" in allowed]
    there = next(filter(which, names), None)
    said = f"{item} is for Python {pythons}, and this is {sys.version.split()[0]}"
    if there is not None:
        return f"{said}; let another make its environment: jaxgate upgrade {item!r} --python {there}"
    if names:
        return f"{said}; found no {' or '.join(names)} here: install one, and name it with --python"
    return f"{said}; jaxgate runs on none of these"
