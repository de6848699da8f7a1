"""``jaxgate history``: what each run said of a case. Needs no JAX and no device."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jaxgate.cli.console import complain, refuse, say, write
from jaxgate.cli.pytest_arguments import IniError, history_place
from jaxgate.model import HISTORY_OFF, plural
from jaxgate.report import history_json, history_list, history_text

if TYPE_CHECKING:
    from jaxgate.keep.history import HistoryStore

COMMAND = "history"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What was asked for.

    Attributes:
        case: A case, or a part of its name; empty lists all.
        files: Runs to add; empty shows what is there.
        place: Where the history is; ``None`` for where pytest keeps it.
        folder: Hardware and release line of jax; ``None`` for all.
        last: How many runs, the newest; ``None`` for all.
        as_json: For machines.
    """

    case: str = ""
    files: tuple[Path, ...] = ()
    place: str | None = None
    folder: str | None = None
    last: int | None = None
    as_json: bool = False


def add_history(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Declare ``jaxgate history``."""
    one = command(
        COMMAND,
        _history,
        help="show what each run said of a case, oldest first; or add runs that were saved in files",
        description="Without CASE list what is remembered; with one show its time, its facts where they moved, and a row for "
        "each run. Exit code 1 if there is no such case, or the history cannot be read.",
    )
    one.add_argument(
        "case", nargs="?", default="", metavar="CASE", help="family/sentence, or a part of it that no other has"
    )
    one.add_argument("--folder", default=None, metavar="DIR", help="hardware and release line, cpu-amd-epyc-1-jax-0.12")
    one.add_argument("--last", type=_runs, default=None, metavar="N", help="the newest N runs")
    one.add_argument("--json", action="store_true", help="everything, for machines")
    one.add_argument(
        "--history",
        default=None,
        metavar="PLACE",
        help="an SQLite file or a database's URL (default: JAXGATE_HISTORY, perf_history in pyproject.toml, "
        ".jaxgate/history.sqlite)",
    )
    one.add_argument(
        "--import",
        dest="files",
        nargs="+",
        type=Path,
        default=(),
        metavar="FILE",
        help="add runs that pytest-benchmark saved (.benchmarks/**/*.json), or a run's results.json; each once",
    )


def _history(known: argparse.Namespace, rest: list[str]) -> int:
    if rest:
        return refuse(COMMAND, f"unknown arguments {' '.join(rest)}", 2)
    return history(
        Asked(
            case=known.case,
            files=tuple(known.files),
            place=known.history,
            folder=known.folder,
            last=known.last,
            as_json=known.json,
        )
    )


def history(asked: Asked, environ: Mapping[str, str] = os.environ) -> int:
    """Show what is remembered, or add to it.

    Returns:
        The exit code: 1 if there is nothing to show, or a file could not be added.
    """
    from jaxgate.keep.history import HistoryError, HistoryStore, find_place  # noqa: PLC0415 - imports SQLAlchemy

    try:
        named, root = (asked.place, Path()) if asked.place else history_place(Path.cwd(), environ)
        place = find_place(named, root)
        if place is None:
            return refuse(COMMAND, f"the place is `{HISTORY_OFF}`: nothing is remembered; name one: --history PLACE", 1)
        with HistoryStore(place) as store:
            return _add(store, asked.files, place.shown) if asked.files else _show(store, asked, place.shown)
    except (HistoryError, IniError) as error:
        return refuse(COMMAND, str(error), 1)


def _add(store: HistoryStore, files: Sequence[Path], shown: str) -> int:
    """Add what files hold; one that cannot be read does not keep the others out."""
    from jaxgate.keep.history import HistoryError, read_saved_run  # noqa: PLC0415 - as above

    new = known = failed = 0
    for file in files:
        try:
            run = read_saved_run(file)
        except HistoryError as error:
            complain(f"jaxgate {COMMAND}: {error}")
            failed += 1
            continue
        added = store.add(run)
        new, known = new + added, known + (not added)
    unread = f", {plural(failed, 'file was', 'files were')} not read" if failed else ""
    say(f"{shown}: {plural(new, 'run')} added, {known} known already{unread}")
    return 1 if failed else 0


def _show(store: HistoryStore, asked: Asked, shown: str) -> int:
    cases = [case for case in store.cases() if asked.folder in (None, case.folder)]
    if not cases:
        where = f" on {asked.folder}" if asked.folder else ""
        return refuse(
            COMMAND, f"{shown}: expected runs{where}, found none; each run of pytest that judges adds itself", 1
        )
    if not asked.case:
        write(history_json(cases) if asked.as_json else history_list(cases))
        return 0
    names = sorted({case.case for case in cases if asked.case in case.case})
    if asked.case in names:
        names = [asked.case]
    if len(names) != 1:
        found = f"found {len(names)}:" if names else "found none; list them: jaxgate history"
        complain(f"jaxgate {COMMAND}: expected one case with {asked.case!r} in its name, {found}")
        for name in names:
            complain(f"  {name}")
        return 1
    points = store.points(names[0], asked.folder, last=asked.last)
    write(history_json(points) if asked.as_json else history_text(points, asked.last))
    return 0


def _runs(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number of runs, 1 or more, found {text!r}")
    return int(text)
