"""Pages that a command writes where the user says, never over a file that is not a page of ours."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from jaxgate.cli.console import refuse, say
from jaxgate.keep import is_own_page, write_atomic


def write_page(command: str, page: Path, text: str) -> int:
    """Write a page and print its path.

    Args:
        command: Whose page it is, for the error.
        page: The file.
        text: HTML.

    Returns:
        The exit code: 2 if it cannot be written.
    """
    no = partial(refuse, command)
    try:
        if not is_own_page(page):
            return no(f"{page} is no page of jaxgate's; choose another file", 2)
        write_atomic(page, text.encode())
    except OSError as error:
        return no(f"{page} cannot be written: {error.strerror or error}", 2)
    say(str(page))
    return 0
