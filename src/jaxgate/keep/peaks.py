"""The peak of a case on its way from a fresh process: written once, read once, never stored."""

from __future__ import annotations

from pathlib import Path

from jaxgate.keep.atomic import write_atomic
from jaxgate.keep.strict import adapter_of
from jaxgate.model import PeakRecord


def write_peak(path: Path, record: PeakRecord) -> None:
    """Write what was found out."""
    write_atomic(path, adapter_of(PeakRecord).dump_json(record))


def read_peak(path: Path) -> PeakRecord | None:
    """Read it; ``None`` if the process did not come to write it.

    Raises:
        ValueError: If the file is not what ``write_peak`` writes.
    """
    return adapter_of(PeakRecord).validate_json(path.read_bytes()) if path.exists() else None
