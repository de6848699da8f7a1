"""``python -m tests.faults.public [--markdown FILE]``: rebuild every reported regression, and print what is said of it."""

from __future__ import annotations

import argparse
import datetime as dt
import sys
from pathlib import Path

from jaxgate.model.words import cut
from tests.faults.model import Outcome, Score
from tests.faults.public import NOT_REBUILT, REGRESSIONS, Regression, can_compile
from tests.faults.runner import run

COMMAND = "python -m tests.faults.public --markdown docs/regressions.md"
_WIDTH = 150


def is_right(outcome: Outcome) -> bool:
    """Whether it is red for what moved, and its first clause names the cause."""
    return outcome.caught and outcome.blamed


def page(found: dict[Regression, Outcome], score: Score) -> str:
    """The table for the docs."""
    right = sum(map(is_right, found.values()))
    lines = [
        "# Regressions that people reported",
        "",
        "Each row is a report in a public tracker. We rebuilt it from its description as a small program of our own and the change that",
        "made it worse (`tests/faults/public/`); the program was judged before and after, as any case is. *right*: red for what moved, and",
        "the first clause of the culprit names what the report's fix changed.",
        "",
        f"Written by `{COMMAND}` on {dt.datetime.now(tz=dt.UTC):%Y-%m-%d}: {right} of {len(found)} right; "
        f"{score.versions}.",
        "",
        "| report | what happened | outcome | red | first clause of the culprit | the fix |",
        "|---|---|---|---|---|---|",
    ]
    for one, outcome in found.items():
        name = f"[{one.project} {one.url.rpartition('/')[2]}]({one.url})"
        clause = outcome.line.split("; ")[0]
        shown = cut(clause, _WIDTH).replace("|", "\\|")
        word = "right" if is_right(outcome) else "wrong"
        red = ", ".join(f"`{fact}`" for fact in dict.fromkeys(outcome.moved))
        on = f", for {one.target}" if one.target else ""
        lines.append(f"| {name} | {one.fault.name}{on} | {word} | {red} | `{shown}` | {one.fixed} |")
    lines += ["", "## Not rebuilt", "", "| report | why |", "|---|---|"]
    lines += [
        f"| [{url.removeprefix('https://github.com/').replace('/issues/', ' ')}]({url}) | {why} |"
        for url, why in NOT_REBUILT.items()
    ]
    lines += [
        "",
        "Where a release of jaxlib made the same program slower or larger, no change of a program shows it:",
        "[`jaxgate upgrade`](upgrade.md) compares two releases, and [`jaxgate bisect --over jax`](bisect.md) finds the one.",
    ]
    return "\n".join([*lines, ""])


def main() -> int:
    """Run all; fails if one is not right."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.public", description=__doc__)
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the page of the docs")
    options = parser.parse_args()
    here = [one for one in REGRESSIONS if can_compile(one)]
    scores = {
        target: run([one.fault for one in here if one.target == target], target=target)
        for target in dict.fromkeys(one.target for one in here)
    }
    score = scores[""]
    found = {
        one: outcome
        for target, tried in scores.items()
        for one, outcome in zip([one for one in here if one.target == target], tried.faults, strict=True)
    }
    for one, outcome in found.items():
        sys.stdout.write(f"{'right' if is_right(outcome) else 'WRONG'}  {one.url}: {outcome.line} {outcome.why}\n")
    if options.markdown:
        options.markdown.write_text(page(found, score), encoding="utf-8")
    for one in REGRESSIONS:
        if one not in found:
            sys.stdout.write(f"not tried  {one.url}: the compiler of {one.target} is not installed\n")
    wrong = sum(not is_right(outcome) for outcome in found.values())
    sys.stdout.write(f"{len(found) - wrong} of {len(found)} right, {score.versions}, {score.seconds:.0f} s\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
