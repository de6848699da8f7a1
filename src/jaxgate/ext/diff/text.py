"""Two sides beside each other, for the terminal, as Markdown and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from math import exp, log
from statistics import fmean
from typing import Any

from jaxgate.ext.diff.model import CaseDiff, QuantityDiff, RunDiff, Way
from jaxgate.model.words import plural, shortlist
from jaxgate.report.printable import aligned, code, plain, printable, printable_line
from jaxgate.report.units import show_pair, show_ratio

MAX_CASES = 25
"""Cases in the terminal; with ``everything`` all are there."""
MAX_FACTS = 3
MAX_NAMED = 4
_WORDS = {Way.WORSE: "worse", Way.BETTER: "better", Way.MOVED: "moved", Way.SAME: "the same"}
_SIGNS = {Way.WORSE: "❌", Way.BETTER: "✅", Way.MOVED: "▫️"}
_WIDEST = max(map(len, Way))
_TIMES = ("run_ns", "compile_ns", "trace_ns")


def diff_lines(diff: RunDiff, *, everything: bool = False) -> list[str]:
    """Both sides, how many cases went which way, and a line for each case that differs."""
    lines = aligned([("first", diff.first.name, diff.first.about), ("second", diff.second.name, diff.second.about)])
    lines += ["", _counts(diff)]
    differing = [case for case in diff.cases if case.facts]
    shown = differing if everything else differing[:MAX_CASES]
    for case in shown:
        lines += [f"{case.way:<{_WIDEST}}  {case.case}", f"{'':<{_WIDEST}}  {_facts(case, everything=everything)}"]
    if len(shown) < len(differing):
        lines.append(f"and {plural(len(differing) - len(shown), 'more case')}: --all")
    lines += [*_alone(diff, everything=everything), *_unknown(diff), *_times(diff)]
    return [printable_line(line) for line in lines]


def diff_page(diff: RunDiff) -> str:
    """Both sides as Markdown, with all cases and facts."""
    parts = [
        "## jaxgate diff",
        f"- first: {code(diff.first.name)}, {plain(diff.first.about)}\n"
        f"- second: {code(diff.second.name)}, {plain(diff.second.about)}",
        plain(_counts(diff)),
    ]
    rows = [(case, fact) for case in diff.cases for fact in case.facts]
    if rows:
        head = ["| | case | fact | first | second | ratio |", "|---|---|---|---:|---:|---:|"]
        parts.append("\n".join([*head, *(_row(case, fact) for case, fact in rows)]))
    parts += [plain(line) for line in diff_summary(diff)[1:]]
    return printable("\n\n".join(parts)) + "\n"


def diff_summary(diff: RunDiff) -> list[str]:
    """Both sides as a whole: counts, what only one side has or knows, times."""
    return [_counts(diff), *_alone(diff, everything=True), *_unknown(diff), *_times(diff)]


def diff_json(diff: RunDiff) -> dict[str, Any]:
    """Everything, for machines: ``docs/diff.md`` says what each key means."""
    return {
        "first": {"name": diff.first.name, "about": diff.first.about},
        "second": {"name": diff.second.name, "about": diff.second.about},
        "cases": [_case(case) for case in diff.cases],
        "only_first": list(diff.only_first),
        "only_second": list(diff.only_second),
    }


def _counts(diff: RunDiff) -> str:
    if not diff.cases:
        return "no case is on both sides"
    found = [f"{count} {_WORDS[way]}" for way in Way if (count := len(diff.of(way)))]
    judged = any(case.comparable for case in diff.cases)
    hint = "" if judged else "; hardware or release line differ, so nothing is called worse or better"
    return f"{plural(len(diff.cases), 'case')} on both sides: {', '.join(found)}{hint}"


def _facts(case: CaseDiff, *, everything: bool) -> str:
    shown = case.facts if everything else case.facts[:MAX_FACTS]
    more = len(case.facts) - len(shown)
    return "; ".join([*map(_fact, shown), *([f"{more} more"] if more else [])])


def _fact(fact: QuantityDiff) -> str:
    first, second = show_pair(fact.name, fact.first, fact.second)
    ratio = _ratio(fact)
    return f"{fact.name} {first} → {second}{f' = {ratio}' if ratio else ''}"


def _ratio(fact: QuantityDiff) -> str:
    """The ratio; empty where a side is 0, as the numbers say it."""
    return show_ratio(fact.second, fact.first) if fact.second else ""


def _row(case: CaseDiff, fact: QuantityDiff) -> str:
    first, second = show_pair(fact.name, fact.first, fact.second)
    return f"| {_SIGNS[fact.way]} | {code(case.case)} | {code(fact.name)} | {first} | {second} | {_ratio(fact)} |"


def _alone(diff: RunDiff, *, everything: bool) -> Iterator[str]:
    for which, names in (("first", diff.only_first), ("second", diff.only_second)):
        if names:
            shown = names if everything else names[:MAX_NAMED]
            yield f"only on the {which} side: {plural(len(names), 'case')}: {shortlist(list(names), len(shown))}"


def _unknown(diff: RunDiff) -> Iterator[str]:
    """Facts that one side lacks are not compared: a fact that vanished must not look like no difference."""
    for which in ("first", "second"):
        cases = [case for case in diff.cases if which in case.unknown.values()]
        if cases:
            names = sorted({name for case in cases for name, side in case.unknown.items() if side == which})
            yield f"known on the {which} side only, in {plural(len(cases), 'case')}: {shortlist(names, MAX_NAMED)}"


def _times(diff: RunDiff) -> Iterator[str]:
    """Times of two moments in one line each: how both sides differ on the whole, and where most."""
    for name in _TIMES:
        moved = [
            (log(one.ratio), show_ratio(one.second, one.first), case.case)
            for case in diff.cases
            for one in case.times
            if one.name == name and one.ratio
        ]
        if moved:
            typical = exp(fmean(ratio for ratio, *_ in moved))
            _, most, where = max(moved, key=lambda one: abs(one[0]))
            whole = f"{typical:.2f} × on the whole ({plural(len(moved), 'case')}, geometric mean)"
            yield f"{name}: {whole}, at most {most} in {where}; taken at two moments, not judged"


def _case(case: CaseDiff) -> dict[str, Any]:
    return {
        "case": case.case,
        "way": str(case.way),
        "comparable": case.comparable,
        "same_program": case.same_program,
        "first": {"folder": case.first.folder, "status": case.first.status},
        "second": {"folder": case.second.folder, "status": case.second.status},
        "facts": [_quantity(one) for one in case.facts],
        "times": [_quantity(one) for one in case.times],
        "unknown": dict(case.unknown),
    }


def _quantity(one: QuantityDiff) -> dict[str, Any]:
    return {**asdict(one), "way": str(one.way), "ratio": one.ratio}
