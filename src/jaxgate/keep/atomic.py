"""Files that are either the old one or the new one, never half of one; and one that others add to."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_atomic(path: Path, content: bytes) -> None:
    """Write aside, flush to disk, rename over the old file.

    An interruption at any point leaves the old file as it was.
    """
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
    """Add text at the end of a file that others write, too.

    Raises:
        OSError: If it cannot be written.
    """
    with file.open("a", encoding="utf-8") as page:
        page.write(text)
