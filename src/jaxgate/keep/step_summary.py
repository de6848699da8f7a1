"""The page of a job on GitHub: a file that each step adds to."""

from __future__ import annotations

from pathlib import Path


def append_page(file: Path, text: str) -> None:
    """Add text at the end of a file that others write, too.

    Raises:
        OSError: If it cannot be written.
    """
    with file.open("a", encoding="utf-8") as page:
        page.write(text)
