"""Pages that a command writes where the user says, never over a file that is not a page of ours."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from jaxgate.cli.console import refuse, say
from jaxgate.keep import PAGE_MARK, chart_library, refuse_foreign, write_atomic


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
        refuse_foreign(page, PAGE_MARK, "a page of jaxgate's")
        from jaxgate.report.page import ADDS_CHARTS  # noqa: PLC0415 - only who makes a page needs it

        library = chart_library() if charts else ""
        write_atomic(page, make(library).encode())
    except OSError as error:
        return refuse(command, f"{page} cannot be written: {error.strerror or error}", 2)
    say(str(page))
    if charts and not library:
        say(f"without charts: {ADDS_CHARTS} adds them")
    return 0
