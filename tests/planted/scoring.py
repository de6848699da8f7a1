"""The score as people read it: in the terminal, and as a page of the docs."""

from __future__ import annotations

import datetime as dt

from tests.planted.model import Outcome, Score


def summary(score: Score) -> list[str]:
    """Caught, blamed, left alone."""
    faults, unchanged = score.faults, score.unchanged
    caught, blamed = (sum(getattr(outcome, name) for outcome in faults) for name in ("caught", "blamed"))
    first = sum(outcome.first for outcome in faults)
    quiet, identical = (sum(getattr(outcome, name) for outcome in unchanged) for name in ("caught", "identical"))
    return [
        f"faults caught            {_share(caught, len(faults))}",
        f"first culprit line right {_share(blamed, len(faults))}; by its first clause alone {_share(first, len(faults))}",
        f"unchanged, no alarm      {_share(quiet, len(unchanged))}; {identical} found identical, so that no clock is asked",
        f"{score.versions}, {score.seconds:.0f} s",
    ]


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({part / whole:.0%})" if whole else "0 of 0"


def word(outcome: Outcome) -> str:
    """What came of a fault, in one word."""
    if not outcome.caught:
        return "missed"
    return "right" if outcome.blamed else "misblamed"


def failures(score: Score) -> list[str]:
    """A paragraph for each outcome that is wrong."""
    wrong = [outcome for outcome in score.faults if not outcome.blamed]
    alarms = [outcome for outcome in score.unchanged if not outcome.caught]
    return [
        *(
            f"{word(outcome).upper()}  {outcome.kind}: {outcome.name} ({outcome.program}.py)\n"
            f"    {outcome.status} {', '.join(outcome.moved) or 'no fact'}: {outcome.line}\n    {outcome.why}"
            for outcome in wrong
        ),
        *(f"ALARM  {outcome.name} of {outcome.program}.py: {outcome.why}\n    {outcome.line}" for outcome in alarms),
    ]


def markdown(score: Score) -> str:
    """The page ``docs/planted.md``."""
    today = dt.datetime.now(tz=dt.UTC).date().isoformat()
    rows = [
        f"| {outcome.kind} | {outcome.name} | {word(outcome)} | {', '.join(outcome.moved) or '–'} | {_cell(outcome.line)} |"
        for outcome in score.faults
    ]
    lines = [
        "# Planted faults",
        "",
        "Each row is a mistake of a few characters in a small program of `tests/planted/programs/`. The program was observed",
        "before and after, and judged as any case is. *right*: red for a fact that the mistake moves, and the first culprit line",
        "names the planted cause. *misblamed*: red, but the line names something else. *missed*: not red, or for another reason.",
        "The unchanged programs are the same sources renamed, reordered, reformatted or spelled differently; none may alarm.",
        "",
        f"Written by `python -m tests.planted --markdown docs/planted.md` on {today}.",
        "",
        "```text",
        *summary(score),
        "```",
        "",
        "| family | fault | outcome | facts that turned red | first culprit line |",
        "|---|---|---|---|---|",
        *rows,
    ]
    alarms = [
        f"- {outcome.name} of {outcome.program}.py: {outcome.why}" for outcome in score.unchanged if not outcome.caught
    ]
    return "\n".join([*lines, *(["", "Alarms on unchanged programs:", "", *alarms] if alarms else [])]) + "\n"


def _cell(line: str) -> str:
    cut = line if len(line) <= 160 else line[:159] + "…"
    return f"`{cut.replace('|', '¦').replace('`', '´')}`" if cut else "–"
