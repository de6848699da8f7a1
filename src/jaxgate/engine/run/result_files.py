"""The end of a run, for others to read: ``summary.md``, ``results.json``, ``report.html``, and what GitHub shows."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from jaxgate.engine.run.ending import Ending, unfit
from jaxgate.engine.run.orphans import Orphans
from jaxgate.ext import pages, parts
from jaxgate.judge.timing.rates import scaling
from jaxgate.keep.files import append_page, write_atomic
from jaxgate.keep.git import changed_lines, judge_edits, merge_base, run_git
from jaxgate.keep.results import parse_results
from jaxgate.model.outcome import Outcome, Shard
from jaxgate.report.pull_request import in_the_diff, pull_request_page
from jaxgate.report.results import results_json
from jaxgate.settings import RESULTS_INTO, STEP_SUMMARY

if TYPE_CHECKING:
    from jaxgate.engine.run.session import GateSession

SUMMARY, RESULTS, PAGE = "summary.md", "results.json", "report.html"
ACTIONS = "GITHUB_ACTIONS"


def write_result_files(
    session: GateSession,
    ending: Ending,
    *,
    selected: AbstractSet[str],
    exit_status: int,
    shard: Shard | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Outcome:
    """Write what a run came to, and remember it. A page that cannot be written is reported; the verdicts stay.

    ``environ`` names a file for the job's summary where GitHub's runner sets one.
    """
    outcome = replace(outcome_of(session, ending, selected, exit_status), shard=shard)
    page = pull_request_page(outcome)
    results = results_json(outcome)
    for name, text in ((SUMMARY, page), (RESULTS, results)):
        session.evidence.write_page(name, text)
    if environ.get(RESULTS_INTO):
        write_atomic(Path(environ[RESULTS_INTO]), results.encode())
    try:  # page and history know of the run what its results say, and nothing else
        record = parse_results(json.loads(results))
    except ValueError as error:
        session.evidence.problems.append(f"there is no page, and the history does not have the run: {RESULTS}: {error}")
    else:
        for name, make in pages().items():
            session.evidence.write_page(name, make(record))
        for capability in parts("ending"):
            capability.ended(session, record)
    if environ.get(STEP_SUMMARY):
        try:
            append_page(Path(environ[STEP_SUMMARY]), page)
        except OSError as error:
            session.evidence.problems.append(f"the job's summary could not be written: {error}")
    return outcome


def outcome_of(session: GateSession, ending: Ending, selected: AbstractSet[str], exit_status: int) -> Outcome:
    """What a run came to, or has come to so far."""
    result = session.result
    tests = {verdict.case: result.tests[verdict.case] for verdict in result.verdicts if verdict.case in result.tests}
    root = session.project.resolve()
    top = Path(run_git(root, "rev-parse", "--show-toplevel") or root)
    project = root.relative_to(top) if root.is_relative_to(top) else Path()
    strict = session.settings.strict
    base = merge_base(session.project) if strict or any(verdict.fails for verdict in result.verdicts) else None
    baseline_edits, judged_by = _edits(session, base) if strict else ((), ())
    return Outcome(
        verdicts=tuple(result.verdicts),
        tests=tests,
        project="" if project == Path() else f"{project.as_posix()}/",
        lines=_lines(session, tests, top, base),
        texts={v.case: session.explain(v, tests.get(v.case, "")) for v in result.verdicts if v.fails},
        not_judged=tuple(sorted(result.not_judged(selected))),
        problems=(*_problems(session, ending.orphans), *ending.wrong),
        unfit=tuple(filter(None, (result.time_over, unfit(session)))),
        scaling=scaling(result.verdicts),
        commit=session.provenance.commit,
        dirty=session.provenance.dirty,
        baseline_edits=baseline_edits,
        judge_edits=judged_by,
        needs_commit=ending.changes.needs_commit,
        compiled_as=session.settings.compiled_as,
        elsewhere=session.settings.elsewhere,
        exit_status=exit_status,
        uncommitted=ending.status.uncommitted,
        run=secrets.token_hex(8),
        moment=session.instruments.moment(),
    )


def _lines(session: GateSession, tests: Mapping[str, str], top: Path, base: str | None) -> dict[str, str]:
    """Where to look first for each case that failed, by the paths that the pages of a repository know."""
    found: dict[str, str] = {}
    for verdict in session.result.verdicts:
        test = tests.get(verdict.case, "").partition("::")[0]
        for folder, line in ((Path.cwd(), verdict.evidence.line), (session.project, test)):
            path = (folder / line).resolve()
            if verdict.fails and line and path.is_relative_to(top):
                found.setdefault(verdict.case, path.relative_to(top).as_posix())
    changed = changed_lines(session.project, base) if base and found else {}
    return {case: in_the_diff(line, changed) for case, line in found.items()}


def _problems(session: GateSession, orphans: Orphans) -> Iterator[str]:
    yield from session.result.clashes
    if session.settings.strict and not session.settings.against:
        yield from (f"{session.short(path)}: its test is gone or has another name" for path in orphans.paths)
    yield from (f"{session.short(error.path)} is unreadable: {error.reason}" for error in orphans.unreadable)


def _edits(session: GateSession, base: str | None) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """What the checkout changes since it left the trunk: baselines, ``None`` if git does not know; lines that say how it is judged."""
    if base is None:  # no git, a checkout without history: the page says that it is not known
        return None, ()
    files = run_git(session.project, "diff", "--name-status", base, "--", str(session.settings.stored))
    return None if files is None else tuple(files.splitlines()), judge_edits(session.project, base)
