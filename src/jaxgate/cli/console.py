"""What the commands print: names of files and texts of a checkout are shown, and do nothing else."""

from __future__ import annotations

import os
import re
import select
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Any

from jaxgate.report.printable import json_text, printable, printable_line

UNREAD = 141
"""Exit code of a command whose reader is gone: that of a process which the system ends for it."""
_LONG = re.compile(r"\S{1000,}")
"""So many characters in a row without a blank are in no path that a system takes, and nobody reads them."""


_ANSWERS: list[dict[str, Any]] = []
"""What the command has told so far that is asked for JSON; empty where nobody asked."""


def answer(command: str, run: Callable[[], int]) -> int:
    """Run a command, and print what it tells as one JSON object; what it says to people goes to stderr. Gives its exit code."""
    told: dict[str, Any] = {"schema": 1, "command": command, "exit_code": None, "error": None}
    _ANSWERS.append(told)
    try:
        with _no_stdout():
            told["exit_code"] = run()
    finally:
        _ANSWERS.pop()
    sys.stdout.write(json_text(told))
    return int(told["exit_code"])


@contextmanager
def _no_stdout() -> Iterator[None]:
    """Whatever is printed goes to stderr, by processes that are started, too."""
    sys.stdout.flush()
    kept = os.dup(1)
    try:
        os.dup2(2, 1)
        with redirect_stdout(sys.stderr):
            yield
        sys.stderr.flush()
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def tell(**found: Any) -> None:
    """Tell programs what was found: keys of the object that ``--json`` prints. Without it nothing happens."""
    for told in _ANSWERS[-1:]:
        told.update(found)


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


def nobody_reads() -> bool:
    """Whether the reader of what is printed is gone, as ``head`` is when it has its lines; nothing more is printed then."""
    watched = select.poll()
    try:
        watched.register(sys.stdout, 0)
    except (OSError, ValueError):  # no file of the system
        return False
    gone = any(event & select.POLLERR for _, event in watched.poll(0))
    if gone:
        with suppress(BrokenPipeError):
            sys.stdout.close()
    return gone


def complain(line: str) -> None:
    """Print one line on stderr."""
    line = _LONG.sub(lambda found: f"{found[0][:60]}… ({len(found[0])} characters)", line)
    print(printable_line(line), file=sys.stderr)  # noqa: T201 - a command


def refuse(command: str, reason: str, code: int) -> int:
    """Say on stderr why a command does not do it, and tell programs; gives its exit code."""
    tell(error=reason)
    complain(f"jaxgate {command}: {reason}")
    return code
