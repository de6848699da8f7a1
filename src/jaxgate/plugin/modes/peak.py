"""The pytest side of ``--perf-peak``: in place of the tests, and in the terminal.

This process runs no test and takes no device. One process after the other runs a single test, one gate of which measures
the peak and writes it down.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path

import pytest

from jaxgate.engine.run.progress import Progress
from jaxgate.keep import read_record
from jaxgate.model import PeakRecord
from jaxgate.plugin.console import Console
from jaxgate.plugin.modes.base import InsteadOfTests
from jaxgate.plugin.session_start import terminal
from jaxgate.plugin.stash import SETTINGS
from jaxgate.processes.child import run_child
from jaxgate.processes.pytest_child import child_environment, ended, last_line
from jaxgate.report import PeakOutcome, count_outcomes, outcome_of, peak_table
from jaxgate.settings.variables import PEAK_AFTER, PEAK_INTO


class Peaks(InsteadOfTests):
    """Runs no test itself, shows what the fresh processes found."""

    title = "jaxgate: real peaks, which describe and do not gate"
    needs_gates = True

    def __init__(self) -> None:
        self._rows: list[tuple[PeakOutcome, PeakRecord]] = []

    def carry_out(self, session: pytest.Session, tests: list[str]) -> None:
        """Measure each case in a process of its own."""
        environ = child_environment(session.config.stash[SETTINGS])
        for number, test in enumerate(tests, 1):
            with Progress(terminal(session.config), test) as progress:
                progress(f"measuring its peak, {number} of {len(tests)}")
                self._rows += measure_in_fresh_processes(session.config.rootpath, test, environ)

    def exit_status(self, exitstatus: int) -> int:
        """A case without figures is not green; nor are tests that were all skipped."""
        outcomes = {outcome for outcome, _ in self._rows}
        green = PeakOutcome.MEASURED in outcomes and not outcomes & {PeakOutcome.UNAVAILABLE, PeakOutcome.FAILED}
        return exitstatus if green or exitstatus != pytest.ExitCode.OK else pytest.ExitCode.TESTS_FAILED

    def results(self) -> object:  # noqa: D102 - see the base
        return self._rows

    def show(self, out: Console, config: pytest.Config) -> None:
        """Show one line for each case."""
        del config

        colours = {PeakOutcome.MEASURED: "green", PeakOutcome.SKIPPED: "yellow"}
        for outcome, word, rest in peak_table(self._rows):
            out.write(word, **{colours.get(outcome, "red"): True})
            out.write(f"{rest}\n")
        out.write_line(count_outcomes([outcome for outcome, _ in self._rows], PeakOutcome))


def measure_in_fresh_processes(
    project: Path, test: str, environ: Mapping[str, str]
) -> Iterator[tuple[PeakOutcome, PeakRecord]]:
    """Measure each gate of a test in a process of its own; the first one shows whether there is a second."""
    for gate in count():
        variables = {**environ, PEAK_AFTER: str(gate)} if gate else environ
        outcome, record = measure_in_fresh_process(project, test, variables)
        yield outcome, record
        if not record.more:
            return


def measure_in_fresh_process(project: Path, test: str, environ: Mapping[str, str]) -> tuple[PeakOutcome, PeakRecord]:
    """Let a fresh process with these variables run one test, one gate of which measures instead of judging.

    Returns:
        What came of it; of a test whose gate was not reached its own last word, under the test's name.
    """
    command = [sys.executable, "-m", "pytest", test, "-q", "-rfEs", "--color=no", "-p", "no:cacheprovider"]
    command.append("--no-perf-strict")  # under CI a run whose only gate is skipped would end red
    with tempfile.TemporaryDirectory(prefix="jaxgate-") as name:
        into = Path(name) / "peak.json"
        environment = {**environ, PEAK_INTO: str(into)}
        done = run_child(command, folder=project, variables=environment)
        try:
            record = read_record(into, PeakRecord)
        except ValueError as error:
            return PeakOutcome.FAILED, PeakRecord(
                case=test, why_not=f"its figures cannot be read: {error}", failed=True
            )
    if record is not None:
        return outcome_of(record), record
    found = ended(done)
    if done.status == pytest.ExitCode.OK and found and all(word == "SKIPPED" for word, _ in found):
        return PeakOutcome.SKIPPED, PeakRecord(case=test, why_not=found[-1][1])
    said = [rest for word, rest in found if word != "SKIPPED"]
    why = said[-1] if said else f"the process ended with {done.status}: {last_line(done)}"
    return PeakOutcome.FAILED, PeakRecord(case=test, why_not=f"no gate was reached: {why}", failed=True)
