"""Exceptions of a workload, turned into one clear reason.

Out of memory has one form: what was asked for, what there was, and the compiler's or allocator's own list. The texts
differ by backend, by release, and by who ran out: the TPU compiler, a runtime's allocator, the shared memory of a
kernel, the host. What a text does not say stays ``None``.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from jaxgate.model.measurement import ExhaustedError, InvalidCaseError
from jaxgate.observe.source_lines import is_project_file, package_of, short_path

HOST = "host"
MAX_LARGEST = 10
"""Allocations that are kept of a list; the compilers print up to twenty, a page each."""

_STATUS = re.compile(r"RESOURCE_EXHAUSTED|Resource exhausted")
_SIZE = r"(\d[\d,]*(?:\.\d+)?)\s*([KMGTP]?i?B?(?:ytes)?)\b"
_SCALE = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50}
"""XLA's G and GiB are the same: powers of two."""

_USED = re.compile(rf"Used {_SIZE} of {_SIZE} (\w+)")
_REQUIRED = re.compile(rf"memory required[^(]*\({_SIZE}\) exceeds available (\w+) \({_SIZE}\)")
_KERNEL = re.compile(r"(\w+ memory) size limit exceeded: requested (\d+), available:? (\d+)", re.IGNORECASE)
_EXACT = re.compile(r"\((?:rounded to )?(\d+)B?\)")
_ASKED = re.compile(rf"(?:to allocate|to reserve|allocating|Unable to allocate|allocate request for) {_SIZE}")
_FREE = re.compile(rf"There (?:are|is) {_SIZE} free")
_CUDA = re.compile(r"Free memory/Total memory: (\d+)/(\d+)")

_ENTRY_SIZE = re.compile(rf"^(?:\d+\.\s*)?Size: {_SIZE}")
_FIELD = re.compile(r"^(Operator|Shape|Entry Parameter Subshape|XLA [Ll]abel|Allocation type): (.*)$")
_OPERATOR = re.compile(r'op_name="((?:[^"\\]|\\.)*)"(?:.*?source_file="([^"]*)" source_line=(\d+))?')


@dataclass(frozen=True, slots=True, kw_only=True)
class Exhausted:
    """What an error says of memory that ran out."""

    text: str  # the first line of the error
    asked_bytes: int | None = None  # what did not fit; `None` if it does not say
    limit_bytes: int | None = None  # what the device, or the kind of memory, has at most; `None` if it does not say
    free_bytes: int | None = None  # what was left of it; `None` if it does not say
    space: str = ""  # which memory: `hbm`, `vmem`, `shared memory`, `host`; empty if it does not say
    largest: tuple[str, ...] = ()  # the largest allocations by its own list, one line each

    @property
    def reason(self) -> str:
        """One line: ``RESOURCE_EXHAUSTED: asked for 4.4 TB, the device has 16.9 GB``."""
        head = "out of memory on the host" if self.space == HOST else "RESOURCE_EXHAUSTED"
        if self.asked_bytes is None:
            return f"{head}: {self.text}" if self.text else head
        parts = [f"{head}: asked for {size_text(self.asked_bytes)}"]
        if self.limit_bytes is not None:
            parts.append(f"the device has {size_text(self.limit_bytes)}{f' of {self.space}' if self.space else ''}")
        if self.free_bytes is not None:
            parts.append(f"{size_text(self.free_bytes)} free")
        return ", ".join(parts)


def size_text(nbytes: float) -> str:
    """``4.4 TB``: two digits at least, powers of ten, as everywhere in a report."""
    if nbytes < 1000:  # noqa: PLR2004 - below the first unit
        return f"{nbytes:.0f} B"
    for unit in ("kB", "MB", "GB", "TB", "PB"):
        nbytes /= 1000
        if round(nbytes, 1) < 1000 or unit == "PB":  # noqa: PLR2004 - the step between units
            break
    return f"{nbytes:.1f} {unit}"


