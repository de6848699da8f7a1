"""The end of a run for whoever keeps the baselines: what to accept, to refresh, to create and to commit, and how."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

from jaxgate.model import Status, Verdict
from jaxgate.plugin.updating import OPTION, Update
from jaxgate.report.review import review_lines
from jaxgate.report.units import show

if TYPE_CHECKING:
    from jaxgate.plugin.run import Run

MAX_FILES = 8
_BETTER = frozenset({Status.IMPROVED, Status.FASTER})
_WORSE = frozenset({Status.REGRESSED, Status.SLOWER, Status.INVALID, Status.RESOURCE_EXHAUSTED})


def show_advice(out: pytest.TerminalReporter, run: Run) -> None:
    """Show one line, with its command, for each thing that somebody should do with the baselines."""
    if run.settings.elsewhere or run.settings.other_side:
        return
    _reviewed(out, run)
    judged = [verdict for verdict in run.verdicts if not verdict.recorded]
    better = [verdict.case for verdict in judged if _is_better(verdict)]
    if better and run.settings.update is not Update.REVIEW:
        cases = "1 case is" if len(better) == 1 else f"{len(better)} cases are"
        out.write_line(f"BETTER: {cases} better than the baseline; keep it: {command(run, better)}", green=True)
    stale = [verdict for verdict in judged if verdict.status is Status.STALE_BASELINE]
    if stale:
        _stale(out, run, stale)
    missing = [verdict.case for verdict in judged if verdict.status is Status.NO_BASELINE]
    if missing and run.settings.update is Update.REFRESH:
        cases = "1 case has" if len(missing) == 1 else f"{len(missing)} cases have"
        how = command(run, missing, Update.CREATE)
        out.write_line(f"NO_BASELINE: {cases} none, and a refresh makes none; create it: {how}", yellow=True)
    _folder(out, run)


def command(run: Run, cases: Sequence[str], update: Update = Update.BOTH) -> str:
    """The command that records exactly these cases."""
    tests = [run.tests_by_case[case] for case in cases if case in run.tests_by_case]
    quoted = " ".join(f"'{test}'" if "'" not in test else shlex.quote(test) for test in dict.fromkeys(tests))
    mode = OPTION if update is Update.BOTH else f"{OPTION}={update}"
    return " ".join(["pytest", quoted, *run.settings.typed, mode])


def _is_better(verdict: Verdict) -> bool:
    """Whether something got better, nothing worse, and the results are the same."""
    found = {verdict.time.status, *(finding.status for finding in verdict.findings)}
    decision = verdict.time.decision
    return bool(found & _BETTER) and not (found & _WORSE) and (decision is None or decision.agrees is not False)


def _stale(out: pytest.TerminalReporter, run: Run, stale: Sequence[Verdict]) -> None:
    baselines = "1 baseline is" if len(stale) == 1 else f"{len(stale)} baselines are"
    colour = {"red": True} if run.settings.strict else {"yellow": True}
    out.write_line(f"STALE: {baselines} of other arguments than today's:", **colour)
    for verdict in stale:
        out.write_line(f"  {verdict.case}: {verdict.worst.detail if verdict.worst else ''}", **colour)
    out.write_line(f"  refresh: {command(run, [verdict.case for verdict in stale])}", **colour)


def _reviewed(out: pytest.TerminalReporter, run: Run) -> None:
    found = run.reviewed
    if found is None:
        return
    verdicts = {verdict.case: verdict for verdict in run.verdicts}
    left = [case for case in found.moved if not verdicts[case].recorded]
    if not found.moved:
        out.write_line("REVIEW: no case moved; nothing was recorded.")
        return
    kept = len(found.moved) - len(left)
    out.write_line(f"REVIEW: {len(found.moved)} moved, {kept} accepted.")
    for case in left:
        first, *rest = review_lines(verdicts[case])
        for line in (f"  {first}", *(f"  {line}" for line in rest)):
            out.write_line(line)
        if case in found.refused:
            out.write_line(f"    cannot be accepted: {found.refused[case]}", red=True)
    if found.all_red_accepted:
        out.write_line(
            "Everything red was accepted by hand: the run does not fail for it, and the baselines need a commit.",
            yellow=True,
        )
    open_ = [case for case in left if case not in found.refused]
    if open_:
        why = "" if found.asked else "Nothing was written, as there is no terminal to ask on. "
        out.write_line(f"{why}Accept what is left: {command(run, open_)}", yellow=True)


def _folder(out: pytest.TerminalReporter, run: Run) -> None:
    """What became of the folder: programs removed, and files to commit."""
    after = run.afterwards
    if after.removed:
        programs = "1 program" if len(after.removed) == 1 else f"{len(after.removed)} programs"
        size = show("program_bytes", sum(nbytes for _, nbytes in after.removed))
        out.write_line(f"Removed {programs} that no baseline names any more ({size}).")
    if after.why_kept:
        out.write_line(f"Programs that were replaced stay: {after.why_kept}", yellow=True)
    if after.needs_commit:
        files = "1 file is" if len(after.needs_commit) == 1 else f"{len(after.needs_commit)} files are"
        named = ", ".join(after.needs_commit[:MAX_FILES]) + (" …" if len(after.needs_commit) > MAX_FILES else "")
        out.write_line(f"NEEDS COMMIT: {files} not in the last commit: {named}", yellow=True)
