"""Where a long stage is shown: on a terminal one line below the cursor, which is overwritten; elsewhere a line now and then."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping

_BELOW = "\x1bD\x1bM\x1b7\x1b[B\r\x1b[2K"
"""Make room below the cursor (scroll if it is in the last line), note where it is, go down, and empty that line."""
_BACK = "\x1b8"
_USUAL_WIDTH = 80


class StatusLine:
    """Shows what is being done, without moving what pytest writes.

    Args:
        descriptor: Where to write.
        live: Whether one line is overwritten; else each text is a line of its own.
    """

    def __init__(self, descriptor: int, *, live: bool) -> None:
        self._descriptor = descriptor
        self.live = live
        self._shown = False

    def show(self, text: str) -> None:
        """Show a text in the place of the last one."""
        if self.live:
            self._write(f"{_BELOW}{text[: _width(self._descriptor) - 1]}{_BACK}")
            self._shown = True
        else:
            self._write(f"\n{text}\n")

    def clear(self) -> None:
        """Take a text that would be overwritten off the terminal."""
        if self._shown:
            self._write(f"{_BELOW}{_BACK}")
            self._shown = False

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError):  # the terminal went away; nobody waits for this line
            os.write(self._descriptor, text.encode())


def is_live(descriptor: int | None, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether what is written there can be overwritten: a terminal that knows how to move its cursor."""
    return descriptor is not None and os.isatty(descriptor) and environ.get("TERM", "dumb") != "dumb"


def _width(descriptor: int) -> int:
    with contextlib.suppress(OSError):
        return os.get_terminal_size(descriptor).columns or _USUAL_WIDTH  # one that does not know its size says 0
    return _USUAL_WIDTH
