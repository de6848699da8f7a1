"""A test and its gates, and what pytest reports of it: passed without a gate, held until confirmed, expected to fail."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from jaxgate.engine.run.progress import CONFIRMING
from jaxgate.judge.timing.confirmation import PROBES, blames_machine, too_many
from jaxgate.model.verdict import Verdict
from jaxgate.plugin.stash import GATE, SUSPECT
from jaxgate.report.case_page import BUFFERS, CHANGES
from jaxgate.report.results import verdict_properties
from jaxgate.report.waivers import expected_failures, unexpected_passes

if TYPE_CHECKING:
    from jaxgate.engine.run.session import GateSession

Capturing = Callable[[Verdict, Callable[[str], None]], Verdict]
"""Profiles a case whose verdict is final, printing what is being done; returns the verdict with what was captured."""


@dataclass(slots=True)
class HeldCase:
    """A case whose verdict is provisional."""

    capture: Capturing  # profiles it once the verdict is final
    row: dict[str, Any]  # `extra_info` of its row in pytest-benchmark, which gets the outcome


@dataclass(slots=True)
class GatedTest:
    """What came of the gates of one test so far, in the order of their calls.

    After a red gate with a name the next gates still run; the test fails once, at its end. One whose verdict is provisional
    waits until fresh processes have confirmed it.
    """

    item: pytest.Item  # the test
    # why each case fails; empty where it does not, or waits to be confirmed
    texts: dict[str, str] = field(default_factory=dict)
    verdicts: list[Verdict] = field(default_factory=list)  # the verdicts that are final
    named: bool = False  # whether its gates have names, so that there may be several
    over: bool = False  # whether its function has come to its end
    calls: int = 0  # how many gates were called
    failed_at_its_end: bool = False  # whether it fails for its named gates, and for nothing else
    waiting: dict[str, HeldCase] = field(default_factory=dict)  # its cases with provisional verdicts, by name
    # its reports, held back while a case waits; none if it failed for another reason, and is red already
    held: list[pytest.TestReport] = field(default_factory=list)

    @property
    def used(self) -> bool:
        """Whether a gate was called."""
        return bool(self.calls)

    @property
    def text(self) -> str:
        """Why the test fails: all that is red; empty if nothing is."""
        return "\n\n".join(filter(None, self.texts.values()))

    @property
    def accuses_machine(self) -> bool:
        """Whether it fails for no other reason than that the machine is the suspect."""
        red = [verdict for verdict in self.verdicts if verdict.fails]
        return bool(red) and all(verdict.accuses_machine for verdict in red)

    def begin(self, name: str | None) -> None:
        """Count a call of the gate.

        Raises:
            TypeError: If it is not the only one, and not each of them has a name.
        """
        self.calls += 1
        if self.calls == 1:
            self.named = name is not None
            return
        several = "expected one call of gate in a test, found a second"
        if name is None:
            raise TypeError(f"{several}; give each a name of its own: gate(..., name='eval')")
        if not self.named:
            kept = next(iter(self.texts), "").rpartition("/")[2]
            raise TypeError(f"{several}; give the first a name, too: with name={kept!r} it keeps its baseline")

    def take_name(self, case: str) -> None:
        """Note the case of a call.

        Raises:
            TypeError: If another call of this test has it.
        """
        if case in self.texts:
            raise TypeError(f"expected a name of its own for each gate of a test, found `{case}` twice")
        self.texts[case] = ""

    def fail(self, case: str, text: str) -> None:
        """Let a case fail the test: at its end where there may be other gates, else at once.

        Raises:
            pytest.fail.Exception: If it fails at once.
        """
        self.texts[case] = text
        if not self.named or self.over:
            pytest.fail(text, pytrace=False)

    def end(self, error: BaseException | None) -> None:
        """End the test's function, which ended in an error or did not.

        Raises:
            pytest.fail.Exception: If a named gate is red, and nothing else has made the test fail.
        """
        self.over = True
        if not self.named or not self.text:
            return
        if error is None or isinstance(error, (pytest.skip.Exception, pytest.xfail.Exception)):
            self.failed_at_its_end = True
            pytest.fail(self.text, pytrace=False)
        if isinstance(error, pytest.fail.Exception) and not error.pytrace:  # a call that somebody wrote wrongly
            pytest.fail(f"{self.text}\n\n{error.msg}", pytrace=False)
        self.item.add_report_section("call", RED_BEFORE, self.text)


RED_BEFORE = "jaxgate: what was red before that"
MOST_LINES = 24
"""Lines of buffers and differences of programs that several red cases print together."""
ON_PAGES = pytest.StashKey[bool]()
"""Whether buffers and differences of programs are left to the pages of the red cases."""
HELD = pytest.StashKey[dict[str, GatedTest]]()
"""The tests with cases that wait, by node id; of one that was run again the last."""


def hold(test: GatedTest, case: str, capture: Capturing, row: dict[str, Any]) -> None:
    """Hold back the reports of a test until the verdict of a case is final."""
    test.item.config.stash.setdefault(HELD, {})[test.item.nodeid] = test
    test.waiting[case] = HeldCase(capture, row)


def adapt(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
    """Make a report of a gating test say what came of its gates.

    A test that passed without calling its gate fails; one of which a verdict is provisional is held back; claims that
    this release is known to break make it an expected failure.
    """
    held = item.config.stash.get(HELD, {}).get(item.nodeid)
    if call.when == "teardown":
        if held is not None and held.held and not report.failed:
            held.held.append(copy.copy(report))  # the end of a test that is not over: junit would close it, as passed
            report.when = report.outcome = SUSPECT  # type: ignore[assignment]  # pytest knows no such outcome
        return
    gate = item.stash.get(GATE, None)
    test: GatedTest | None = None if gate is None else gate.test
    if report.passed and test is not None and not test.used:
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} passed without calling gate(...): nothing was measured"
    if held is not None and (not report.failed or held.failed_at_its_end):
        held.held.append(copy.copy(report))
        report.outcome = SUSPECT  # type: ignore[assignment]  # pytest knows no such outcome
    elif report.passed and test is not None:
        mark_expected(report, test.verdicts)


def shorten_summary(report: pytest.TestReport) -> None:
    """Leave pytest's summary the first line of why a test failed: under CI it would print the whole text again."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None:
        crash.message = crash.message.partition("\n")[0]


