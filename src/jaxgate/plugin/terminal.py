"""What a run shows in the terminal when it is over: a line for each case, and what else is to be known of it."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jaxgate.engine.run.ending import Ending, ExitStatus, lost, recorded_worse, unfit
from jaxgate.engine.run.result_files import ACTIONS, PAGE
from jaxgate.ext.upgrade.environment_runs import Comparison
from jaxgate.judge.ageing import WARN_DAYS, WINDOW_DAYS, untested
from jaxgate.judge.timing.rates import scaling
from jaxgate.keep.waivers import FILE
from jaxgate.model.decision import ALWAYS_FAIL, Status
from jaxgate.model.words import plural, shortlist
from jaxgate.plugin import session_end
from jaxgate.plugin.advice import advise
from jaxgate.plugin.console import MAX_NAMED, Console
from jaxgate.plugin.reports import ON_PAGES
from jaxgate.plugin.stash import SESSION, SETTINGS, TESTS
from jaxgate.report.printable import printable
from jaxgate.report.pull_request import error_commands
from jaxgate.report.summary import count, moved, shared_differences, summary
from jaxgate.report.text import details, scaling_lines

if TYPE_CHECKING:
    from jaxgate.engine.run.session import GateSession

_TYPED = "; that is not green here: what a run may leave out is typed (-k, -m, --deselect)"
_GREEN, _YELLOW, _RED = {"green": True}, {"yellow": True}, {"red": True, "bold": True}
_MARKUP = dict.fromkeys(Status, _YELLOW) | dict.fromkeys((Status.SAME, Status.FASTER, Status.IMPROVED), _GREEN)
_MARKUP |= dict.fromkeys(ALWAYS_FAIL, _RED)


def summarise(out: Console, config: pytest.Config) -> None:
    """Show one line for each case, then what is wrong with the baselines, then what was not judged."""
    gates, folder = config.stash.get(SESSION, None), config.invocation_params.dir
    if gates is not None and gates.result.verdicts:
        ending = config.stash.get(session_end.ENDING, Ending(status=ExitStatus(code=0)))
        _verdicts(out, gates)
        _undecided_anywhere(out, gates)
        _what_next(out, gates, ending, folder)
        _notices(out, gates, ending, folder)
        _bundles(out, gates, folder, on_pages=config.stash.get(ON_PAGES, False))
        advise(out, gates, ending, folder)
    if session_end.OUTCOME in config.stash:
        outcome = config.stash[session_end.OUTCOME]
        _edits(out, outcome.judge_edits)
        for command in error_commands(outcome) if os.environ.get(ACTIONS) == "true" else ():
            out.ensure_newline()
            out.write_line(command)
    if gates is not None:
        _compiled_only(out, gates)
    selected, settings = config.stash[TESTS].selected, config.stash[SETTINGS]
    missing = sorted(selected if gates is None else gates.result.not_judged(selected))
    if missing and not config.option.collectonly and settings.runs_tests:
        nothing = settings.strict and session_end.nothing_judged(config)
        strict = nothing or (gates is not None and settings.demands_all)
        why = _TYPED if strict else ""
        why = "; no gate was judged, and that is not green here" if nothing else why
        verb, named = "was" if len(missing) == 1 else "were", f": {shortlist(missing, MAX_NAMED)}" if strict else ""
        count = f"{len(missing)} of {len({*selected, *missing})}"
        out.ensure_newline()
        out.write_line(f"jaxgate: {count} gates {verb} not judged{named}{why}", yellow=not strict, red=strict)


def _edits(out: Console, edits: Sequence[str]) -> None:
    """Show the lines that a change edits of settings and tests: what is green may be green because of them."""
    if edits:
        named = "; ".join(edits[:MAX_NAMED]) + (" …" if len(edits) > MAX_NAMED else "")
        many = plural(len(edits), "line of this change says", "lines of this change say")
        out.ensure_newline()
        out.write_line(printable(f"EDITS ITS JUDGE: {many} how it is judged: {named}"), yellow=True)


def _verdicts(out: Console, session: GateSession) -> None:
    slugs = sorted({verdict.hardware.slug for verdict in session.result.verdicts if verdict.hardware})
    out.ensure_newline()
    out.section(f"jaxgate on {', '.join(slugs)}" if slugs else "jaxgate")
    if session.comparison is not None:
        _environments(out, session.comparison)
    elif shared := shared_differences(session.result.verdicts):
        out.write_line(f"all baselines are of another environment: {', '.join(shared)}", yellow=True)
    if recorded_with := sorted(set(session.result.other_lines.values())):
        cases = plural(len(session.result.other_lines), "case is", "cases are")
        what = f"{cases} compared with baselines of jax {', '.join(recorded_with)}: jax {session.store.line} has none of its own"
        out.write_line(f"{what}; record them beside those: --perf-update=create", yellow=True)
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    verdicts = sorted(session.result.verdicts, key=lambda verdict: verdict.fails)  # red ones last, where a person looks
    lines = summary(verdicts, width=width, environments=session.comparison is not None)
    for verdict, (status, word, rest) in zip(verdicts, lines, strict=True):
        out.write(word, **_MARKUP[status])
        out.write(f"{rest}\n")
        if session.comparison is not None:
            for line in moved(verdict):
                out.write_line(f"{'':<{len(word)}}    {line}")
        for line in details(verdict) if out.verbose else ():
            out.write_line(f"{'':<{len(word)}}    {line}")
    out.write_line(count(verdicts))
    for line in scaling_lines(scaling(session.result.verdicts)):
        out.write_line(f"SCALING  {line}")


def _environments(out: Console, comparison: Comparison) -> None:
    """Show what differs between both environments, before any effect of it."""
    out.write_line(
        f"this environment against {comparison.other}, {plural(len(comparison.here), 'launch', 'launches')} of each"
    )
    for line in comparison.differences() or ("nothing that an environment records differs",):
        out.write_line(f"  {line}")


def _undecided_anywhere(out: Console, session: GateSession) -> None:
    """Show how many cases no machine could decide, and what would decide them."""
    count = sum(verdict.undecided_anywhere for verdict in session.result.verdicts)
    if count:
        what = plural(count, "case is", "cases are")
        out.write_line(
            f"{what} UNDECIDED on any machine, which does not count against this one; times recorded on quiet hardware "
            "would decide (--perf-update=times), on virtual devices and targets nothing"
        )


def _what_next(out: Console, session: GateSession, ending: Ending, folder: Path) -> None:
    for note in session.margins.notes:
        out.write_line(note, yellow=True)
    why_unfit = unfit(session)
    if why_unfit:
        out.write_line(f"{why_unfit}{' (exit code 2)' if ending.status.undecided else ''}", red=True)
    for problem in (*session.result.clashes, *ending.wrong):
        for line in problem.splitlines():
            out.write_line(line, red=True)
    if any(verdict.baseline.recorded for verdict in session.result.verdicts):
        baselines = os.path.relpath(session.settings.baselines, folder)
        out.write_line(f"Recorded under {baselines}; commit it, its log with it.")
        _without_clock(out, session)
        _reason_wanted(out, session)
    elif session.settings.against:
        out.write_line(
            f"Compared with {session.settings.against[:10]}, recorded now; NO_BASELINE is a case that is not in it."
        )
        for case, why in lost(session).items():
            out.write_line(f"NOT COMPARED {case}: it failed in that revision: {why}", yellow=True)
        for slug, what in ending.adopted.items():
            out.write_line(f"{slug}: {what}.")
    elif any(verdict.status is Status.NO_BASELINE and not verdict.fails for verdict in session.result.verdicts):
        out.write_line(
            "NO_BASELINE: only claims were checked. Record with --perf-update and commit; under CI this fails.",
            yellow=True,
        )


def _compiled_only(out: Console, session: GateSession) -> None:
    """Say once for all cases which hardware they were only compiled for."""
    targets = {verdict.hardware.target for verdict in session.result.verdicts if verdict.hardware} - {""}
    if session.compiler is not None:
        targets.add(str(session.compiler.target))
    if targets:
        count = plural(len(session.result.left_out), "gate has", "gates have")
        left = f"; {count} no program there, -rs says why" if session.result.left_out else ""
        named = ", ".join(sorted(targets))
        out.ensure_newline()
        out.write_line(f"Compiled for {named} and not called: facts and claims gate, no time and no result{left}.")


def _without_clock(out: Console, session: GateSession) -> None:
    """Show how many cases were recorded without a clock, and what that means for later runs."""
    count = sum(
        verdict.baseline.recorded != ""
        and verdict.cost.run_ns is None
        and not (verdict.hardware and verdict.hardware.target)
        for verdict in session.result.verdicts
    )
    if count:
        what = plural(count, "case was", "cases were")
        out.write_line(
            f"WITHOUT A CLOCK: {what} recorded under --benchmark-disable: their facts gate; how long a call takes is not "
            "known, but where the same program had a time that stays; a changed program is timed beside the stored one as "
            "ever. Record without that option to have a time"
        )


def _reason_wanted(out: Console, session: GateSession) -> None:
    """Ask for the reason of an accepted loss: the log has only its figure."""
    worse = recorded_worse(session.result.verdicts)
    if worse and not session.settings.why.strip():
        is_worse = plural(len(worse), "refreshed case is", "refreshed cases are")
        named = shortlist([verdict.case for verdict in worse], MAX_NAMED)
        out.write_line(f"REASON WANTED: {is_worse} worse ({named}); say why with --perf-why TEXT", yellow=True)


def _notices(out: Console, session: GateSession, ending: Ending, folder: Path) -> None:
    newer = untested(version("jax"))
    if newer:
        out.write_line(f"NOTE {newer}", yellow=True)
    if ending.status.only_machine:
        tests = plural(session.result.accused, "test")
        why = "failed because the machine is the suspect, none for another reason: it is unfit to gate"
        out.write_line(f"{tests} {why} (exit code 2)", red=True)
    if ending.status.uncounted:
        cases = plural(len(ending.status.uncounted), "case fails", "cases fail")
        named = shortlist(ending.status.uncounted, MAX_NAMED)
        out.write_line(
            f"NOT COUNTED: {cases}, and pytest counts no failure (exit code 1): {named}; take xfail, or what catches the "
            "failure, from the test",
            red=True,
        )
    file = os.path.relpath(session.settings.baselines / FILE, folder)
    for entry, why in ending.idle_entries:
        out.write_line(f"{entry}: {why}; remove it from {file}", yellow=True)
    old = session.result.ageing(session.today)
    if old is not None:
        programs = plural(old.programs, "stored program was", "stored programs were")
        out.write_line(
            f"AGEING: {programs} recorded more than {WARN_DAYS} days ago (oldest {old.oldest}, {old.case}): jax promises "
            f"to read them for {WINDOW_DAYS} days; refresh with --perf-update",
            yellow=True,
        )


def _bundles(out: Console, session: GateSession, folder: Path, *, on_pages: bool) -> None:
    captures = session.evidence
    if captures.taken:
        where = os.path.relpath(captures.artifacts.root, folder)
        profiles = (
            f"; open the profiles: jaxgate tensorboard --logdir {shlex.quote(where)}" if captures.profiled else ""
        )
        more = ", with the difference of each program and its largest buffers (-v prints them)" if on_pages else ""
        out.write_line(f"{plural(len(captures.taken), 'bundle')} in {where}{more}{profiles}")
    red = any(verdict.fails for verdict in session.result.verdicts)
    if PAGE in captures.pages and (red or out.verbose):
        out.write_line(f"The run on one page: {os.path.relpath(captures.artifacts.root / PAGE, folder)}")
    if captures.left:
        more = ", ".join(captures.left[:MAX_NAMED]) + (" …" if len(captures.left) > MAX_NAMED else "")
        out.write_line(
            f"NOT PROFILED, {len(captures.left)} of them (--perf-profile=always profiles all): {more}", yellow=True
        )
    for problem in captures.problems:
        out.write_line(f"jaxgate: {problem}", yellow=True)
