"""``jaxgate explain``: what the last run said of a case, and what to type next."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from jaxgate.cli.console import refuse, say, tell
from jaxgate.ext.explain.text import explanation, explanation_json, listed, listed_json
from jaxgate.keep.results import UnreadableResultsError, read_results


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Declare ``jaxgate explain``."""
    explaining = command(
        "explain",
        _explain,
        help="say what the last run found in a case, and which command shows more",
        description="Read what a run left, and print of one case its verdict, what moved, the culprit and the next "
        "experiment; without a case, a line for each. Exit codes: 0 it is told, 2 there are no results or no such case.",
    )
    explaining.add_argument("case", nargs="?", metavar="CASE", help="its name, or the end of it")
    explaining.add_argument(
        "--results",
        default="perf-artifacts",
        metavar="PATH",
        help="results.json, or its folder (default: perf-artifacts)",
    )


def _explain(known: argparse.Namespace) -> int:
    try:
        run = read_results(Path(known.results))
    except UnreadableResultsError as error:
        return refuse("explain", f"{error}; a run leaves one: pytest", 2)
    if known.case is None:
        if known.json:
            tell(**listed_json(run))
        for line in () if known.json else listed(run):
            say(line)
        return 0
    found = [case for case in run.cases if case.case == known.case] or [
        case for case in run.cases if case.case.endswith(known.case) or case.test.endswith(known.case)
    ]
    if len(found) != 1:
        names = ", ".join(case.case for case in (found or run.cases)[:10]) or "none"
        return refuse(
            "explain", f"expected one case that ends with {known.case!r}, found {len(found)}; there is: {names}", 2
        )
    if known.json:
        tell(**explanation_json(found[0]))
    for line in () if known.json else explanation(found[0]):
        say(line)
    return 0
