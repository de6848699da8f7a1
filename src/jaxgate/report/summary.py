"""The end of a run in the terminal: one line for every case, what all of them share above it, the counts below it."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence

from jaxgate.model.decision import UNMEASURED, Status
from jaxgate.model.verdict import Verdict
from jaxgate.model.words import cut, in_brackets, plural
from jaxgate.report.printable import headed, printable_line
from jaxgate.report.text import beside, call_time, describe_finding, in_short
from jaxgate.report.waivers import has_waived

_MOVED = frozenset({Status.IMPROVED, Status.FASTER, Status.REGRESSED, Status.SLOWER, Status.WAIVED})
_UNREMARKABLE = frozenset({Status.SAME, Status.EXPECTED})
MIN_WRAPPED = 40
"""Columns below which lines are cut: to wrap them would fill the screen."""


def shared_differences(verdicts: Sequence[Verdict]) -> tuple[str, ...]:
    """What differs between the environments of today and of the baselines, where it is the same of several cases."""
    known = [_environment(verdict) for verdict in verdicts if verdict.origin is not None]
    first = known[0] if len(known) > 1 else ()
    return tuple(line for line in first if all(line in others for others in known))


def summary(
    verdicts: Sequence[Verdict], *, width: int | None, environments: bool = False
) -> list[tuple[Status, str, str]]:
    """One line per case, aligned: its status, the padded word to colour, and the rest of the line.

    ``width`` is the columns of the terminal; ``None`` where nothing wraps (a file, a CI log). Where a line does not
    fit, rates are left out; then calm lines are cut, and the others go on below. If two ``environments`` were compared,
    what moved is listed below each line. What ``shared_differences`` gives is in none of the lines: it is said once,
    above them.
    """
    shared = () if environments else shared_differences(verdicts)
    short = [beside(verdict) if environments else _without(in_short(verdict), verdict, shared) for verdict in verdicts]
    texts = list(map(printable_line, short))
    words = [verdict.baseline.recorded.upper() or str(verdict.status) for verdict in verdicts]

    def lines(*, rates: bool) -> list[tuple[str, str]]:
        cells = [(word, one.case, call_time(one, rates=rates)) for word, one in zip(words, verdicts, strict=True)]
        return headed(cells, right={2}, texts=texts)

    found = lines(rates=True)
    if width is not None and any(len(word + rest) > width for word, rest in found):
        found = lines(rates=False)
    return [
        (verdict.status, word, _fitted(word, rest, width, whole=verdict.status not in _UNREMARKABLE))
        for verdict, (word, rest) in zip(verdicts, found, strict=True)
    ]


def _fitted(word: str, rest: str, width: int | None, *, whole: bool) -> str:
    """The rest of a line after its first word in so many columns: cut, or whole on several lines."""
    room = None if width is None else width - len(word)
    if not whole or width is None or len(word + rest) <= width or width < MIN_WRAPPED:
        return cut(rest, room)
    glued = (word + rest).replace(" ×", "\xa0×")  # a ratio is not torn from its sign
    filled = textwrap.fill(glued, width, subsequent_indent=" " * 6, break_on_hyphens=False)
    return filled.replace("\xa0×", " ×")[len(word) :]


def _environment(verdict: Verdict) -> tuple[str, ...]:
    """Differences of the environment, without those of the program, as an origin lists them: ``jax 0.10.2 → 0.12.0``."""
    return () if verdict.origin is None else tuple(line for line in verdict.origin.differences if " → " in line)


def _without(text: str, verdict: Verdict, shared: Sequence[str]) -> str:
    """A line that names differences of its environment without those that all lines share."""
    named = [line for line in _environment(verdict) if not line.startswith("hardware ")]  # said in words
    return (
        text.replace(in_brackets(named), in_brackets([line for line in named if line not in shared]))
        if shared
        else text
    )


def moved(verdict: Verdict) -> list[str]:
    """Every number of a case that is not the same, a phrase each."""
    return [
        describe_finding(finding)
        for finding in verdict.findings
        if finding.kind in ("fact", "phase", "time") and finding.status in _MOVED and finding.now is not None
    ]


def count_statuses(verdicts: Sequence[Verdict]) -> str:
    """How many cases were recorded and how many have each status, worst last: ``2 CREATED, 1 SAME``."""
    recorded = Counter(verdict.baseline.recorded.upper() for verdict in verdicts if verdict.baseline.recorded)
    counts = Counter(verdict.status for verdict in verdicts if not verdict.baseline.recorded)
    parts = [f"{number} {word}" for word, number in sorted(recorded.items())]
    return ", ".join([*parts, *(f"{counts[status]} {status}" for status in Status if counts[status])])


def count(verdicts: Sequence[Verdict]) -> str:
    """How many cases a run has, and how many have each status, worst last."""
    others = sum(has_waived(verdict) and verdict.status is not Status.WAIVED for verdict in verdicts)
    waived = f" ({others} of them with something waived)" if others else ""
    return f"{plural(len(verdicts), 'case')}: {count_statuses(verdicts)}{waived}"


MAX_FIGURES = 4
_REFUSED = UNMEASURED | {Status.REGRESSED, Status.WAIVED}


def review_lines(verdict: Verdict) -> list[str]:
    """The verdict, what moved now and before, and what made it worse."""
    lines = [f"{verdict.status}  {verdict.case}"]
    figures = moved(verdict)
    if not figures and verdict.worst is not None:
        figures = [describe_finding(verdict.worst)]
    lines += [f"  {figure}" for figure in figures[:MAX_FIGURES]]
    if len(figures) > MAX_FIGURES:
        lines.append(f"  and {len(figures) - MAX_FIGURES} more")
    if verdict.causes:
        lines.append(f"  culprit: {verdict.causes[0]}")
    return [printable_line(line) for line in lines]


def why_not_acceptable(verdict: Verdict) -> str:
    """Why no baseline can make a case right: its first broken claim, or what could not be judged; empty if one can.

    A claim that is waived is broken all the same.
    """
    for finding in verdict.findings:
        if finding.status in UNMEASURED or (finding.kind in ("claim", "case", "drift") and finding.status in _REFUSED):
            return describe_finding(finding)
    return ""
