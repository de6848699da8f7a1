"""The pytest side of ``--perf-update=times``: in place of the tests, and in the terminal."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from jaxgate.engine.run.progress import Progress
from jaxgate.ext.times.text import RecordingOutcome, recording_table
from jaxgate.model.outcome import UsageError
from jaxgate.plugin.console import Console
from jaxgate.plugin.gating_run import given_instruments, prefixed, progress_terminal, selection
from jaxgate.plugin.modes.base import InsteadOfTests
from jaxgate.plugin.stash import SETTINGS
from jaxgate.processes.pytest_child import child_environment
from jaxgate.report.printable import count_outcomes
from jaxgate.settings import RunKind

if TYPE_CHECKING:
    from jaxgate.ext.times.sessions import TimeRecording


class TimesRecorder(InsteadOfTests):
    """Runs no test itself, shows what the sessions measured."""

    title = "jaxgate: stored times"
    needs_gates = True

    def __init__(self) -> None:
        self._recording: TimeRecording | None = None
        self._busy = ""

    def carry_out(self, session: pytest.Session, tests: list[str]) -> None:
        """Record the sessions."""
        del tests
        from jaxgate.ext.times.sessions import BusyMachineError, TimeRecording  # noqa: PLC0415 - imports JAX

        config = session.config
        settings = config.stash[SETTINGS]
        instruments = given_instruments(config)
        self._recording = TimeRecording(
            settings, config.rootpath, selection(config), look=instruments.look, record=instruments.record
        )
        try:
            with prefixed(RunKind.RECORD_TIMES.flag):
                hardware = instruments.find_hardware(config.rootpath, child_environment(settings))
            with Progress(progress_terminal(config), RunKind.RECORD_TIMES.flag) as progress:
                self._recording.run(hardware, progress)
        except BusyMachineError as error:
            self._busy = str(error)
        except UsageError as error:
            pytest.exit(str(error), returncode=pytest.ExitCode.USAGE_ERROR)

    def exit_status(self, exitstatus: int) -> int:
        """A machine that is not quiet ends with exit code 2, a case that was refused with 1."""
        if self._recording is None or exitstatus != pytest.ExitCode.OK:
            return exitstatus
        if self._busy:
            return pytest.ExitCode.INTERRUPTED
        refused = any(row.outcome is RecordingOutcome.REFUSED for row in self._recording.rows)
        return pytest.ExitCode.TESTS_FAILED if refused or not self._recording.kept else exitstatus

    def results(self) -> object:  # noqa: D102 - see the base
        return self._recording and self._recording.looks

    def show(self, out: Console, config: pytest.Config) -> None:
        """Show what the machine looked like, one line for each case, and what to do next."""
        found = self._recording
        assert found is not None
        out.write_line(f"before    {found.looks[0]}")
        for number, seen in enumerate(found.looks[1:], 1):
            out.write_line(f"after {number:<3} {seen}")
        colours = {
            RecordingOutcome.RECORDED: "green",
            RecordingOutcome.NOISY: "yellow",
            RecordingOutcome.REFUSED: "red",
        }
        rows = found.rows
        for outcome, word, rest in recording_table(rows):
            out.write(word, **{colours[outcome]: True})
            out.write(f"{rest}\n")
        if rows:
            out.write_line(count_outcomes([row.outcome for row in rows], RecordingOutcome))
        elif not self._busy:
            out.write_line("No session recorded a case: nothing is stored.", red=True)
        if found.kept:
            folder = os.path.relpath(found.settings.baselines, config.invocation_params.dir)
            out.write_line(f"Recorded {found.sessions} of {found.wanted} sessions under {folder}; commit it.")
        if any(row.outcome is RecordingOutcome.NOISY for row in rows):
            out.write_line("NOISY does not gate by stored times: proposed for un-gating, a person decides.")
        if self._busy:
            out.write_line(f"REFUSED: {self._busy} (exit code 2). Make it quiet.", red=True)


MODES = {RunKind.RECORD_TIMES: TimesRecorder}
"""By kind of run what runs in place of the tests."""
