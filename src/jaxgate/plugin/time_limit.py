"""``--perf-time-limit``: a run that takes too long stops, and says what was not run.

After the limit no further test begins. A test that does not end by itself, in a compiler or a collective that hangs,
is given a grace; then what was judged is written down and the process ends, for nothing can interrupt it.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Generator

import pytest

from jaxgate.plugin.stash import SESSION, STDERR, TESTS

GRACE_S = 60.0
NAME = "jaxgate-deadline"


class Deadline:
    """Watches the time of a run.

    ``limit_s`` counts from now; ``grace_s`` is for the test that runs when the time is over. ``finish`` writes down
    what was judged, for a process that is about to end.
    """

    def __init__(
        self,
        config: pytest.Config,
        limit_s: float,
        finish: Callable[[pytest.Session], None],
        *,
        grace_s: float = GRACE_S,
        end: Callable[[int], object] = os._exit,
    ) -> None:
        self._config = config
        self.limit_s = limit_s
        self._until = time.monotonic() + limit_s
        self._finish = finish
        self._grace_s = grace_s
        self._end = end
        self._over = threading.Event()
        self._running = ""

    @property
    def reason(self) -> str:
        """Why the run stops."""
        return f"the time limit of {self.limit_s:g} s is over (--perf-time-limit)"

    def stand_down(self) -> None:
        """Leave the time to another process, which ends this one too."""
        self._over.set()

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Begin to watch."""
        threading.Thread(target=self._watch, args=(session,), daemon=True, name="jaxgate time limit").start()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Know what runs."""
        self._running = nodeid

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self) -> Generator[None, object, object]:
        """The run ended by itself: in time, or within the grace. A rank waits for the others only after that."""
        self._over.set()
        if time.monotonic() > self._until:
            self._tell()
        return (yield)

    def _watch(self, session: pytest.Session) -> None:
        if self._over.wait(max(0.0, self._until - time.monotonic())):
            return
        session.shouldstop = self.reason
        if self._over.wait(self._grace_s):
            return
        self._tell(f"; {self._running or 'the collection'} was still running {self._grace_s:g} s later")
        try:
            self._finish(session)
        finally:
            self._end(int(pytest.ExitCode.INTERRUPTED))

    def _tell(self, more: str = "") -> None:
        """Keep the reason for the summary; a process that ends here prints it at once."""
        gates = self._config.stash.get(SESSION, None)
        if gates is not None and not gates.result.time_over:
            gates.result.time_over = self.reason + more
        descriptor = self._config.stash.get(STDERR, None)
        if more and descriptor is not None:
            tests = self._config.stash[TESTS]
            left = len(tests.selected if gates is None else gates.result.not_judged(tests.selected))
            os.write(
                descriptor, f"\njaxgate: {self.reason}{more}; {left} of {len(tests.selected)} not judged\n".encode()
            )
