"""``jaxgate report``: the page of a run, or of several results beside each other, from what they left."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from jaxgate.cli.console import refuse, say, tell
from jaxgate.keep.artifacts import PAGE_MARK, refuse_foreign
from jaxgate.keep.files import write_atomic
from jaxgate.keep.results import UnreadableResultsError, read_results, results_file
from jaxgate.model.outcome import RunRecord

PAGE = "report.html"


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Declare ``jaxgate report``."""
    reporting = command(
        "report",
        lambda known: report([Path(name) for name in known.results], known.output and Path(known.output)),
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


def report(paths: Sequence[Path], output: Path | None) -> int:
    """Write the page of files ``results.json``, or of folders that hold one.

    Without ``output`` it lies beside the results of one run, and of several in the folder that the user stands in. Gives 2 if
    results cannot be read, or the page cannot be written.
    """
    files = [results_file(path) for path in paths]
    page = output or (files[0].parent / PAGE if len(files) == 1 else Path(PAGE))
    try:
        runs = [read_results(file) for file in files]
    except UnreadableResultsError as error:
        return refuse("report", str(error), 2)
    names = result_names(files, runs) if len(runs) > 1 else [""]
    shown = list(zip(files, names, runs, strict=True))
    return write_page("report", page, lambda: results_page(shown, page))


def write_page(command: str, page: Path, make: Callable[[], str]) -> int:
    """Make a page of a command, write it, print its path, and give the exit code: 2 if it cannot be written."""
    try:
        refuse_foreign(page, PAGE_MARK, "a page of jaxgate's")
        write_atomic(page, make().encode())
    except OSError as error:
        return refuse(command, f"{page} cannot be written: {error.strerror or error}", 2)
    tell(page=str(page))
    say(str(page))
    return 0


def results_page(results: Sequence[tuple[Path, str, RunRecord]], page: Path) -> str:
    """The page of some results, HTML in one file.

    Of each ``results`` give the file, what it is called on the page, and what it says. Links lead from ``page``, where the
    page will lie, to the bundles.
    """
    from jaxgate.ext.page.run_page import Result, run_page  # noqa: PLC0415 - only who makes a page needs it

    return run_page(
        [
            Result(
                run=run,
                name=name,
                folder=Path(os.path.relpath(file.parent, page.parent)).as_posix(),
                logdir=str(file.parent),
            )
            for file, name, run in results
        ]
    )


def result_names(files: Sequence[Path], runs: Sequence[RunRecord]) -> list[str]:
    """What tells the results apart: their hardware, else their commits, else their files."""
    ways = (
        [", ".join(sorted({case.hardware for case in run.cases if case.hardware})) for run in runs],
        [(run.commit or "")[:10] for run in runs],
        [str(file.parent) for file in files],
        [str(file) for file in files],
        [f"{place}: {file}" for place, file in enumerate(files, 1)],
    )
    return next(names for names in ways if all(names) and len(set(names)) == len(names))
