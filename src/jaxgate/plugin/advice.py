"""The end of a run for whoever keeps the baselines: what to accept, to refresh, to create and to commit, and how."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from jaxgate.engine.run.ending import Ending
from jaxgate.model import Review, Status, StoreChanges, Verdict, plural
from jaxgate.plugin.console import Console
from jaxgate.plugin.options.table import UPDATE
from jaxgate.report import review_lines, shell_word, show
from jaxgate.settings import Update

if TYPE_CHECKING:
    from jaxgate.engine.run.session import GateSession

MAX_FILES = 8
_BETTER = frozenset({Status.IMPROVED, Status.FASTER})
_WORSE = frozenset({Status.REGRESSED, Status.SLOWER, Status.INVALID, Status.RESOURCE_EXHAUSTED})


def show_advice(out: Console, session: GateSession, ending: Ending | None) -> None:
    """Show one line, with its command, for each thing that somebody should do with the baselines."""
    if session.settings.elsewhere or session.settings.other_side:
        return
    if ending is not None and ending.review is not None:
        _reviewed(out, session, ending.review)
    judged = [verdict for verdict in session.result.verdicts if not verdict.recorded]
    better = [verdict.case for verdict in judged if _is_better(verdict)]
    if better and session.settings.update is not Update.REVIEW:
        cases = plural(len(better), "case is", "cases are")
        out.write_line(f"BETTER: {cases} better than the baseline; keep it: {command(session, better)}", green=True)
    stale = [verdict for verdict in judged if verdict.status is Status.STALE_BASELINE]
    if stale:
        _stale(out, session, stale)
    missing = [verdict.case for verdict in judged if verdict.status is Status.NO_BASELINE]
    if missing and session.settings.update is Update.REFRESH:
        cases = plural(len(missing), "case has", "cases have")
        how = command(session, missing, Update.CREATE)
        out.write_line(f"NO_BASELINE: {cases} none, and a refresh makes none; create it: {how}", yellow=True)
    if ending is not None:
        _folder(out, ending.changes)


def command(session: GateSession, cases: Sequence[str], update: Update = Update.BOTH) -> str:
    """The command that records exactly these cases."""
    tests = [session.result.tests[case] for case in cases if case in session.result.tests]
    quoted = " ".join(map(shell_word, dict.fromkeys(tests)))
    mode = UPDATE.flag if update is Update.BOTH else f"{UPDATE.flag}={update}"
    return " ".join(["pytest", quoted, *session.settings.typed, mode])


def _is_better(verdict: Verdict) -> bool:
    """Whether something got better, nothing worse, and the results are the same."""
    found = {verdict.time.status, *(finding.status for finding in verdict.findings)}
    decision = verdict.time.decision
    return bool(found & _BETTER) and not (found & _WORSE) and (decision is None or decision.agrees is True)


def _stale(out: Console, session: GateSession, stale: Sequence[Verdict]) -> None:
    baselines = plural(len(stale), "baseline is", "baselines are")
    colour = {"red": True} if session.settings.strict else {"yellow": True}
    out.write_line(f"STALE: {baselines} of other arguments than today's:", **colour)
    for verdict in stale:
        out.write_line(f"  {verdict.case}: {verdict.worst.detail if verdict.worst else ''}", **colour)
    out.write_line(f"  refresh: {command(session, [verdict.case for verdict in stale])}", **colour)


def _reviewed(out: Console, session: GateSession, found: Review) -> None:
    verdicts = {verdict.case: verdict for verdict in session.result.verdicts}
    left = [case for case in found.moved if not verdicts[case].recorded]
    if not found.moved:
        out.write_line("REVIEW: no case moved; nothing was recorded.")
        return
    kept = len(found.moved) - len(left)
    out.write_line(f"REVIEW: {len(found.moved)} moved, {kept} accepted.")
    for case in left:
        for line in review_lines(verdicts[case]):
            out.write_line(f"  {line}")
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
        out.write_line(f"{why}Accept what is left: {command(session, open_)}", yellow=True)


def _folder(out: Console, after: StoreChanges) -> None:
    """What became of the folder: programs removed, and files to commit."""
    if after.removed:
        programs = plural(len(after.removed), "program")
        size = show("program_bytes", sum(nbytes for _, nbytes in after.removed))
        out.write_line(f"Removed {programs} that no baseline names any more ({size}).")
    if after.why_kept:
        out.write_line(f"Programs that were replaced stay: {after.why_kept}", yellow=True)
    if after.needs_commit:
        files = plural(len(after.needs_commit), "file is", "files are")
        named = ", ".join(after.needs_commit[:MAX_FILES]) + (" …" if len(after.needs_commit) > MAX_FILES else "")
        out.write_line(f"NEEDS COMMIT: {files} not in the last commit: {named}", yellow=True)
