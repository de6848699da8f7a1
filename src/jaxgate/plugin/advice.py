"""What a person should do with the baselines after a run, each thing with its command."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jaxgate.engine.run.ending import Ending
from jaxgate.engine.run.orphans import Orphans, Renamed
from jaxgate.model.decision import ALWAYS_FAIL, Status
from jaxgate.model.inventory import StoreChanges
from jaxgate.model.outcome import Review
from jaxgate.model.verdict import Verdict
from jaxgate.model.words import plural, shortlist
from jaxgate.plugin.console import MAX_NAMED, Console
from jaxgate.plugin.options.table import UPDATE
from jaxgate.report.printable import printable, shell_word
from jaxgate.report.summary import review_lines
from jaxgate.report.units import show
from jaxgate.settings import Update

if TYPE_CHECKING:
    from jaxgate.engine.run.session import GateSession

MAX_FILES = 8
_ODD = (
    ("launches", 32, "MANY PROGRAMS", "starts {} a call", "put more of it under one jax.jit"),
    (
        "unmatched_names",
        1,
        "UNMATCHED NAMES",
        "{} in its policies of jax.checkpoint",
        "no array has them, so none is kept for them",
    ),
)
"""What looks wrong by itself: the fact, its least odd value, a title, the finding in words, and what it means."""
_BETTER = frozenset({Status.IMPROVED, Status.FASTER})


def advise(out: Console, session: GateSession, ending: Ending, folder: Path) -> None:
    """Show one line, with its command, for each thing that somebody should do with the baselines."""
    if not (session.settings.elsewhere or session.settings.other_side):
        _cases(out, session, ending.review)
        _folder(out, ending.changes)
    _orphans(out, session, ending.orphans, folder)


def _cases(out: Console, session: GateSession, review: Review | None) -> None:
    if review is not None:
        _reviewed(out, session, review)
    judged = [verdict for verdict in session.result.verdicts if not verdict.baseline.recorded]
    better = [verdict.case for verdict in judged if _is_better(verdict)]
    if better and session.settings.update is not Update.REVIEW:
        cases = plural(len(better), "case is", "cases are")
        out.write_line(f"BETTER: {cases} better than the baseline; keep it: {_command(session, better)}", green=True)
    stale = [verdict for verdict in judged if verdict.status is Status.STALE_BASELINE]
    if stale:
        _stale(out, session, stale)
    missing = [verdict.case for verdict in judged if verdict.status is Status.NO_BASELINE]
    if missing and session.settings.update is Update.REFRESH:
        cases = plural(len(missing), "case has", "cases have")
        how = _command(session, missing, Update.CREATE)
        out.write_line(f"NO_BASELINE: {cases} none, and a refresh makes none; create it: {how}", yellow=True)
    _odd(out, [verdict for verdict in session.result.verdicts if verdict.baseline.recorded])


def _odd(out: Console, recorded: Sequence[Verdict]) -> None:
    """Warn of what a first baseline would bless: operations of plain Python as programs of their own, unmatched names."""
    for fact, least, title, what, advice in _ODD:
        found = {one.case: int(one.figures.now.get(fact, 0)) for one in recorded if one.figures is not None}
        named = [f"{case} {what.format(count)}" for case, count in found.items() if count >= least]
        if named:
            out.write_line(printable(f"{title}: {shortlist(named, MAX_NAMED)}: {advice}"), yellow=True)


def _command(session: GateSession, cases: Sequence[str], update: Update = Update.BOTH) -> str:
    """The command that records exactly these cases."""
    tests = [session.result.tests[case] for case in cases if case in session.result.tests]
    quoted = " ".join(map(shell_word, dict.fromkeys(tests)))
    mode = UPDATE.flag if update is Update.BOTH else f"{UPDATE.flag}={update}"
    return " ".join(["pytest", quoted, *session.settings.typed, mode])


def _is_better(verdict: Verdict) -> bool:
    """Whether something got better, nothing worse, and the results are the same."""
    found = {verdict.time.status, *(finding.status for finding in verdict.findings)}
    decision = verdict.time.decision
    return bool(found & _BETTER) and not (found & ALWAYS_FAIL) and (decision is None or decision.agrees is True)


def _stale(out: Console, session: GateSession, stale: Sequence[Verdict]) -> None:
    baselines = plural(len(stale), "baseline is", "baselines are")
    colour = {"red": True} if session.settings.strict else {"yellow": True}
    out.write_line(f"STALE: {baselines} of other arguments than today's:", **colour)
    for verdict in stale:
        out.write_line(f"  {verdict.case}: {verdict.worst.detail if verdict.worst else ''}", **colour)
    out.write_line(f"  refresh: {_command(session, [verdict.case for verdict in stale])}", **colour)


def _reviewed(out: Console, session: GateSession, found: Review) -> None:
    verdicts = {verdict.case: verdict for verdict in session.result.verdicts}
    left = [case for case in found.moved if not verdicts[case].baseline.recorded]
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
        out.write_line(f"{why}Accept what is left: {_command(session, open_)}", yellow=True)


def _folder(out: Console, after: StoreChanges) -> None:
    """Show what became of the folder: programs removed, and files to commit."""
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


def _orphans(out: Console, session: GateSession, orphans: Orphans, folder: Path) -> None:
    red = session.settings.strict
    for renamed in orphans.renamed if not session.settings.against else ():
        _renamed(out, renamed, folder)
    moved = {path for renamed in orphans.renamed for path, _ in renamed.moves}
    for path in orphans.paths:
        if path in moved and not session.settings.against:
            continue
        shown = os.path.relpath(path, folder)
        if session.settings.against:
            out.write_line(f"Only in the other revision: {path.parent.name}/{path.stem}")
        else:
            out.write_line(
                f"ORPHAN {shown}: its test is gone or has another name. Remove it: git rm {shell_word(shown)}",
                yellow=not red,
                red=red,
            )
    for error in orphans.unreadable:
        shown = os.path.relpath(error.path, folder)
        out.write_line(f"UNREADABLE {shown}: {error.reason}. Restore it: git checkout -- {shell_word(shown)}", red=True)


def _renamed(out: Console, renamed: Renamed, folder: Path) -> None:
    """The commands that let a case keep its baseline under the name that it has now."""
    out.write_line(
        f"RENAMED? {renamed.now} has no baseline, and the program of {renamed.before}, whose test is gone. If it is that "
        "test, it keeps its baseline so:",
        yellow=True,
    )
    made = {target.parent for _, target in renamed.moves if not target.parent.exists()}
    for new in sorted(os.path.relpath(path, folder) for path in made):
        out.write_line(f"  mkdir -p {shell_word(new)}")
    for path, target in renamed.moves:
        pair = " ".join(shell_word(os.path.relpath(one, folder)) for one in (path, target))
        out.write_line(f"  git mv {pair}")
