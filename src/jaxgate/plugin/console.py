"""pytest's terminal as jaxgate writes to it: what it shows comes from files and from git, and must only be shown."""

from __future__ import annotations

import pytest

from jaxgate.report.printable import printable, printable_line

MAX_NAMED = 5
"""So many cases, tests or edited lines are named on one line."""


class Console:
    """The part of pytest's terminal that is used."""

    def __init__(self, reporter: pytest.TerminalReporter) -> None:
        self._reporter = reporter

    @property
    def verbose(self) -> bool:
        """Whether the user asked for more than a line for each case."""
        return bool(self._reporter.verbosity > 0)

    def ensure_newline(self) -> None:
        """End the line that was begun, if one was."""
        self._reporter.ensure_newline()

    def section(self, title: str, **markup: bool) -> None:
        """Begin a part of the summary."""
        self._reporter.section(printable_line(title), sep="-", **markup)

    def write(self, text: str, **markup: bool) -> None:
        """Write text as it is, but for control characters."""
        self._reporter.write(printable(text), **markup)

    def write_line(self, text: str, **markup: bool) -> None:
        """Write one line."""
        self._reporter.write_line(printable_line(text), **markup)
