"""Root of the suite: puts the catalogue on the path, gives the engine's tests pytest's own tester, shows contrasts."""

import pytest

pytest_plugins = ["pytester"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show the tables that tests of ``workloads/contrast`` left in their reports."""
    for report in terminalreporter.getreports("passed"):
        for name, line in report.user_properties:
            if name == "contrast":
                terminalreporter.write_line(line)
