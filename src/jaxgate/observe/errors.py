"""Exceptions of a workload, turned into one clear reason."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version

from jaxgate.model import ExhaustedError, InvalidCaseError
from jaxgate.observe.out_of_memory import read_exhausted
from jaxgate.observe.source_lines import is_project_file, package_of, short_path

_FIRST_LINES = 2
"""Lines of an exception's text that are kept: JAX's go on for a page, the traceback keeps them all."""


class NotOnTargetError(Exception):
    """A case has no program that the compiler of a target could be given; the text says why."""


@contextmanager
def guarded(stage: str) -> Iterator[None]:
    """Turn whatever the block raises into ``InvalidCaseError``; interrupts pass through, and that a target has no program.

    Out of memory becomes ``ExhaustedError``, with what the compiler or the allocator says of it.
    """
    try:
        yield
    except (InvalidCaseError, NotOnTargetError):
        raise
    except Exception as error:
        exhausted = read_exhausted(error)
        if exhausted is not None:
            where = project_line_of(error)
            reason = f"{exhausted.reason}{f' (at {where})' if where else ''}"
            raise ExhaustedError(stage, reason, exhausted.largest) from error
        raise InvalidCaseError(stage, describe(error)) from error


def describe(error: Exception) -> str:
    """An exception in one line: its kind, the start of its text, the project's line that raised it."""
    lines = str(error).strip().splitlines()
    if any("Traceback (most recent call last)" in line for line in lines):
        lines = [line for line in lines if line.strip()][-1:]  # raised on the host, by a callback
    kept = [line.strip() for line in lines[:_FIRST_LINES] if line.strip()]
    if kept and kept[-1].endswith(":"):  # what it announces follows, after an empty line
        kept += [line.strip() for line in lines[_FIRST_LINES:] if line.strip()][:1]
    text = " ".join(kept)
    kind = type(error).__name__
    if isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in text:
        kind = "out of memory"
    where = project_line_of(error)
    return f"{kind}{': ' + text if text else ''}{f' (at {where})' if where else ''}"


def raised_in(error: BaseException) -> str:
    """The installed package whose code raised an exception, with its version: ``flax 0.12.8``; empty if none did."""
    frames = traceback.extract_tb(error.__traceback__)
    package = package_of(frames[-1].filename) if frames else ""
    try:
        return f"{package} {version(package)}" if package else ""
    except PackageNotFoundError:  # a module that is not called as what brings it
        return package


def project_line_of(error: BaseException) -> str:
    """The innermost frame that belongs to the project."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.lineno is not None and is_project_file(frame.filename):
            return f"{short_path(frame.filename)}:{frame.lineno}"
    return ""
