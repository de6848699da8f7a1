"""``jaxgate report``: the page of a run, or of several results beside each other, from what they left."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from jaxgate.cli.console import refuse, say
from jaxgate.keep import UnreadableResultsError, chart_library, is_own_page, read_results, write_atomic
from jaxgate.model import RunRecord

RESULTS, PAGE = "results.json", "report.html"


def report(paths: Sequence[Path], output: Path | None) -> int:
    """Write the page.

    Args:
        paths: Files ``results.json``, or folders that hold one.
        output: The page; ``None`` puts it beside the results of one run, and of several into the folder that the user
            stands in.

    Returns:
        The exit code: 2 if results cannot be read, or the page cannot be written.
    """
    files = [path / RESULTS if path.is_dir() else path for path in paths]
    page = output or (files[0].parent / PAGE if len(files) == 1 else Path(PAGE))
    try:
        runs = [read_results(file) for file in files]
    except UnreadableResultsError as error:
        return _refuse(str(error), 2)
    try:
        if not is_own_page(page):
            return _refuse(f"{page} is no page of jaxgate's; choose another file with --output", 2)
        from jaxgate.report.page import ADDS_CHARTS, Result, run_page  # noqa: PLC0415 - only who makes a page needs it

        library = chart_library()
        names = result_names(files, runs)
        results = [
            Result(
                run=run,
                name=name if len(runs) > 1 else "",
                folder=Path(os.path.relpath(file.parent, page.parent)).as_posix(),
                logdir=str(file.parent),
            )
            for file, run, name in zip(files, runs, names, strict=True)
        ]
        write_atomic(page, run_page(results, library=library).encode())
    except OSError as error:
        return _refuse(f"{page} cannot be written: {error.strerror or error}", 2)
    say(str(page))
    if not library:
        say(f"without charts: {ADDS_CHARTS} adds them")
    return 0


def result_names(files: Sequence[Path], runs: Sequence[RunRecord]) -> list[str]:
    """What tells the results apart: their hardware, else their commits, else their files."""
    ways = (
        [", ".join(sorted({case.hardware for case in run.cases if case.hardware})) for run in runs],
        [(run.commit or "")[:10] for run in runs],
        [str(file.parent) for file in files],
        [str(file) for file in files],
    )
    return next((names for names in ways if all(names) and len(set(names)) == len(names)), _numbered(files))


def _numbered(files: Sequence[Path]) -> list[str]:
    return [f"{place}: {file}" for place, file in enumerate(files, 1)]


_refuse = partial(refuse, "report")