def read_exhausted(error: Exception | str) -> Exhausted | None:
    """Read an error of the compiler, the runtime or the host's allocator; ``None`` if it is about something else."""
    text = str(error).strip()
    lines = [line for line in text.splitlines() if line.strip()]
    if any("Traceback (most recent call last)" in line for line in lines):
        lines = lines[-1:]  # raised on the host by a callback: only its last line is the error
    text = "\n".join(lines)
    if isinstance(error, MemoryError):
        return Exhausted(text=text.partition("\n")[0], asked_bytes=_asked(text), space=HOST)
    status = _STATUS.search(text)
    if status is None:
        return None
    said = text[status.end() :].lstrip(": ")
    asked, limit, space = _against(said)
    free = _FREE.search(said)
    cuda = _CUDA.search(said)
    return Exhausted(
        text=said.partition("\n")[0] or "it says no more",
        asked_bytes=_asked(said) if asked is None else asked,
        limit_bytes=int(cuda[2]) if limit is None and cuda else limit,
        free_bytes=_size(*free.groups()) if free else int(cuda[1]) if cuda else None,
        space=space,
        largest=tuple(_largest(said)),
    )


def _against(said: str) -> tuple[int | None, int | None, str]:
    """What was asked for, the limit, and of which memory, where one sentence holds all three."""
    if found := _USED.search(said):
        return _size(found[1], found[2]), _size(found[3], found[4]), found[5].lower()
    if found := _REQUIRED.search(said):
        return _size(found[1], found[2]), _size(found[4], found[5]), found[3].lower()
    if found := _KERNEL.search(said):
        return int(found[2]), int(found[3]), found[1].lower()
    return None, None, ""


def _asked(said: str) -> int | None:
    found = _ASKED.search(said)
    if found is None:
        return None
    exact = _EXACT.match(said, found.end() + 1)  # "2.21GiB (rounded to 2368997376)": the number in full
    return int(exact[1]) if exact else _size(*found.groups())


def _size(number: str, unit: str) -> int:
    return round(float(number.replace(",", "")) * _SCALE.get(unit[:1], 1))


def _largest(said: str) -> Iterator[str]:
    """One line for each allocation that the error lists, in its order: the largest first."""
    entries: list[dict[str, str]] = []
    for line in map(str.strip, said.splitlines()):
        if _ENTRY_SIZE.match(line):
            entries.append({"size": line})
        elif entries and (field := _FIELD.match(line)):
            entries[-1].setdefault(field[1].lower(), field[2])
    for entry in entries[:MAX_LARGEST]:
        size = _ENTRY_SIZE.match(entry["size"])
        if size is not None:
            yield " ".join(filter(None, (size_text(_size(*size.groups())), *_describe(entry))))


def _describe(entry: dict[str, str]) -> Iterator[str]:
    """Shape, operation and place of an allocation, as far as they are listed."""
    shape = entry.get("shape") or entry.get("entry parameter subshape", "")
    yield shape.partition("{")[0]
    operator = _OPERATOR.search(entry.get("operator", ""))
    if operator is not None:
        yield re.sub(r"\[\w+=.*", "", operator[1])  # the parameters of the primitive go on for lines
        file = operator[2] or ""
        yield f"at {short_path(file)}:{operator[3]}" if is_project_file(file) else ""
    elif "entry parameter subshape" in entry:
        yield "argument"
    elif "xla label" in entry:
        yield entry["xla label"].partition(" = ")[0]
    if "allocation type" in entry:
        yield f"({entry['allocation type']})"


_FIRST_LINES = 2
"""Lines of an exception's text that are kept: JAX's go on for a page, the traceback keeps them all."""


class NotOnTargetError(Exception):
    """A case has no program that the compiler of a target could be given; the text says why."""


@contextmanager
def guarded(stage: str) -> Iterator[None]:
    """Turn any error of the block into ``InvalidCaseError``, but for interrupts and ``NotOnTargetError``.

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
