"""Source lines for people: the innermost frame that belongs to the project."""

from __future__ import annotations

import hashlib
import inspect
import os
import re
import sys
import sysconfig
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from jaxgate.model.words import plural

MAX_PLACES = 3
"""Lines that are named of one thing."""

_PACKAGES = frozenset({"site-packages", "dist-packages"})
_FRAME = re.compile(r'"([^"]+\.py)":(\d+)')


_OWN = str(Path(__file__).resolve().parents[1]) + os.sep


def is_own_file(file: str) -> bool:
    """Whether a file is one of jaxgate's."""
    return file.startswith(_OWN)


@cache
def _foreign() -> tuple[str, ...]:
    """Folders whose code is not the project's: the standard library and installed packages."""
    paths = sysconfig.get_paths()
    here = str(Path(__file__).resolve().parents[1])
    laid_over = {
        path for path in sys.path if Path(path).name in _PACKAGES
    }  # those of another environment, in one laid over it
    return tuple({paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")} | {here} | laid_over)


@cache
def is_project_file(file: str) -> bool:
    """Whether a file is the user's own code rather than a library's."""
    if not file or file.startswith("<"):
        return False
    return not any(Path(file).is_relative_to(folder) for folder in _foreign())


@cache
def package_of(file: str) -> str:
    """The installed package that a file belongs to: ``flax``; empty if it belongs to none."""
    parts = Path(file).parts
    places = [number for number, part in enumerate(parts) if part in _PACKAGES]
    return parts[places[-1] + 1].removesuffix(".py") if places and places[-1] + 1 < len(parts) else ""


@cache
def short_path(file: str) -> str:
    """The path relative to the working folder where that is shorter."""
    relative = os.path.relpath(file)
    return file if relative.startswith("..") else relative


HASHED_PATH = "=path:"
"""The text that stands for a path in options, before its hash."""


def without_folders(options: str) -> str:
    """Options as text for a public file: values that are paths become hashes, which differ as the paths do."""

    def hashed(match: re.Match[str]) -> str:
        return f"{HASHED_PATH}{hashlib.blake2b(match[1].encode(), digest_size=4).hexdigest()}"

    return re.sub(r"=([^\s;]*[/\\][^\s;]*)", hashed, options)


def project_line(location: str) -> str:
    """Pick ``file:line`` out of an MLIR location, or nothing if no frame is the project's."""
    for file, line in _FRAME.findall(location):
        if is_project_file(file):
            return f"{short_path(file)}:{line}"
    return ""


def calling_line() -> str:
    """The innermost line of the project on the stack, or nothing.

    Looks no further than jaxgate's own frames: above them stands whoever asked for the measurement.
    """
    frame = inspect.currentframe()
    while frame is not None and is_own_file(frame.f_code.co_filename):
        frame = frame.f_back
    while frame is not None and not is_own_file(frame.f_code.co_filename):
        if is_project_file(frame.f_code.co_filename):
            return f"{short_path(frame.f_code.co_filename)}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def at(line: str) -> str:
    """`` at file:line`` where it is known."""
    return f" at {line}" if line else ""


def places(lines: Iterable[str]) -> str:
    """Where something stands, in one text: each line once, in the order given; the first few named, the rest counted."""
    found = [line for line in dict.fromkeys(lines) if line]
    more = len(found) - MAX_PLACES
    return ", ".join(found[:MAX_PLACES]) + (f" and {plural(more, 'more line')}" if more > 0 else "")
