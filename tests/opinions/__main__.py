"""``python -m tests.opinions``: a second opinion on every program's result; fails where one differs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from statistics import median

import jax

from jaxgate.ext.opinion.model import OpinionBy
from tests.opinions.sweep import Asked, sweep

CORPORA = ("catalogue", "planted")
_SHORT = {OpinionBy.INTERPRETER: "interpreter", OpinionBy.SECOND_COMPILE: "second compile", OpinionBy.NOBODY: "nobody"}
HEAD = ("program", "steps", "compile s", "asked", "took s", "apart", "")


def line(cells: Sequence[str]) -> str:
    """One line, aligned with those that came before it: nobody waits for the last one to see the first."""
    name, steps, compile_s, by, took_s, apart, note = cells
    return f"{name:<80}  {steps:>7}  {compile_s:>9}  {by:<14}  {took_s:>6}  {apart:>5}  {note}".rstrip()


def row(asked: Asked) -> tuple[str, ...]:
    """One program: what was asked, what it cost, how far apart the results are in roundings of its coarsest float."""
    if asked.opinion is None:
        return asked.name, "", "", "nobody", "", "", asked.why_not
    opinion = asked.opinion
    notes = [f"WRONG {opinion.wrong}" if opinion.wrong else "", opinion.why_not]
    notes += [f"left alone: {', '.join(opinion.left_alone)}" if opinion.left_alone else ""]
    apart = "" if asked.roundings is None else f"{asked.roundings:.1f}"
    return (
        asked.name,
        f"{asked.steps:.1e}",
        f"{asked.compile_s:.2f}",
        _SHORT[opinion.by],
        f"{opinion.seconds:.2f}",
        apart,
        "; ".join(filter(None, notes)),
    )


def summary(found: Sequence[Asked]) -> list[str]:
    """By who was asked: how many, what it cost, the furthest apart; then what nobody could be asked about."""
    lines = []
    for by in (OpinionBy.INTERPRETER, OpinionBy.SECOND_COMPILE, OpinionBy.NOBODY):
        opinions = [one for one in found if one.opinion is not None and one.opinion.by is by]
        seconds = [one.opinion.seconds for one in opinions if one.opinion is not None]
        apart = [one.roundings for one in opinions if one.roundings is not None]
        if seconds:
            cost = f"{sum(seconds):.0f} s, median {median(seconds):.2f} s, longest {max(seconds):.2f} s"
            furthest = f", furthest apart {max(apart):.1f} roundings" if apart else ""
            lines.append(f"{_SHORT[by]}: {len(opinions)} of {len(found)}, {cost}{furthest}")
    unrun = sum(one.opinion is None for one in found)
    wrong = sum(one.opinion is not None and bool(one.opinion.wrong) for one in found)
    left = sum(one.opinion is not None and bool(one.opinion.left_alone) for one in found)
    compiles = sum(one.compile_s for one in found)
    return [
        *lines,
        f"not one program or not callable: {unrun}; left alone in part: {left}; first compiles: {compiles:.0f} s; WRONG: {wrong}",
    ]


def main() -> int:
    """Print a line for each program as it is asked about, then what all of it cost."""
    parser = argparse.ArgumentParser(prog="python -m tests.opinions", description=__doc__)
    parser.add_argument("corpora", nargs="*", metavar="CORPUS", help=f"of {', '.join(CORPORA)}; both if none is named")
    parser.add_argument("--only", default="", metavar="REGEX", help="that fits a program's name")
    parser.add_argument("--seconds", type=float, default=20.0, help="that an opinion may take, as perf_opinion")
    parser.add_argument("--second-compile", action="store_true", help="ask the interpreter nothing")
    options = parser.parse_args()
    if unknown := set(options.corpora) - set(CORPORA):
        parser.error(f"expected a corpus of {', '.join(CORPORA)}, found {', '.join(sorted(unknown))}")
    found = []
    sys.stdout.write(f"jax {jax.__version__}\n{line(HEAD)}\n")
    for asked in sweep(
        options.corpora or CORPORA, only=options.only, limit_s=options.seconds, interpreted=not options.second_compile
    ):
        found.append(asked)
        sys.stdout.write(f"{line(row(asked))}\n")
        sys.stdout.flush()
    sys.stdout.write("\n".join([*summary(found), ""]))
    wrong = any(one.opinion is not None and one.opinion.wrong for one in found)
    failed = [one.name for one in found if one.failed]
    sys.stdout.write("".join(f"FAILED {name}\n" for name in failed))
    return 1 if wrong or failed or not found else 0


if __name__ == "__main__":
    sys.exit(main())
