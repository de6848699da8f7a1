"""A line on stderr when a stage of a case takes long, past pytest's capture."""

from __future__ import annotations

import contextlib
import os
import threading
from types import TracebackType
from typing import Self

PATIENCE_S = 2.0
REPEAT_S = 15.0


class Progress:
    """Tells what is being done once it has taken two seconds, then now and again.

    Args:
        descriptor: Where to write; ``None`` writes nothing.
        case: Name to show.
    """

    def __init__(self, descriptor: int | None, case: str) -> None:
        self._descriptor = descriptor
        self._case = case
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        """Start silent."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Fall silent, whatever happened."""
        self._stop()

    def __call__(self, stage: str) -> None:
        """Enter a stage. While calls are sampled no thread of ours is alive."""
        self._stop()
        if stage != "sampling" and self._descriptor is not None:
            self._over = threading.Event()
            self._thread = threading.Thread(target=self._watch, args=(self._over, stage), daemon=True)
            self._thread.start()

    def _stop(self) -> None:
        if self._thread is not None:
            self._over.set()
            self._thread.join()
            self._thread = None

    def _watch(self, over: threading.Event, stage: str) -> None:
        passed_s = PATIENCE_S
        while not over.wait(PATIENCE_S if passed_s == PATIENCE_S else REPEAT_S):
            line = f"\n  {self._case}: {stage}, {passed_s:.0f} s so far\n"
            if self._descriptor is not None:
                with contextlib.suppress(OSError):  # the terminal went away; nobody waits for this line
                    os.write(self._descriptor, line.encode())
            passed_s += REPEAT_S
