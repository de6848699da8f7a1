"""What the commands print: names of files and texts of a checkout are shown, and do nothing else."""

from __future__ import annotations

import sys

from jaxgate.report import printable, printable_line


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
    print(printable_line(line), file=sys.stderr)  # noqa: T201 - a command


def refuse(command: str, reason: str, code: int) -> int:
    """Say on stderr why a command does not do it; gives its exit code."""
    complain(f"jaxgate {command}: {reason}")
    return code
