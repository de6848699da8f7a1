"""What ``jaxgate report`` takes on its command line; the rest is loaded once it is asked for."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from jaxgate.cli.console import refuse


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Declare ``jaxgate report``."""
    reporting = command(
        "report",
        _report,
        help="write one HTML page to look at, of a run or of several results side by side",
        description="Write the page of a run from what it left: all cases, distributions, curves, what failed. With several "
        "results, for example of two targets, the same cases stand side by side. Exit code 2 if results cannot be read.",
    )
    reporting.add_argument(
        "results",
        nargs="*",
        default=["perf-artifacts"],
        metavar="RESULTS",
        help="files results.json, or folders that hold one (default: perf-artifacts)",
    )
    reporting.add_argument(
        "--output", default=None, metavar="FILE", help="default: report.html, beside the results of one run"
    )


def _report(known: argparse.Namespace, rest: list[str]) -> int:
    from jaxgate.ext.page.run import report  # noqa: PLC0415 - reads results with pydantic

    if rest:
        return refuse("report", f"unknown arguments {' '.join(rest)}", 2)
    output = None if known.output is None else Path(known.output)
    return report([Path(name) for name in known.results], output)
