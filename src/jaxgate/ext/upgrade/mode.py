"""The pytest side of ``jaxgate upgrade``: in place of the tests, and in the terminal.

This process runs no test and takes no device: processes of both environments record the selected tests.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from jaxgate.ext.upgrade.environment import LAUNCHES, parse_environment
from jaxgate.ext.upgrade.judge import judge_upgrade
from jaxgate.ext.upgrade.model import Answer, UpgradeReport
from jaxgate.ext.upgrade.text import upgrade_json, upgrade_lines, upgrade_page
from jaxgate.keep.artifacts import Artifacts, ForeignFolderError
from jaxgate.keep.files import write_atomic
from jaxgate.model.outcome import UsageError
from jaxgate.plugin.console import Console
from jaxgate.plugin.gating_run import given_instruments, recording, selection
from jaxgate.plugin.modes.base import InsteadOfTests
from jaxgate.plugin.stash import SETTINGS
from jaxgate.processes.pytest_child import child_environment, naming
from jaxgate.settings import RESULTS_INTO, RunKind

PAGE, RESULTS = "upgrade.md", "upgrade.json"


class Upgrade(InsteadOfTests):
    """Runs no test itself, shows what differs in the other environment."""

    title = "jaxgate: may I upgrade?"
    needs_gates = True

    def __init__(self) -> None:
        self._report: UpgradeReport | None = None
        self._refused = ""
        self._pages = ""

    def carry_out(self, session: pytest.Session, tests: list[str]) -> None:
        """Record both sides, hold them against each other, write the pages."""
        try:
            self._report = _compare(session.config, tests)
        except (UsageError, OSError) as error:
            self._refused = str(error)
            _leave(json.dumps({"exit_code": Answer.UNKNOWN.exit_code, "said": self._refused}))
            return
        self._write(self._report, session.config.stash[SETTINGS].artifacts.folder)

    def exit_status(self, exitstatus: int) -> int:
        """Yes is 0, no is 1, and 2 that it is not known."""
        answer = Answer.UNKNOWN if self._report is None else self._report.answer
        return max(int(exitstatus), answer.exit_code)

    def results(self) -> object:  # noqa: D102 - see the base
        return self._report or self._refused

    def show(self, out: Console, config: pytest.Config) -> None:
        """Show the answer, what it rests on, and where the page is; or why there is none."""
        del config
        if self._report is None:
            for line in self._refused.splitlines():
                out.write_line(line, red=True)
            return
        colours = {Answer.YES: "green", Answer.NO: "red", Answer.UNKNOWN: "yellow"}
        first, *rest = upgrade_lines(self._report, shutil.get_terminal_size().columns)
        out.write_line(first, bold=True, **{colours[self._report.answer]: True})
        for line in rest:
            out.write_line(line)
        out.write_line(self._pages)

    def _write(self, report: UpgradeReport, folder: Path) -> None:
        """Write the page for a pull request, and all figures; a page that cannot be written is said, the answer stays."""
        artifacts, results = Artifacts(folder), upgrade_json(report)
        _leave(results)
        try:
            artifacts.join()
            for name, text in ((PAGE, upgrade_page(report)), (RESULTS, results)):
                artifacts.write_page(name, text)
            self._pages = (
                f"page for the pull request: {os.path.relpath(folder / PAGE)}; all figures: {RESULTS} beside it"
            )
        except (OSError, ForeignFolderError) as error:
            self._pages = f"the page could not be written: {error}"


def _compare(config: pytest.Config, tests: list[str]) -> UpgradeReport:
    from jaxgate.ext.upgrade.runs import record_upgrade  # noqa: PLC0415 - imports JAX

    settings = config.stash[SETTINGS]
    cache = getattr(config, "cache", None)  # absent with -p no:cacheprovider
    with recording(config, settings.kind.flag) as (into, progress):
        recorded = record_upgrade(
            config.rootpath,
            parse_environment(settings.upgrade, config.invocation_params.dir, may_make=True),
            selection(config),
            tests,
            launches=0 if config.getoption("benchmark_disable", False) else LAUNCHES,
            into=into,
            cache=(into if cache is None else Path(cache.mkdir("jaxgate"))) / "environments",
            progress=progress,
            here=child_environment(settings) | naming(settings),
            record=given_instruments(config).record_other,
        )
        other = _shown(settings.upgrade)
        return judge_upgrade(recorded.here, recorded.there, recorded.launches, tests=tests, other=other)


def _leave(results: str) -> None:
    """Leave the answer to the command that started this run, if one did."""
    if os.environ.get(RESULTS_INTO):
        write_atomic(Path(os.environ[RESULTS_INTO]), results.encode())


def _shown(items: Sequence[str]) -> str:
    """The other environment in the user's words; of a path what is not this machine's, as the page is for others."""
    return " ".join(_short(item) if Path(item).is_absolute() else item for item in items)


def _short(path: str) -> str:
    """A path as it is from here; of one far away the name alone."""
    relative = os.path.relpath(path)
    return Path(path).name if relative.startswith("../..") else relative


MODES = {RunKind.UPGRADE: Upgrade}
"""By kind of run what runs in place of the tests."""
