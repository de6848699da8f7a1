"""``jaxgate merge``: one run of what the parts of a suite left, with the exit code of a gate."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jaxgate.cli.console import refuse, say, tell
from jaxgate.ext import pages
from jaxgate.ext.shards.merge import cases_twice, merged, wrong_with
from jaxgate.ext.shards.text import headline, page
from jaxgate.keep.artifacts import Artifacts, ForeignFolderError
from jaxgate.keep.files import append_page
from jaxgate.keep.results import RESULTS, UnreadableResultsError, page_of, parse_results, read_run_file
from jaxgate.model.outcome import GateExit, RunRecord
from jaxgate.report.printable import json_text
from jaxgate.settings import STEP_SUMMARY


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Declare ``jaxgate merge``."""
    merging = command(
        "merge",
        lambda known: merge([Path(part) for part in known.parts], Path(known.artifacts), of=known.of),
        help="make one run of what the parts of a suite left (--perf-shard), and end as a gate does",
        description="Read the results of all parts, write those of the whole run, its page and its alerts, and end with the "
        "exit code that jaxgate gate would have: 0 fine, 1 a case or a baseline failed, 2 a part is missing or something was "
        "not judged, 3 nothing but baselines is missing.",
    )
    merging.add_argument(
        "parts", nargs="+", metavar="PART", help="results.json of a part, its folder, or a folder of such folders"
    )
    merging.add_argument("--of", type=int, default=0, metavar="COUNT", help="how many parts there are, if none says so")
    merging.add_argument(
        "--artifacts", default="perf-artifacts", metavar="DIR", help="of the whole run (default: perf-artifacts)"
    )


def merge(paths: Sequence[Path], root: Path, *, of: int = 0, environ: Mapping[str, str] = os.environ) -> int:
    """Put the parts together, and give the exit code of a gate.

    ``paths`` are results of parts, their folders, or folders of these. What another run left in ``root`` is replaced. 0 for
    ``of`` takes the number of parts that they say.
    """
    contents: dict[str, dict[str, Any]] = {}
    parts: dict[str, RunRecord] = {}
    unread: list[str] = []
    for file in (found for path in paths for found in _files(path)):
        try:
            content = read_run_file(file)
            parts[str(file)], contents[str(file)] = parse_results(content), content
        except (OSError, UnreadableResultsError, ValueError) as error:
            unread.append(f"{file} cannot be read: {error}")
    if not parts:
        reasons = "; ".join(unread) or "there is no results.json in what was named"
        return refuse("merge", f"expected what parts of a run left: {reasons}", int(GateExit.BROKEN))
    of = of or max([run.shard.of for run in parts.values() if run.shard] or [len(parts)])
    order = sorted(parts, key=lambda file: (shard.number if (shard := parts[file].shard) else 0, file))
    parts = {file: parts[file] for file in order}
    unfit = [*unread, *wrong_with(parts, of)]
    whole = merged([contents[file] for file in order], unfit, list(cases_twice(parts.values())))
    written = page(whole, of, parts, {file: page_of(Path(file).parent) for file in parts})
    wrong = _leave(root, whole, written, [Path(file) for file in order], environ)
    if wrong:
        return refuse("merge", wrong, int(GateExit.BROKEN))
    tell(summary=str(root / "summary.md"), unfit=whole["unfit"], problems=whole["problems"])
    for line in (*whole["unfit"], *whole["problems"]):
        say(line)
    say(f"{headline(whole, of)} (exit code {whole['gate_exit']}): {root / 'summary.md'}")
    return int(whole["gate_exit"])


def _files(path: Path) -> Iterator[Path]:
    """The results that a path names; a file is named whether it is there or not."""
    if not path.is_dir():
        yield path
    elif (path / RESULTS).exists():
        yield path / RESULTS
    else:
        yield from sorted(path.glob(f"*/{RESULTS}"))


def _leave(root: Path, whole: dict[str, Any], page: str, parts: Sequence[Path], environ: Mapping[str, str]) -> str:
    """Write what a run leaves, for ``jaxgate comment``, ``explain`` and a code host; gives why it could not be."""
    if any(file.resolve().is_relative_to(root.resolve()) for file in parts):
        return f"{root} holds the parts; choose another folder for the whole run with --artifacts"
    artifacts = Artifacts(root)
    try:
        artifacts.begin()
        artifacts.write_page("summary.md", page)
        artifacts.write_page(RESULTS, json_text(whole))
        record = parse_results(whole)
        for name, make in pages().items():
            artifacts.write_page(name, make(record))
        if environ.get(STEP_SUMMARY):
            append_page(Path(environ[STEP_SUMMARY]), page)
    except (ForeignFolderError, OSError) as error:
        return f"the run could not be written: {error}"
    return ""
