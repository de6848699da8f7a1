"""The pytest side of ``--perf-peak``: in place of the tests, and in the terminal.

This process runs no test and takes no device. One process after the other runs a single test, whose gate measures
the peak and writes it down.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jaxgate.plugin.options import PEAK_INTO
from jaxgate.plugin.starting import STDERR

if TYPE_CHECKING:
    from jaxgate.model.allocator import PeakRecord
    from jaxgate.report.peaks import Outcome

OPTION = "--perf-peak"
_ENDED = re.compile(r"^(FAILED|ERROR|SKIPPED) (.*)$", re.MULTILINE)


class Peaks:
    """Registered for a run that measures peaks: runs no test itself, shows what the fresh processes found."""

    def __init__(self) -> None:
        self._rows: list[tuple[Outcome, PeakRecord]] = []
        self._ran = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Measure each case in a process of its own instead of running the tests."""
        config = session.config
        if config.option.collectonly or session.testsfailed:
            return None
        tests = [item.nodeid for item in session.items if "gate" in getattr(item, "fixturenames", ())]
        if not tests:
            pytest.exit(f"{OPTION}: none of the selected tests gates", pytest.ExitCode.USAGE_ERROR)
        from jaxgate.plugin.progress import Progress  # noqa: PLC0415 - rarely needed

        self._ran = True
        descriptor = None if config.get_verbosity() < 0 else config.stash.get(STDERR, None)
        for number, test in enumerate(tests, 1):
            with Progress(descriptor, test) as progress:
                progress(f"measuring its peak, {number} of {len(tests)}")
                self._rows.append(measure_in_fresh_process(config.rootpath, test))
        return True

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """A case without figures is not green; nor are tests that were all skipped."""
        if not self._ran or exitstatus != pytest.ExitCode.OK:
            return
        from jaxgate.report.peaks import Outcome  # noqa: PLC0415 - rarely needed

        outcomes = {outcome for outcome, _ in self._rows}
        if Outcome.MEASURED not in outcomes or outcomes & {Outcome.UNAVAILABLE, Outcome.FAILED}:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show one line for each case."""
        if not self._rows:
            return
        from jaxgate.report.peaks import Outcome, count_rows, table  # noqa: PLC0415 - rarely needed

        out = terminalreporter
        out.ensure_newline()
        out.section("jaxgate: real peaks, which describe and do not gate", sep="-")
        colours = {Outcome.MEASURED: "green", Outcome.SKIPPED: "yellow"}
        for outcome, word, rest in table(self._rows):
            out.write(word, **{colours.get(outcome, "red"): True})
            out.write(f"{rest}\n")
        out.write_line(count_rows(self._rows))


def measure_in_fresh_process(project: Path, test: str) -> tuple[Outcome, PeakRecord]:
    """Let a fresh process run one test, whose gate measures instead of judging.

    Args:
        project: Root folder of the tests.
        test: pytest node id.

    Returns:
        What came of it; of a test whose gate was not reached its own last word, under the test's name.
    """
    from jaxgate.keep.peaks import read_peak  # noqa: PLC0415 - rarely needed
    from jaxgate.model.allocator import PeakRecord  # noqa: PLC0415
    from jaxgate.plugin.recording import clean_environment  # noqa: PLC0415
    from jaxgate.report.peaks import Outcome, outcome_of  # noqa: PLC0415

    command = [sys.executable, "-m", "pytest", test, "-q", "-rfEs", "--color=no", "-p", "no:cacheprovider"]
    command.append("--no-perf-strict")  # under CI a run whose only gate is skipped would end red
    with tempfile.TemporaryDirectory(prefix="jaxgate-") as name:
        into = Path(name) / "peak.json"
        environment = {**clean_environment(), PEAK_INTO: str(into)}
        done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
        try:
            record = read_peak(into)
        except ValueError as error:
            return Outcome.FAILED, PeakRecord(case=test, why_not=f"its figures cannot be read: {error}", failed=True)
    if record is not None:
        return outcome_of(record), record
    ended = _ENDED.findall(done.stdout)
    if done.returncode == pytest.ExitCode.OK and ended and all(word == "SKIPPED" for word, _ in ended):
        return Outcome.SKIPPED, PeakRecord(case=test, why_not=ended[-1][1])
    said = [rest for word, rest in ended if word != "SKIPPED"]
    last = (done.stderr + done.stdout).strip().splitlines()[-1:] or ["it said nothing"]
    why = said[-1] if said else f"the process ended with {done.returncode}: {last[0]}"
    return Outcome.FAILED, PeakRecord(case=test, why_not=f"no gate was reached: {why}", failed=True)
