"""``--perf-update=review``: a run that judges, and then asks about each case that moved.

What is accepted is what was measured already. A run in which everything red was accepted ends with 0: somebody has
looked at each case, and said yes to it by hand. Every report of the run shows it as uncommitted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from jaxgate.engine.instruments import Ask
from jaxgate.engine.record import Candidate, has_moved
from jaxgate.model.outcome import Review
from jaxgate.model.verdict import Verdict
from jaxgate.report.summary import review_lines, why_not_acceptable

if TYPE_CHECKING:
    from jaxgate.engine.run.session import GateSession

QUESTION = "accept? [y]es [n]o [a]ll [q]uit "


def ask(session: pytest.Session, gates: GateSession, exitstatus: int) -> Review:
    """Ask about each case that moved, and record what is accepted."""
    found, result = Review(), gates.result
    for verdict in result.verdicts:
        if verdict.fails or has_moved(verdict):
            found.moved.append(verdict.case)
            held = result.candidates.get(verdict.case, "nothing was measured")
            why_not = why_not_acceptable(verdict) or (held if isinstance(held, str) else "")
            if why_not:
                found.refused[verdict.case] = why_not
    if exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) or len(found.moved) == len(found.refused):
        return found
    capture = session.config.pluginmanager.getplugin("capturemanager")
    if capture is not None:
        capture.suspend_global_capture(in_=True)
    try:
        question = gates.instruments.asker()
        if question is None:
            return found
        found.asked = True
        red = {verdict.case: verdict for verdict in result.verdicts if verdict.fails}
        accepted = _questions(gates, found, question)
    finally:
        if capture is not None:
            capture.resume_global_capture()
    red = {case: verdict for case, verdict in red.items() if case in accepted}
    found.all_red_accepted = exitstatus == pytest.ExitCode.TESTS_FAILED and _explains(session, gates, red)
    return found


def _questions(gates: GateSession, found: Review, ask: Ask) -> set[str]:
    """Ask about one case after the other; each is written as it is accepted. Gives the accepted ones."""
    accepted: set[str] = set()
    every = False
    for number, verdict in enumerate(gates.result.verdicts):
        held = gates.result.candidates.get(verdict.case)
        if verdict.case not in found.moved or verdict.case in found.refused or not isinstance(held, Candidate):
            continue
        if not every:
            answer = _answer(ask, "\n".join(review_lines(verdict)))
            every = answer == "a"
            if answer == "q":
                break
            if answer == "n":
                continue
        gates.result.verdicts[number] = held.accept(gates.store, gates.programs, verdict)
        accepted.add(verdict.case)
    return accepted


def _answer(ask: Ask, text: str) -> str:
    """One of y, n, a, q; Ctrl-C and the end of the input are q."""
    prompt = f"\n{text}\n{QUESTION}"
    try:
        while True:
            answer = ask(prompt).strip().lower()
            if answer and answer in {"y", "yes", "n", "no", "a", "all", "q", "quit"}:
                return answer[0]
            prompt = QUESTION
    except (KeyboardInterrupt, EOFError):
        return "q"


def _explains(session: pytest.Session, gates: GateSession, red: dict[str, Verdict]) -> bool:
    """Whether every failure that pytest counts is the verdict of a case that was accepted, and no other thing.

    A test may fail again after its gate, or in its teardown: its own report says so. Of several gates none may still fail.
    """
    terminal = session.config.pluginmanager.getplugin("terminalreporter")
    stats = {} if terminal is None else terminal.stats
    failed = [*stats.get("failed", []), *stats.get("error", [])]
    result, heads = gates.result, dict[str, list[str]]()
    for case, verdict in red.items():
        heads.setdefault(result.tests.get(case, ""), []).append(f"{verdict.status}  {case}  on ")
    left = {result.tests.get(verdict.case) for verdict in result.verdicts if verdict.fails}
    for test in left.union(result.unfinished):
        heads.pop(test or "", None)
    return len(failed) == session.testsfailed and all(
        report.when == "call" and report.longreprtext.startswith(tuple(heads.get(report.nodeid, ())))
        for report in failed
    )
