"""Native code that a program calls: the targets of its custom calls, and the libraries that hold them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from jaxgate.observe.compat import native_address
from jaxgate.observe.program.export import ALLOWED_CALLS

_OWN_CALLS = re.compile(
    ALLOWED_CALLS.pattern + r"|xla\.[\w.]+|xla_(?:ffi_)?python_\w+|mosaic_gpu\w*|AllocateBuffer|LayoutConstraint|TopK"
    r"|MoveTo(?:Host|Device)|ShardBarrier(?:From|To)|X64\w+|Pin|Unpin|CreateBuffer|InspectSharding"
)
"""Targets whose code comes with JAX or XLA, whose versions are in the environment, or is Python and counted as such."""
_STABLEHLO_TARGET = re.compile(r"stablehlo\.custom_call @(\S+)")
_MAPPED = Path("/proc/self/maps")
"""Where Linux lists which file is loaded at which addresses; other systems have no such file."""
_DIGITS = 16


def find_native_code(operations: Iterable[str], platform: str) -> dict[str, str]:
    """Find the code of a program's custom calls that comes with neither JAX nor XLA.

    Returns:
        By target, the file name of its library and a hash of the content: ``libscale.so 0123456789abcdef``. The text is
        empty where the library is not known. What a library calls in others is not in its hash.
    """
    called = {match[1] for label in operations if (match := _STABLEHLO_TARGET.match(label))}
    return {name: _library(name, platform) for name in sorted(called) if not _OWN_CALLS.fullmatch(name)}


def _library(target: str, platform: str) -> str:
    address = native_address(target, platform)
    try:
        path = None if address is None else _file_at(address)
        return "" if path is None else f"{path.name} {_digest(path, path.stat().st_mtime_ns)}"
    except OSError:  # it cannot be read, or is gone by now
        return ""


def _file_at(address: int) -> Path | None:
    """The file that is loaded at an address; ``None`` if there is none, or it was replaced since it was loaded."""
    if not _MAPPED.exists():
        return None
    for line in _MAPPED.read_text().splitlines():
        span, _, _, _, _, *name = line.split(maxsplit=5)
        first, last = (int(end, 16) for end in span.split("-"))
        if first <= address < last:
            return Path(name[0]) if name and Path(name[0]).is_file() else None
    return None


@cache
def _digest(path: Path, _written_ns: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:_DIGITS]
