"""A page that a command writes, for all commands that have one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from jaxgate.cli.console import refuse, say, tell
from jaxgate.keep.artifacts import PAGE_MARK, refuse_foreign
from jaxgate.keep.files import write_atomic


def write_page(command: str, page: Path, make: Callable[[], str]) -> int:
    """Make a page, write it, print its path, and give the exit code: 2 if it cannot be written."""
    try:
        refuse_foreign(page, PAGE_MARK, "a page of jaxgate's")
        write_atomic(page, make().encode())
    except OSError as error:
        return refuse(command, f"{page} cannot be written: {error.strerror or error}", 2)
    tell(page=str(page))
    say(str(page))
    return 0
