"""What a run shows in the terminal when it is over."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from jaxgate.judge.ageing import WARN_DAYS, WINDOW_DAYS
from jaxgate.judge.efficiency import scaling
from jaxgate.keep.waivers import FILE
from jaxgate.model import Status
from jaxgate.plugin.advising import show_advice
from jaxgate.plugin.fitness import lost, unfit
from jaxgate.plugin.launching import Comparison
from jaxgate.plugin.orphans import Orphans
from jaxgate.plugin.run import Run
from jaxgate.report.calibration import calibration_text
from jaxgate.report.efficiency import scaling_lines
from jaxgate.report.text import count, moved, summary

MAX_LEFT = 5
"""Cases without a profile that are named; all of them have a bundle."""
_GREEN, _YELLOW, _RED = {"green": True}, {"yellow": True}, {"red": True, "bold": True}
MARKUP = {
    Status.SAME: _GREEN,
    Status.FASTER: _GREEN,
    Status.IMPROVED: _GREEN,
    Status.EXPECTED: _YELLOW,
    Status.UNDECIDED: _YELLOW,
    Status.WAIVED: _YELLOW,
    Status.NO_BASELINE: _YELLOW,
    Status.STALE_BASELINE: _YELLOW,
    Status.SLOWER: _RED,
    Status.REGRESSED: _RED,
    Status.INVALID: _RED,
    Status.RESOURCE_EXHAUSTED: _RED,
}


def show(out: pytest.TerminalReporter, run: Run, orphans: Orphans | None, folder: Path) -> None:
    """Show what was judged, or what a calibration found.

    Args:
        out: pytest's terminal.
        run: The run.
        orphans: Baselines without a test, if they were looked for.
        folder: Where the user stands; paths are shown relative to it.
    """
    if run.calibrated:
        _calibration(out, run)
    elif run.verdicts:
        _verdicts(out, run)
        _what_next(out, run, folder)
        _notices(out, run, folder)
        _bundles(out, run, folder)
        show_advice(out, run)
        if orphans:
            _orphans(out, run, orphans, folder)


def _calibration(out: pytest.TerminalReporter, run: Run) -> None:
    found = run.calibrated
    out.ensure_newline()
    out.section("jaxgate: calibration", sep="-")
    out.write(calibration_text(found.cases, bound=found.bound, failed=found.failed) + "\n")
    for note in found.notes:
        out.write_line(note)


def _verdicts(out: pytest.TerminalReporter, run: Run) -> None:
    slugs = sorted({verdict.hardware.slug for verdict in run.verdicts if verdict.hardware})
    out.ensure_newline()
    out.section(f"jaxgate on {', '.join(slugs) or 'unknown hardware'}", sep="-")
    if run.comparison is not None:
        _environments(out, run.comparison)
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    lines = summary(run.verdicts, width=width, environments=run.comparison is not None)
    for verdict, (status, word, rest) in zip(run.verdicts, lines, strict=True):
        out.write(word, **MARKUP[status])
        out.write(f"{rest}\n")
        if run.comparison is not None:
            for line in moved(verdict):
                out.write_line(f"{'':<{len(word)}}    {line}")
    out.write_line(count(run.verdicts))
    for line in scaling_lines(scaling(run.verdicts)):
        out.write_line(f"SCALING  {line}")


def _environments(out: pytest.TerminalReporter, comparison: Comparison) -> None:
    """What differs between the two, before anything that it did."""
    out.write_line(f"this environment against {comparison.other}, {len(comparison.here)} launches of each")
    for line in comparison.differences() or ("nothing that an environment records differs",):
        out.write_line(f"  {line}")


def _what_next(out: pytest.TerminalReporter, run: Run, folder: Path) -> None:
    for note in run.margins.notes:
        out.write_line(note, yellow=True)
    why_unfit = unfit(run)
    if why_unfit:
        out.write_line(f"{why_unfit}{' (exit code 2)' if run.ended_unfit else ''}", red=True)
    for problem in run.clashes:
        out.write_line(problem, red=True)
    if any(verdict.recorded for verdict in run.verdicts):
        baselines = os.path.relpath(run.settings.baselines, folder)
        out.write_line(f"Recorded under {baselines}; commit it, its log with it.")
    elif run.settings.against:
        out.write_line(
            f"Compared with {run.settings.against[:10]}, recorded now; NO_BASELINE is a case that is not in it."
        )
        for case, why in lost(run).items():
            out.write_line(f"NOT COMPARED {case}: it failed in that revision: {why}", yellow=True)
        for slug, told in run.adopted.items():
            out.write_line(f"{slug}: {told}.")
    elif any(verdict.status is Status.NO_BASELINE and not verdict.fails for verdict in run.verdicts):
        out.write_line(
            "NO_BASELINE: only claims were checked. Record with --perf-update and commit; under CI this fails.",
            yellow=True,
        )


def _notices(out: pytest.TerminalReporter, run: Run, folder: Path) -> None:
    if run.only_machine:
        tests = "1 test" if run.accused == 1 else f"{run.accused} tests"
        why = "failed because the machine is the suspect, none for another reason: it is unfit to gate"
        out.write_line(f"{tests} {why} (exit code 2)", red=True)
    file = os.path.relpath(run.settings.baselines / FILE, folder)
    for waiver, why in run.idle_waivers:
        out.write_line(f"WAIVER {waiver.quantity} of {waiver.case}: {why}; remove it from {file}", yellow=True)
    old = run.ageing
    if old is not None:
        programs = "1 stored program was" if old.programs == 1 else f"{old.programs} stored programs were"
        out.write_line(
            f"AGEING: {programs} recorded more than {WARN_DAYS} days ago (oldest {old.oldest}, {old.case}): jax promises "
            f"to read them for {WINDOW_DAYS} days; refresh with --perf-update",
            yellow=True,
        )


def _bundles(out: pytest.TerminalReporter, run: Run, folder: Path) -> None:
    captures = run.captures
    if captures.taken:
        bundles = "1 bundle" if len(captures.taken) == 1 else f"{len(captures.taken)} bundles"
        where = os.path.relpath(captures.artifacts.root, folder)
        profiles = (
            f"; open the profiles: jaxgate tensorboard --logdir {shlex.quote(where)}" if captures.profiled else ""
        )
        out.write_line(f"{bundles} in {where}{profiles}")
    if captures.left:
        more = ", ".join(captures.left[:MAX_LEFT]) + (" …" if len(captures.left) > MAX_LEFT else "")
        out.write_line(f"NOT PROFILED, {len(captures.left)} of them (--perf-captures): {more}", yellow=True)
    for problem in captures.problems:
        out.write_line(f"jaxgate: {problem}", yellow=True)


def _orphans(out: pytest.TerminalReporter, run: Run, orphans: Orphans, folder: Path) -> None:
    red = run.settings.strict
    for path in orphans.paths:
        shown = os.path.relpath(path, folder)
        if run.settings.against:
            out.write_line(f"Only in the other revision: {path.parent.name}/{path.stem}")
        else:
            out.write_line(
                f"ORPHAN {shown}: its test is gone or has another name. Remove it: git rm '{shown}'",
                yellow=not red,
                red=red,
            )
    for error in orphans.unreadable:
        shown = os.path.relpath(error.path, folder)
        out.write_line(f"UNREADABLE {shown}: {error.reason}. Restore it: git checkout -- '{shown}'", red=True)
