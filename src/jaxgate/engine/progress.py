"""The stages of a case: which of them has the machine to itself, and a line on stderr when one takes long."""

from __future__ import annotations

import contextlib
import os
import threading
from types import TracebackType
from typing import Self

from jaxgate.keep import Machine

SAMPLING, CONFIRMING, PROFILING = "sampling", "measuring it again in fresh processes", "profiling both sides"
_TIMED = frozenset({SAMPLING, CONFIRMING, PROFILING})
"""Stages in which nothing else may run on the machine; in all others this process works beside others that work."""
_WAITING = "waiting until nothing else is measured on this machine"
PATIENCE_S = 2.0
REPEAT_S = 15.0


class Progress:
    """Tells what is being done once it has taken two seconds, then now and again; takes the machine for what is timed.

    Args:
        descriptor: Where to write; ``None`` writes nothing.
        case: Name to show.
        machine: This process's hold on the machine; ``None`` where nothing is measured here.
        patience_s: Seconds after which a stage is told of.
        repeat_s: Seconds after which it is told of again.
    """

    def __init__(
        self,
        descriptor: int | None,
        case: str,
        machine: Machine | None = None,
        *,
        patience_s: float = PATIENCE_S,
        repeat_s: float = REPEAT_S,
    ) -> None:
        self._descriptor = descriptor
        self._patience_s, self._repeat_s = patience_s, repeat_s
        self._case = case
        self._machine = machine
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
            take(lambda: self._start(_WAITING, self._repeat_s))  # beside other workers a few seconds are usual
            self._stop()
        if stage != SAMPLING:
            self._start(stage, self._patience_s)

    def _start(self, stage: str, patience_s: float) -> None:
        if self._descriptor is not None:
            self._over = threading.Event()
            self._thread = threading.Thread(target=self._watch, args=(self._over, stage, patience_s), daemon=True)
            self._thread.start()

    def _stop(self) -> None:
        if self._thread is not None:
            self._over.set()
            self._thread.join()
            self._thread = None

    def _watch(self, over: threading.Event, stage: str, patience_s: float) -> None:
        passed_s, wait_s = patience_s, patience_s
        while not over.wait(wait_s):
            line = f"\n  {self._case}: {stage}, {passed_s:.0f} s so far\n"
            if self._descriptor is not None:
                with contextlib.suppress(OSError):  # the terminal went away; nobody waits for this line
                    os.write(self._descriptor, line.encode())
            wait_s = self._repeat_s
            passed_s += self._repeat_s
