"""Files on disk: written whole or not at all, and read only if they are regular and of bounded size, packed and unpacked.

A pull request decides what lies in a checkout: a pipe hangs whoever opens it, a link to a device has no end, a few bytes
unpack to gigabytes, and brackets in brackets exhaust Python's stack.
"""

from __future__ import annotations

import json
import os
import stat
import tempfile
import tomllib
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any


def write_atomic(path: Path, content: bytes) -> None:
    """Write aside, flush to disk, rename over the old file: an interruption at any point leaves that as it was."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, aside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(aside).chmod(0o644)
        os.replace(aside, path)  # noqa: PTH105 - the call whose atomicity POSIX promises
    except BaseException:
        Path(aside).unlink(missing_ok=True)
        raise


def append_page(file: Path, text: str) -> None:
    """Add text at the end of a file that others write, too. Raises OSError if it cannot be written."""
    with file.open("a", encoding="utf-8") as page:
        page.write(text)


TEXT_BYTES = 10_000_000
"""Most bytes of JSON, TOML, Markdown: the largest baseline of this project has 190 kB."""
RUN_BYTES = 64 * 1024**2
"""Most bytes of the results of a run, which take 5.3 kB a case."""
PROGRAM_BYTES = 64 * 1024**2
"""Most bytes of a program, packed or not: this project's largest has 51 kB, and what one captures is limited to 64 kB."""
ARRAYS_BYTES = 1024**3
"""Most bytes of the results of a reference: larger entries are forgotten anyway."""
OWN_BYTES = 1024**4
"""Most bytes that this run wrote for a process that it started: the arguments of a case may fill a device."""
_WITHOUT_WAITING = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
"""Flags to open a pipe that nobody writes to at once, and a terminal without making it this process's."""
_LARGEST = 2**63 - 1
"""The largest number that is read: beyond it floats overflow, and no count, time or size comes near."""
_GZIP = 16 + zlib.MAX_WBITS
_KINDS = {
    stat.S_IFDIR: "folder",
    stat.S_IFIFO: "pipe",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
}


class RefusedFileError(OSError):
    """A file that is not read; the text says what was expected and found, in one line."""


def read_bytes(path: Path, limit: int = TEXT_BYTES) -> bytes:
    """Read a regular file of at most so many bytes.

    Raises:
        RefusedFileError: If it is anything else, or larger.
        OSError: If it cannot be read.
    """
    descriptor = os.open(path, os.O_RDONLY | _WITHOUT_WAITING)
    try:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            kind = _KINDS.get(stat.S_IFMT(about.st_mode), "file of another kind")
            raise RefusedFileError(f"expected a regular file, found a {kind}")
        if about.st_size > limit:
            raise RefusedFileError(f"expected at most {limit:,} bytes, found {about.st_size:,}")
        with open(descriptor, "rb", closefd=False) as file:
            content = file.read(about.st_size + 1)
    finally:
        os.close(descriptor)
    if len(content) != about.st_size:  # what /proc shows has no size
        raise RefusedFileError(f"expected a file of {about.st_size:,} bytes, found {len(content):,} or more")
    return content


def read_text(path: Path, *, errors: str = "strict") -> str:
    """Read a text, as ``read_bytes`` does. Raises UnicodeDecodeError if it is not UTF-8, unless ``errors`` says otherwise."""
    return read_bytes(path).decode(errors=errors)


def read_json(
    path: Path, *, pairs: Callable[[list[tuple[str, Any]]], Any] | None = None, limit: int = TEXT_BYTES
) -> Any:
    """Read a JSON file of at most so many bytes; ``pairs`` makes the objects.

    Raises:
        OSError: If it cannot be read, as ``read_bytes`` says.
        ValueError: If it is not JSON, nested too deeply, or has a number beyond 64 bits.
    """
    try:
        return json.loads(read_bytes(path, limit), object_pairs_hook=pairs, parse_int=_bounded)
    except RecursionError:
        raise ValueError("is nested too deeply") from None


def parse_toml(text: str) -> dict[str, Any]:
    """Read TOML. Raises ValueError if it is not TOML, nested too deeply, or has a number of thousands of digits."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("is nested too deeply") from None


def unpack_gzip(content: bytes, limit: int = PROGRAM_BYTES) -> bytes:
    """Unpack one gzip member.

    Raises:
        RefusedFileError: If there are more bytes than ``limit``.
        zlib.error: If it is damaged.
        EOFError: If its end is missing, or something follows it.
    """
    reader = zlib.decompressobj(_GZIP)
    found = reader.decompress(content, limit + 1)
    if len(found) > limit:
        raise RefusedFileError(f"expected at most {limit:,} bytes unpacked, found more")
    if not reader.eof or reader.unused_data:
        raise EOFError("expected one whole gzip member")
    return found


def may_be_quoted(path: Path) -> bool:
    """Whether an error may show what a file says: a link may lead to somebody's passwords."""
    return _real(path) == _real(path.parent) / path.name


def is_linked(path: Path, below: Path) -> bool:
    """Whether a link between a folder and a path in it leads elsewhere: what lies there is somebody else's, and stays."""
    return _real(path.parent) != _real(below) / path.parent.relative_to(below)


def _real(path: Path) -> Path:
    """A path without links; those that go in a circle are left, where ``Path.resolve`` raises."""
    return Path(os.path.realpath(path))


def _bounded(digits: str) -> int:
    number = int(digits) if len(digits) < len(str(_LARGEST)) + 2 else _LARGEST + 1
    if abs(number) > _LARGEST:
        raise ValueError("a number is beyond 64 bits")
    return number
