"""``--perf-update=review``: a run that judges, and then asks about each case that moved.

What is accepted is what was measured already. A run in which everything red was accepted ends with 0: somebody has
looked at each case, and said yes to it by hand. It is told as uncommitted wherever a run is told.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from jaxgate.model import Provenance, Record, Status, Verdict
from jaxgate.observe.failures import describe
from jaxgate.observe.observed import Observed
from jaxgate.plugin.accepting import Candidate
from jaxgate.report.review import review_lines, why_not_acceptable

if TYPE_CHECKING:
    from jaxgate.plugin.run import Run

Ask = Callable[[str], str]
QUESTION = "accept? [y]es [n]o [a]ll [q]uit "
_MOVED = frozenset({
    Status.IMPROVED, Status.FASTER, Status.REGRESSED, Status.SLOWER, Status.WAIVED,
    Status.NO_BASELINE, Status.STALE_BASELINE,
})  # fmt: skip
_BROKEN = frozenset({Status.INVALID, Status.RESOURCE_EXHAUSTED})


@dataclass(slots=True)
class Review:
    """What came of the questions.

    Attributes:
        moved: Cases that moved or failed, in order.
        refused: Of these the ones that no baseline can make right, each with the reason.
        asked: Whether there was a terminal to ask on.
        all_red_accepted: Whether nothing red is left, and the run ends with 0 for that.
    """

    moved: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    asked: bool = False
    all_red_accepted: bool = False


def has_moved(verdict: Verdict) -> bool:
    """Whether a case is not what its baseline says, or has none."""
    return bool(_MOVED & {verdict.time.status, *(finding.status for finding in verdict.findings)})


def candidate(
    observed: Observed, verdict: Verdict, record: Record | None, *, test: str, provenance: Callable[[], Provenance]
) -> dict[str, Candidate | str]:
    """Keep what it takes to record a case later, if it moved; no array is held.

    Returns:
        By case, what could be recorded, or why it cannot be.
    """
    if not has_moved(verdict):
        return {}
    try:
        found = Candidate.of(observed, record, case=verdict.case, test=test, provenance=provenance())
    except Exception as error:  # noqa: BLE001 - the case was judged all the same
        return {verdict.case: f"it cannot be recorded: {describe(error)}"}
    return {verdict.case: found}


def review(session: pytest.Session, run: Run, exitstatus: int) -> int:
    """Ask about each case that moved, and record what is accepted.

    Args:
        session: pytest's.
        run: The run, judged.
        exitstatus: How it would end.

    Returns:
        How it ends: 0 where nothing but accepted cases had failed.
    """
    found = run.reviewed = Review()
    for verdict in run.verdicts:
        if verdict.fails or has_moved(verdict):
            found.moved.append(verdict.case)
            held = run.candidates.get(verdict.case, "nothing was measured")
            why_not = why_not_acceptable(verdict) or (held if isinstance(held, str) else "")
            if why_not:
                found.refused[verdict.case] = why_not
    if exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) or len(found.moved) == len(found.refused):
        return exitstatus
    capture = session.config.pluginmanager.getplugin("capturemanager")
    if capture is not None:
        capture.suspend_global_capture(in_=True)
    try:
        ask = asker()
        if ask is None:
            return exitstatus
        found.asked = True
        red = {verdict.case: verdict for verdict in run.verdicts if verdict.fails}
        accepted = _questions(run, found, ask)
    finally:
        if capture is not None:
            capture.resume_global_capture()
    red = {case: verdict for case, verdict in red.items() if case in accepted}
    if exitstatus == pytest.ExitCode.TESTS_FAILED and _explains(session, run, red):
        found.all_red_accepted = True
        session.exitstatus = pytest.ExitCode.OK
    return int(session.exitstatus)


def asker() -> Ask | None:
    """How to ask somebody; ``None`` where nobody is there."""
    if sys.stdin is None or sys.stdin.closed or not sys.stdin.isatty():
        return None
    return input


def _questions(run: Run, found: Review, ask: Ask) -> set[str]:
    """Ask about one case after the other; each is written as it is accepted.

    Returns:
        The cases that were accepted.
    """
    accepted: set[str] = set()
    every = False
    for number, verdict in enumerate(run.verdicts):
        held = run.candidates.get(verdict.case)
        if verdict.case not in found.moved or verdict.case in found.refused or not isinstance(held, Candidate):
            continue
        if not every:
            answer = _answer(ask, "\n".join(review_lines(verdict)))
            every = answer == "a"
            if answer == "q":
                break
            if answer == "n":
                continue
        run.verdicts[number] = held.accept(run.store, run.programs, verdict)
        accepted.add(verdict.case)
    return accepted


def _answer(ask: Ask, told: str) -> str:
    """One of y, n, a, q; Ctrl-C and the end of the input are q."""
    prompt = f"\n{told}\n{QUESTION}"
    try:
        while True:
            answer = ask(prompt).strip().lower()
            if answer and answer in {"y", "yes", "n", "no", "a", "all", "q", "quit"}:
                return answer[0]
            prompt = QUESTION
    except (KeyboardInterrupt, EOFError):
        return "q"


def _explains(session: pytest.Session, run: Run, red: dict[str, Verdict]) -> bool:
    """Whether every failure that pytest counts is the verdict of a case that was accepted, and no other thing.

    A test may fail again after its gate, or in its teardown: its own words tell.
    """
    terminal = session.config.pluginmanager.getplugin("terminalreporter")
    stats = {} if terminal is None else terminal.stats
    failed = [*stats.get("failed", []), *stats.get("error", [])]
    heads = {run.tests_by_case.get(case, ""): f"{verdict.status}  {case}  on " for case, verdict in red.items()}
    return len(failed) == session.testsfailed and all(
        report.when == "call" and report.nodeid in heads and report.longreprtext.startswith(heads[report.nodeid])
        for report in failed
    )
