"""May I upgrade? The answer in the terminal, as a page for the pull request that upgrades, and as JSON."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

from jaxgate.ext.upgrade.model import Answer, Change, Group, Section, UpgradeReport
from jaxgate.model.words import plural, shortlist
from jaxgate.report.printable import code, fold, plain, printable, printable_line
from jaxgate.report.units import show_pair, show_ratio

UPGRADE_SCHEMA = 1
MAX_GROUPS = 12
"""Groups of one kind in the terminal; the page has all."""
MAX_FAMILIES = 4
LEAST_WIDTH = 60
_GLUE = "\u00a0"
"""Keeps numbers on one line where text is wrapped."""
MAX_LINES = 3
_TITLES = {
    Section.CANNOT_RUN: "cannot run there",
    Section.WORSE: "worse there",
    Section.COMPILES_SLOWER: "tracing and compiling: slower there",
    Section.RUNS_SLOWER: "calls: slower there",
    Section.UNKNOWN: "could not be compared",
    Section.WARNS: "new warnings there",
    Section.BETTER: "better there",
    Section.COMPILES_FASTER: "tracing and compiling: faster there",
    Section.RUNS_FASTER: "calls: faster there",
}
_ICONS = {Answer.YES: "✅", Answer.NO: "❌", Answer.UNKNOWN: "⚠️"}
_BY_CLOCK = {Section.COMPILES_SLOWER, Section.RUNS_SLOWER, Section.COMPILES_FASTER, Section.RUNS_FASTER}


def upgrade_lines(report: UpgradeReport, width: int) -> list[str]:
    """The answer in one line, what differs between the environments, and each group with its number of cases."""
    lines = _wrapped(answer_line(report), width, "", "  ")
    lines += _wrapped(f"{report.other}: {'; '.join(report.differences) or 'nothing differs'}", width, "  ", "    ")
    for section in Section:
        groups = report.of(section)
        if not groups:
            continue
        lines += ["", f"{_TITLES[section]}, {plural(_cases(groups), 'case')}"]
        for group in groups[:MAX_GROUPS]:
            head, most = _described(group)
            lines += _wrapped(head, width, f"{len(group.cases):>5}  ", " " * 7)
            lines += _wrapped(most, width, " " * 7, " " * 9)
        if len(groups) > MAX_GROUPS:
            lines.append(f"       and {plural(len(groups) - MAX_GROUPS, 'more group')}, on the page")
    return [printable_line(line) for line in [*lines, "", *_wrapped(_clock_line(report), width, "", "  ")]]


def answer_line(report: UpgradeReport) -> str:
    """The answer with its figures."""
    counts = [
        f"{_cases(groups)} {word}"
        for section, word in (
            (Section.CANNOT_RUN, "cannot run there"),
            (Section.WORSE, "worse"),
            (Section.COMPILES_SLOWER, "slower to compile"),
            (Section.RUNS_SLOWER, "slower"),
            (Section.UNKNOWN, "not comparable"),
            (Section.BETTER, "better"),
        )
        if (groups := report.of(section))
    ]
    found = ", ".join([*counts, f"{len(report.same)} the same"])
    return f"{report.answer}: {plural(len(report.cases), 'case')}: {found}"


def _cases(groups: Sequence[Group]) -> int:
    return len({case for group in groups for case in group.cases})


def _clock_line(report: UpgradeReport) -> str:
    times = report.times
    claims = f"; {plural(times.claims, 'claim')} on time not judged" if times.claims else ""
    if not times.timed:
        return f"time: no case was timed: {_untimed(report)}{claims}"
    hidden = (
        f"; of {plural(times.could_hide, 'case')} a slow-down of 10% could hide in the differences between launches"
        if times.could_hide
        else ""
    )
    more = f"; {times.untimed} differ on virtual devices, which no clock judges" if times.untimed else ""
    lost = f"; {times.lost} lost a launch" if times.lost else ""
    launches = plural(times.launches, "launch", "launches")
    return f"time: {plural(times.timed, 'case')} timed, in up to {launches} of each side{lost}{hidden}{more}{claims}"


def _untimed(report: UpgradeReport) -> str:
    if not report.compared:
        return "none was compared"
    if report.times.lost:
        return f"{plural(report.times.lost, 'case')} lost a launch"
    if report.times.asked:
        return f"{plural(report.times.asked, 'case')} may differ in time, and --benchmark-disable keeps the clock off"
    count = report.times.untimed
    return f"{count} differ on virtual devices, which no clock judges" if count else "all executables are the same"


def _described(group: Group) -> tuple[str, str]:
    """One group in words: what it is, where and in which families; and its greatest case with the numbers."""
    first, several = group.changes[0], len(group.cases) > 1
    lines = f" at {shortlist(group.lines, MAX_LINES)}" if group.lines else ""
    families = [f"{name} {count}" for name, count in group.families]
    where = f" ({shortlist(families, MAX_FAMILIES)})" if several else ""
    numbers = _numbers(first).replace(" ", _GLUE)
    most = f"{'most: ' if several else ''}{first.case} {numbers}".rstrip() if numbers or not several else ""
    detail = f" ({first.detail})" if first.detail and not several else ""
    return f"{_headline(group)}{lines}{where}", f"{most}{detail}"


def _headline(group: Group) -> str:
    first = group.changes[0]
    if first.here is None or first.there is None:
        return group.what
    pairs = [(change.here, change.there) for change in group.changes]
    ways = {there > here for here, there in pairs if here is not None and there is not None}
    word = "moved" if len(ways) > 1 else "larger" if True in ways else "smaller"
    if group.section in _BY_CLOCK:
        word = "longer" if word == "larger" else "shorter"
    return f"{group.what} {word}"


def _numbers(change: Change) -> str:
    if change.here is None or change.there is None:
        return ""
    there, here = show_pair(change.what, change.there, change.here)
    ratio = show_ratio(change.there, change.here)
    return f"{here} → {there}{f' = {ratio}' if ratio else ''}"


def _wrapped(text: str, width: int, indent: str, hanging: str) -> list[str]:
    lines = textwrap.wrap(
        text,
        max(width, LEAST_WIDTH),
        initial_indent=indent,
        subsequent_indent=hanging,
        break_on_hyphens=False,
        break_long_words=False,
    )
    return [line.replace(_GLUE, " ") for line in lines]


def upgrade_page(report: UpgradeReport) -> str:
    """A page for the pull request that upgrades: the answer, a table of all groups, and each with its cases."""
    lines = [
        f"## {_ICONS[report.answer]} May I upgrade to {code(report.other)}? {plain(answer_line(report))}",
        "",
        *(f"- {plain(line)}" for line in report.differences or ("nothing differs between the environments",)),
        "",
    ]
    for section in Section:
        groups = report.of(section)
        if not groups:
            continue
        lines += [f"### {_TITLES[section].capitalize()} ({plural(_cases(groups), 'case')})", ""]
        for group in groups:
            lines += [fold(_summary(group), "\n".join(_table(group))), ""]
    lines += [plain(_clock_line(report)), ""]
    if report.same:
        lines += [fold(f"{plural(len(report.same), 'case')} the same", ", ".join(map(code, report.same))), ""]
    lines.append(
        f"Facts are of one process of each environment; what is slower is so in every launch. jaxgate {version('jaxgate')}"
    )
    return printable("\n".join(lines)) + "\n"


def _summary(group: Group) -> str:
    text = "; ".join(filter(None, _described(group))).replace(_GLUE, " ")
    return plain(f"{plural(len(group.cases), 'case')}: {text}")


def _table(group: Group) -> Iterator[str]:
    numbers = any(change.here is not None for change in group.changes)
    detail = any(_about(change) for change in group.changes)
    heads = ["case", *(["here", "there", "there / here"] if numbers else []), *(["about"] if detail else [])]
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    for change in group.changes:
        cells = [code(change.case)]
        if numbers:
            there, here = show_pair(change.what, change.there, change.here)
            cells += [here, there, show_ratio(change.there, change.here)]
        cells += [plain(_about(change))] if detail else []
        yield f"| {' | '.join(cells)} |"


def _about(change: Change) -> str:
    """What else the page says of a change: where it is, its cause, its launches."""
    decision = change.decision
    range_ = (
        f"{decision.pairs} launches of each, {decision.low:.2f} to {decision.high:.2f} ×"
        if decision is not None
        else ""
    )
    return "; ".join(filter(None, (change.line, change.detail, range_)))


def upgrade_json(report: UpgradeReport) -> str:
    """Everything, for machines."""
    content: dict[str, Any] = {
        "schema": UPGRADE_SCHEMA,
        "jaxgate": version("jaxgate"),
        "answer": str(report.answer),
        "exit_code": report.answer.exit_code,
        "said": answer_line(report),
        "other": report.other,
        "differences": list(report.differences),
        "compared": list(report.compared),
        "same": list(report.same),
        "times": asdict(report.times),
        "groups": [
            {
                "section": group.section.name.lower(),
                "what": group.what,
                "cases": [
                    {name: value for name, value in asdict(change).items() if name not in ("section", "what")}
                    for change in group.changes
                ],
            }
            for group in report.groups
        ],
    }
    return printable(json.dumps(content, indent=1, ensure_ascii=False)) + "\n"
