"""A page that a command writes, for all commands that have one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from jaxgate.cli.console import refuse, say
from jaxgate.ext.page.chart_library import chart_library
from jaxgate.keep.artifacts import PAGE_MARK, refuse_foreign
from jaxgate.keep.files import write_atomic


def write_page(command: str, page: Path, make: Callable[[str], str], *, charts: bool = True) -> int:
    """Make a page, write it and print its path.

    Args:
        command: Whose page it is, for the error.
        page: The file.
        make: Makes the page, given the JavaScript that draws its charts, which is empty where that cannot be had.
        charts: Whether it has any.

    Returns:
        The exit code: 2 if it cannot be written.
    """
    try:
        from jaxgate.ext.page.document import ADDS_CHARTS  # noqa: PLC0415 - only who makes a page needs it

        refuse_foreign(page, PAGE_MARK, "a page of jaxgate's")
        library = chart_library() if charts else ""
        write_atomic(page, make(library).encode())
    except OSError as error:
        return refuse(command, f"{page} cannot be written: {error.strerror or error}", 2)
    say(str(page))
    if charts and not library:
        say(f"without charts: {ADDS_CHARTS} adds them")
    return 0
