"""A run that does something else with the selected tests than running them."""

from __future__ import annotations

from typing import ClassVar

import pytest

from jaxgate.plugin.console import Console
from jaxgate.plugin.stash import SETTINGS, TESTS


class InsteadOfTests:
    """Registered for such a run. Each kind says what it does, how the run ends, and what to show.

    Attributes:
        begun: Whether it began: not where tests are only collected, or could not be.
    """

    title: ClassVar[str]  # of its section in the terminal
    despite_errors: ClassVar[bool] = False  # whether it begins though tests could not be collected
    needs_gates: ClassVar[bool] = False  # whether it is a usage error that none of them gates
    begun = False

    def carry_out(self, session: pytest.Session, tests: list[str]) -> None:
        """Do what this kind of run does with the selected tests that gate."""
        raise NotImplementedError

    def exit_status(self, exitstatus: int) -> int:
        """The exit status of the run; ``exitstatus`` is what pytest would give."""
        raise NotImplementedError

    def results(self) -> object:
        """What there is to show; something false for nothing."""
        return self.begun

    def show(self, out: Console, config: pytest.Config) -> None:
        """Show the results under the title."""
        raise NotImplementedError

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Carry it out instead of running the tests; a bare collection and one with errors are pytest's."""
        option = session.config.option
        broken = session.testsfailed and not (option.continue_on_collection_errors or self.despite_errors)
        if option.collectonly or broken:
            return None
        gates = session.config.stash[TESTS].gates
        tests = [item.nodeid for item in session.items if item.nodeid in gates]
        if self.needs_gates and not tests:
            flag = session.config.stash[SETTINGS].kind.flag
            pytest.exit(f"{flag}: none of the selected tests gates", pytest.ExitCode.USAGE_ERROR)
        self.begun = True
        self.carry_out(session, tests)
        return True

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """End the run with its exit status."""
        found = self.exit_status(exitstatus) if self.begun else exitstatus
        if found != exitstatus:
            session.exitstatus = found

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
        """Show what came of it."""
        if self.results():
            out = Console(terminalreporter)
            out.ensure_newline()
            out.section(self.title)
            self.show(out, config)
