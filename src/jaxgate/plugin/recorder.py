"""The pytest side of ``--perf-record-times``: in place of the tests, and in the terminal."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from jaxgate.plugin.starting import SETTINGS, STDERR

if TYPE_CHECKING:
    from jaxgate.plugin.sessions import Recording

UNFIT = pytest.ExitCode.INTERRUPTED
"""Exit code 2: the machine is not quiet."""


class Recorder:
    """Registered for a run that records times: runs no test itself, shows what the sessions measured."""

    def __init__(self) -> None:
        self._recording: Recording | None = None
        self._busy = ""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Record the sessions instead of running the tests."""
        config = session.config
        if config.option.collectonly or session.testsfailed:
            return None
        from jaxgate.plugin import recording, sessions  # noqa: PLC0415 - rarely needed
        from jaxgate.plugin.progress import Progress  # noqa: PLC0415

        if not any("gate" in getattr(item, "fixturenames", ()) for item in session.items):
            pytest.exit(f"{sessions.OPTION}: none of the selected tests gates", pytest.ExitCode.USAGE_ERROR)
        settings = config.stash[SETTINGS]
        self._recording = sessions.Recording(settings, config.rootpath, recording.selection(config))
        descriptor = None if config.get_verbosity() < 0 else config.stash.get(STDERR, None)
        try:
            hardware = sessions.find_hardware(config.rootpath)
            sessions.refuse_unregistered(hardware, settings.quiet)
            with Progress(descriptor, sessions.OPTION) as progress:
                self._recording.run(hardware, progress)
        except sessions.BusyMachineError as error:
            self._busy = str(error)
        except pytest.UsageError as error:
            pytest.exit(str(error), returncode=pytest.ExitCode.USAGE_ERROR)
        return True

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """A machine that is not quiet ends with exit code 2, a case that was refused with 1."""
        if self._recording is None or exitstatus != pytest.ExitCode.OK:
            return
        from jaxgate.report.stored import Outcome  # noqa: PLC0415 - rarely needed

        refused = any(row.outcome is Outcome.REFUSED for row in self._recording.rows)
        if self._busy:
            session.exitstatus = UNFIT
        elif refused or not self._recording.kept:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
        """Show what the machine looked like, one line for each case, and what to do next."""
        if self._recording is None or not self._recording.looks:
            return
        from jaxgate.plugin.sessions import BUSY_OK  # noqa: PLC0415 - rarely needed
        from jaxgate.report.stored import Outcome, count_rows, table  # noqa: PLC0415

        out, found = terminalreporter, self._recording
        out.ensure_newline()
        out.section("jaxgate: stored times", sep="-")
        out.write_line(f"before    {found.looks[0]}")
        for number, seen in enumerate(found.looks[1:], 1):
            out.write_line(f"after {number:<3} {seen}")
        colours = {Outcome.RECORDED: {"green": True}, Outcome.NOISY: {"yellow": True}, Outcome.REFUSED: {"red": True}}
        rows = found.rows
        for outcome, word, rest in table(rows):
            out.write(word, **colours[outcome])
            out.write(f"{rest}\n")
        if rows:
            out.write_line(count_rows(rows))
        elif not self._busy:
            out.write_line("No session recorded a case: nothing is stored.", red=True)
        if found.kept:
            folder = os.path.relpath(found.settings.baselines, config.invocation_params.dir)
            out.write_line(
                f"Recorded {found.sessions} of {found.settings.record_times} sessions under {folder}; commit it."
            )
        if any(row.outcome is Outcome.NOISY for row in rows):
            out.write_line("NOISY does not gate by stored times: proposed for un-gating, a person decides.")
        if self._busy:
            out.write_line(f"REFUSED: {self._busy} (exit code 2). Make it quiet, or add {BUSY_OK}.", red=True)
