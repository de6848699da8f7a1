"""What the commands print: names of files and texts of a checkout are shown, and do nothing else.

Pages that a command writes where the user says, never over a file that is not a page of ours.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

from jaxgate.ext.page.chart_library import chart_library
from jaxgate.keep.artifacts import PAGE_MARK, refuse_foreign
from jaxgate.keep.files import write_atomic
from jaxgate.report.printable import printable, printable_line

_LONG = re.compile(r"\S{1000,}")
"""No path that a system takes has so many characters in a row without a blank, and nobody reads that."""


def say(line: str) -> None:
    """Print one line, at once: a process that is started next writes to the same terminal."""
    print(printable_line(line), flush=True)  # noqa: T201 - a command


def begin(line: str) -> None:
    """Print the first half of a line, at once; ``say`` prints the rest of it."""
    sys.stdout.write(f"{printable_line(line)} … ")
    sys.stdout.flush()


def write(page: str) -> None:
    """Print a page as it is."""
    sys.stdout.write(printable(page))


def complain(line: str) -> None:
    """Print one line on stderr."""
    line = _LONG.sub(lambda found: f"{found[0][:60]}… ({len(found[0])} characters)", line)
    print(printable_line(line), file=sys.stderr)  # noqa: T201 - a command


def refuse(command: str, reason: str, code: int) -> int:
    """Say on stderr why a command does not do it; gives its exit code."""
    complain(f"jaxgate {command}: {reason}")
    return code


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
        from jaxgate.ext.page.document import ADDS_CHARTS  # noqa: PLC0415 - only who makes a page needs it

        library = chart_library() if charts else ""
        write_atomic(page, make(library).encode())
    except OSError as error:
        return refuse(command, f"{page} cannot be written: {error.strerror or error}", 2)
    say(str(page))
    if charts and not library:
        say(f"without charts: {ADDS_CHARTS} adds them")
    return 0


def unknown(command: str, rest: list[str]) -> int:
    """The exit code of arguments that a command does not have; 0 if there are none."""
    return refuse(command, f"unknown arguments {' '.join(rest)}", 2) if rest else 0
