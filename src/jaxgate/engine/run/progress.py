"""The stages of a case: which of them has the machine to itself, and what is shown when one takes long."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

from jaxgate.keep.machine import Machine

_BELOW = "\x1bD\x1bM\x1b7\x1b[B\r\x1b[2K"
"""Make room below the cursor (scroll if it is in the last line), note where it is, go down, and empty that line."""
_BACK = "\x1b8"
_USUAL_WIDTH = 80


class StatusLine:
    """Shows what is being done, without moving what pytest writes: on one line if ``live``, else on one for each text."""

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


SAMPLING, CONFIRMING, PROFILING = "sampling", "measuring it again in fresh processes", "profiling both sides"
_TIMED = frozenset({SAMPLING, CONFIRMING, PROFILING})
"""Stages in which nothing else may run on the machine; in all others this process works beside others that work."""
PATIENCE_S = 2.0
REPEAT_S = 15.0
TICK_S = 1.0
"""Seconds between two updates of a line that is overwritten."""


class Progress:
    """Shows what is being done once it has taken two seconds, and takes the machine for what is timed.

    On a terminal it is one line that is overwritten, elsewhere a line from time to time. ``descriptor`` is ``None``
    where nothing is written, ``machine`` where nothing is measured here. ``waits`` is written to even where progress is
    not shown.
    """

    def __init__(
        self,
        descriptor: int | None,
        case: str,
        machine: Machine | None = None,
        *,
        waits: int | None = None,
        patience_s: float = PATIENCE_S,
        repeat_s: float = REPEAT_S,
        left: Callable[[], str] = str,
    ) -> None:
        self._descriptor = descriptor
        self._waits = descriptor if waits is None else waits
        self._patience_s, self._repeat_s = patience_s, repeat_s
        self._case = case
        self._machine = machine
        self._left = left
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        """Start silent."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Fall silent and let others have the machine, whatever happened."""
        self._stop()
        if self._machine is not None:
            self._machine.leave()

    def __call__(self, stage: str) -> None:
        """Enter a stage. While calls are sampled no thread of ours is alive."""
        self._stop()
        if self._machine is not None:
            take = self._machine.alone if stage in _TIMED else self._machine.work
            take(self._wait)
            self._stop()
        if stage != SAMPLING:
            self._start(stage, self._patience_s, self._descriptor)

    def _wait(self) -> None:
        """Print that another run holds the machine, and which; beside other workers a few seconds are usual."""
        others = None if self._machine is None else self._machine.others()
        who = f" by {others}" if others else ""
        self._start(
            f"waiting until nothing else is measured on this machine{who}",
            self._repeat_s if others is None else self._patience_s,
            self._waits,
        )

    def _start(self, stage: str, patience_s: float, descriptor: int | None) -> None:
        if descriptor is not None:
            self._over = threading.Event()
            line = StatusLine(descriptor, live=is_live(descriptor))
            arguments = (self._over, stage, patience_s, line)
            self._thread = threading.Thread(target=self._watch, args=arguments, daemon=True, name="jaxgate progress")
            self._thread.start()

    def _stop(self) -> None:
        if self._thread is not None:
            self._over.set()
            self._thread.join()
            self._thread = None

    def _watch(self, over: threading.Event, stage: str, patience_s: float, line: StatusLine) -> None:
        passed_s, wait_s = patience_s, patience_s
        while not over.wait(wait_s):
            left = self._left() if line.live else ""
            line.show(f"  {self._case}: {stage}, {passed_s:.0f} s so far{f' · {left}' if left else ''}")
            wait_s = min(TICK_S, self._repeat_s) if line.live else self._repeat_s
            passed_s += wait_s
        line.clear()
