"""The process that records one side of ``jaxgate upgrade``: it notes what becomes of each test, and what Python warns of."""

from __future__ import annotations

import re
import traceback
import warnings
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from jaxgate.ext.upgrade.model import CaseNote, ClaimNote, TestNote, Warned
from jaxgate.ext.upgrade.notes import add_note
from jaxgate.model.decision import UNMEASURED
from jaxgate.observe.errors import describe, project_line_of, raised_in
from jaxgate.observe.source_lines import is_project_file, short_path
from jaxgate.plugin.stash import SESSION
from jaxgate.report.text import describe_finding

_AT_LINE = re.compile(r" \(at ([^()]+:\d+)\)$")
"""Ends a reason of ``describe``."""


class NoteTaker:
    """Writes a line at once for each thing that happens: the process may die."""

    def __init__(self, config: pytest.Config, into: Path) -> None:
        self._config, self._into = config, into
        self._warned: list[Warned] = []
        self._noted: set[str] = set()
        self._explained: set[str] = set()
        self._reported: dict[str, str] = {}

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """A test begins."""
        self._warned.clear()
        add_note(self._into, nodeid)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Generator[None, object, object]:
        """While a test runs, warnings are noted with the project's line that led to them; what they raise is raised."""
        with warnings.catch_warnings():  # inside of pytest's own, whose filters stay as they are
            warnings.showwarning = self._note_warning
            return (yield)

    def pytest_exception_interact(
        self, node: pytest.Item | pytest.Collector, call: pytest.CallInfo[Any], report: pytest.TestReport
    ) -> None:
        """Something could not be collected, or a test failed."""
        del report
        if call.excinfo is None or self._note_cases(node.nodeid):  # what a gate found stands with its case
            return
        error = call.excinfo.value
        if isinstance(error, pytest.Collector.CollectError) and error.__cause__ is not None:
            error = error.__cause__
        line = project_line_of(error)
        why = describe(error) if isinstance(error, Exception) else str(error).strip().partition("\n")[0]
        package = raised_in(error)
        self._add(node.nodeid, "failed", why, line, by=f" (raised in {package})" if package else "")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A part of a test is over."""
        if report.skipped and not hasattr(report, "wasxfail"):
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
            self._add(report.nodeid, "skipped", reason.removeprefix("Skipped: "), "")
        elif report.failed:
            self._reported.setdefault(report.nodeid, str(report.longrepr).strip().partition("\n")[0] or "it failed")

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """A test is over."""
        self._note_cases(nodeid)
        if nodeid in self._reported and nodeid not in self._explained:  # nothing was raised: a strict xfail that passed
            self._add(nodeid, "failed", self._reported[nodeid], "")
        note = TestNote(test=nodeid, outcome="passed", warnings=tuple(dict.fromkeys(self._warned)))
        add_note(self._into, note)

    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage, when: str, nodeid: str) -> None:
        """What Python warned of while a file was imported, or around a test."""
        line = f"{short_path(warning_message.filename)}:{warning_message.lineno}"
        known = line if is_project_file(warning_message.filename) else ""
        found = _warned(warning_message.message, warning_message.category, known)
        where = nodeid or (known.partition(":")[0] if when == "collect" else "")
        if where:
            add_note(self._into, TestNote(test=where, outcome="passed", warnings=(found,)))

    def _note_warning(
        self, message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: object, **__: object
    ) -> None:
        del filename, lineno  # where ``stacklevel`` points may be a library's line; the stack has the project's
        frames = (frame for frame in reversed(traceback.extract_stack()) if is_project_file(frame.filename))
        frame = next(frames, None)
        line = "" if frame is None else f"{short_path(frame.filename)}:{frame.lineno}"
        self._warned.append(_warned(message, category, line))

    def _note_cases(self, test: str) -> bool:
        """Note the cases of a test that were judged; gives whether one of them could not be measured."""
        session = self._config.stash.get(SESSION, None)
        failed = False
        for verdict in () if session is None else session.result.verdicts:
            if session is None or session.result.tests.get(verdict.case) != test or verdict.case in self._noted:
                continue
            self._noted.add(verdict.case)
            brought = session.result.brought.get(verdict.case)
            add_note(
                self._into,
                CaseNote(
                    case=verdict.case,
                    test=test,
                    claims=tuple(
                        ClaimNote(name=finding.name, status=finding.status, text=describe_finding(finding))
                        for finding in verdict.findings
                        if finding.kind == "claim"
                    ),
                    tolerances=() if brought is None else brought.tolerances,
                    unknown={} if brought is None else brought.unknown,
                ),
            )
            wrong = [finding for finding in verdict.findings if finding.status in UNMEASURED and finding.kind == "case"]
            for finding in wrong[:1]:
                failed = True
                self._add(test, "failed", f"{finding.name}: {finding.detail}", "")
        return failed

    def _add(self, test: str, outcome: Any, why: str, line: str, by: str = "") -> None:
        text = " ".join(why.split())
        found = _AT_LINE.search(text)
        if found:
            text, line = text[: found.start()], line or found[1]
        if outcome == "failed":
            self._explained.add(test)
        add_note(self._into, TestNote(test=test, outcome=outcome, why=text + by, line=line))


def _warned(message: Warning | str, category: type[Warning], line: str) -> Warned:
    text = str(message).strip().partition("\n")[0]
    return Warned(category=category.__name__, text=" ".join(text.split()), line=line)