def leave_to_pages(config: pytest.Config, verdicts: Sequence[Verdict]) -> None:
    """Leave buffers and differences of programs to the pages of the red cases, where all of them would fill the log.

    Not with ``-v``, of a single red case, or where one of them has no page.
    """
    red = [verdict for verdict in verdicts if verdict.fails]
    has_pages = all(verdict.evidence.capture is not None and not verdict.evidence.capture.incomplete for verdict in red)
    terminal, several = config.pluginmanager.get_plugin("terminalreporter"), red[1:]
    if terminal is None or not several or not has_pages or config.get_verbosity() > 0:
        return
    failed = terminal.stats.get("failed", [])
    lines = sum(len(text.splitlines()) for report in failed for title, text in report.sections if _is_on_page(title))
    if lines > MOST_LINES:
        config.stash[ON_PAGES] = True
        for report in failed:
            report.sections = [section for section in report.sections if not _is_on_page(section[0])]


def _is_on_page(title: str) -> bool:
    """Whether pytest prints what a page has, too, under this title."""
    return title.startswith(tuple(f"Captured {begins}" for begins in (BUFFERS, CHANGES)))


def mark_expected(report: pytest.TestReport, verdicts: Sequence[Verdict]) -> None:
    """Turn a passed report into an expected failure or an unexpected pass, if any of its claims is one.

    Neither fails the run: the one is known, the other is a win that asks for its ``known_break`` to be removed.
    """
    broken = [text for verdict in verdicts for text in expected_failures(verdict)]
    met = [text for verdict in verdicts for text in unexpected_passes(verdict)]
    if broken:
        report.outcome = "skipped"
    if broken or met:
        report.wasxfail = "; ".join([*broken, *met])


def confirm_held(config: pytest.Config, session: GateSession) -> None:
    """Repeat in fresh processes what made cases red, after the last test; then report the tests that waited.

    If very many are red, the largest with a control come first: they show whether the machine is the cause.
    """
    from jaxgate.engine.repeats import confirm, in_order  # noqa: PLC0415 - imports JAX

    result, held = session.result, config.stash.get(HELD, {})
    suspects = sum(case.may_be_machine for case in result.provisional.values())
    many = too_many(suspects, len(result.verdicts) + len(result.provisional))
    probed: list[Verdict] = []
    machine = many and not any(case.size for case in result.provisional.values())
    for case in in_order(result.provisional, many=many):
        provisional, test = result.provisional.pop(case), held[result.tests[case]]
        capturing = test.waiting.pop(case)  # with its arrays
        is_probe = many and len(probed) < PROBES and bool(provisional.size)
        with session.progress(case) as progress:
            progress(CONFIRMING)
            verdict = confirm(provisional, session.instruments, machine=machine)
            if is_probe:
                probed.append(verdict)
                machine = blames_machine(probed)
            capturing.row["verdict"] = str(verdict.status)
            try:
                verdict = capturing.capture(verdict, progress)
            finally:  # Ctrl-C: the verdict is final all the same
                result.verdicts.append(verdict)
        del provisional, capturing
        _settle(test, verdict, session.explain(verdict, test.item.nodeid) if verdict.fails else "")
        if test.waiting or not test.held:  # it waits on, or failed for another reason and is red already
            continue
        result.accused += test.accuses_machine
        _log(config, test.held)


def _settle(test: GatedTest, verdict: Verdict, text: str) -> None:
    """Give a test the final verdict of one of its cases; once no other case waits, its reports say what came of all."""
    test.verdicts.append(verdict)
    test.texts[verdict.case] = text
    if not test.held:
        return
    for report in test.held:
        report.user_properties += verdict_properties(verdict)
    if test.waiting:
        return
    first = test.held[0]
    if test.text:
        first.outcome = "failed"
        first.longrepr = RedText(test.text)  # type: ignore[assignment]  # pytest asks for no more than it has
        vars(first).pop("wasxfail", None)
    elif first.passed:
        mark_expected(first, test.verdicts)


class RedText:
    """Why a test failed, for pytest: whole where failures are shown, the first line in its summary, as of any other test."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.reprcrash = SimpleNamespace(message=text.partition("\n")[0])

    def __str__(self) -> str:
        return self._text

    def toterminal(self, out: Any) -> None:
        """Show it."""
        out.line(self._text)


def _log(config: pytest.Config, reports: Sequence[pytest.TestReport]) -> None:
    """Report a test that is over only now."""
    worker = config.pluginmanager.get_plugin("jaxgate-worker")
    if worker is None:
        config.hook.pytest_runtest_logstart(nodeid=reports[0].nodeid, location=reports[0].location)
    for report in reports:
        if worker is None:
            config.hook.pytest_runtest_logreport(report=report)
        else:
            worker.log_late(report)
