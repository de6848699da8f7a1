"""The results of a calibration for people and programs: ``calibration.json``, ``.md`` and ``.png`` in one folder."""

from __future__ import annotations

from pathlib import Path

from jaxgate.keep.atomic import write_atomic
from jaxgate.keep.strict import adapter_of
from jaxgate.model import Calibration

NAME = "calibration"


def write_calibration(folder: Path, calibration: Calibration, *, markdown: str, plot: bytes | None) -> list[Path]:
    """Write what a calibration found; an old plot does not stay beside new figures.

    Args:
        folder: Where to; made if it is not there.
        calibration: All figures.
        markdown: The tables.
        plot: A PNG, if one could be drawn.

    Returns:
        The files.
    """
    contents = {
        "json": adapter_of(Calibration).dump_json(calibration, indent=1) + b"\n",
        "md": markdown.encode(),
        "png": plot,
    }
    written = []
    for suffix, content in contents.items():
        path = folder / f"{NAME}.{suffix}"
        if content is None:
            if not folder.is_symlink():  # behind a link lies somebody else's
                path.unlink(missing_ok=True)
            continue
        write_atomic(path, content)
        written.append(path)
    return written
