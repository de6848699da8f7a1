"""The peak of a case on its way from a fresh process: written once, read once, never stored."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from pydantic import TypeAdapter

from jaxgate.keep.atomic import write_atomic
from jaxgate.model.allocator import PeakRecord


@cache
def _adapter() -> TypeAdapter[PeakRecord]:
    return TypeAdapter(PeakRecord)


def write_peak(path: Path, record: PeakRecord) -> None:
    """Write what was found out."""
    write_atomic(path, _adapter().dump_json(record))


def read_peak(path: Path) -> PeakRecord | None:
    """Read it; ``None`` if the process did not come to write it.

    Raises:
        ValueError: If the file is not what ``write_peak`` writes.
    """
    return _adapter().validate_json(path.read_bytes()) if path.exists() else None
