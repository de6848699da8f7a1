"""The end of a run whose ranks were lost: reported and written down first, whatever the main thread is stuck in."""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import suppress
from typing import Any

import pytest

from jaxgate.ext.ranks.barrier import BrokenRanksError, RankBarrier
from jaxgate.judge.verdict import judge_invalid
from jaxgate.plugin.options.table import DISTRIBUTED
from jaxgate.plugin.stash import SESSION, STDERR
from jaxgate.settings import RankSettings

ENDING_S = 120.0
"""What the end of a broken run may take."""


class RankEnding:
    """Ends this process where its job is broken: from a thread of its own if the one of the tests does not."""

    def __init__(self, config: pytest.Config, session: pytest.Session, station: RankBarrier) -> None:
        self._config, self.session, self._station = config, session, station
        self.item: Any = None  # the test that runs

    def end_if_stuck(self, text: str) -> None:
        """End a broken run in place of a thread that waits for ever in JAX; see that it ends in any case."""
        say(self._config, text)
        station = self._station
        if not station.is_stuck():
            time.sleep(ENDING_S)
            os._exit(1)
        last = threading.Timer(ENDING_S, os._exit, (1,))
        last.daemon = True
        last.start()
        try:
            self._report(text)
        finally:
            station.wait_for_others()
            end_process(self._config, 1)

    def _report(self, text: str) -> None:
        """What the thread of the tests would have done: fail the test, judge the case, show and write what there is."""
        session, item, gates = self.session, self.item, self._config.stash.get(SESSION, None)
        capture = self._config.pluginmanager.getplugin("capturemanager")
        if capture is not None:
            capture.suspend_global_capture(in_=True)  # the test that does not end still has the terminal's descriptors
        if gates is not None and item is not None:
            result = gates.result
            judged = {verdict.case for verdict in result.verdicts}
            cases = [case for case, test in result.tests.items() if test == item.nodeid and case not in judged]
            result.verdicts += [judge_invalid(case, BrokenRanksError(text)) for case in cases]
        if item is not None:
            report = pytest.TestReport(item.nodeid, item.location, {}, "failed", text, "call")
            self._config.hook.pytest_runtest_logreport(report=report)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        self._config.hook.pytest_sessionfinish(session=session, exitstatus=session.exitstatus)

    def end_if_broken(self) -> None:
        """End the process for good: JAX would wait for the lost rank at its own end."""
        if self._station.broken:
            self._station.wait_for_others()
            end_process(self._config, int(self.session.exitstatus) or 1)


def say(config: pytest.Config, text: str) -> None:
    """Write to the terminal at once, whatever the main thread is stuck in."""
    with suppress(OSError):
        os.write(config.stash.get(STDERR, 2), f"\njaxgate: {text}\n".encode())


def end_process(config: pytest.Config, status: int) -> None:
    """End without what Python and JAX do at their end."""
    terminal = config.pluginmanager.getplugin("terminalreporter")
    if terminal is not None:
        terminal.flush()  # its file is not the captured one
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def give_up(config: pytest.Config, settings: RankSettings) -> None:
    """End a process that waits for others in JAX's own start, from where no exception comes."""
    which = "" if settings.rank is None else f"; this is rank {settings.rank} of {settings.count}"
    say(
        config,
        f"{DISTRIBUTED.flag}: the other processes have not come within {settings.timeout_s:g} s (its last number){which}",
    )
    os._exit(1)
