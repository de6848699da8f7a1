"""``jaxgate history``: what each run said of a case. Needs no JAX and no device."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from math import exp
from pathlib import Path

from jaxgate.cli.console import complain, refuse, say, tell, write
from jaxgate.cli.pytest_arguments import IniError, history_place
from jaxgate.ext.history.chain import chain_times
from jaxgate.ext.history.model import HISTORY_OFF, HistoryPoint
from jaxgate.ext.history.saved_runs import read_saved_run
from jaxgate.ext.history.store import HistoryError, HistoryStore, find_place
from jaxgate.ext.history.text import change_lines, changes_text, history_json, history_list, history_text
from jaxgate.ext.page.command import write_page
from jaxgate.model.words import plural

COMMAND = "history"


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
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
    one.add_argument(
        "--last",
        type=_runs,
        default=None,
        metavar="N",
        help="show the newest N runs of each hardware; what moved is said of all, with --changes of these",
    )
    form = one.add_mutually_exclusive_group()
    form.add_argument(
        "--changes", action="store_true", help="what moved and since when, of every case: drift, facts, creep and steps"
    )
    form.add_argument("--page", type=Path, default=None, metavar="FILE", help="write an HTML page of CASE")
    one.add_argument(
        "--history",
        dest="place",
        default=None,
        metavar="PATH",
        help="an SQLite file (default: JAXGATE_HISTORY, perf_history in pyproject.toml, .jaxgate/history.sqlite)",
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


def _history(known: argparse.Namespace) -> int:
    try:
        named, root = (known.place, Path()) if known.place else history_place(Path.cwd())
        place = find_place(named, root)
        if place is None:
            return refuse(COMMAND, f"the place is `{HISTORY_OFF}`: nothing is remembered; name one: --history PATH", 1)
        store, shown = HistoryStore(place), str(place)
        return _add(store, known.files, shown) if known.files else _show(store, known, shown)
    except (HistoryError, IniError) as error:
        return refuse(COMMAND, str(error), 1)


def _add(store: HistoryStore, files: Sequence[Path], shown: str) -> int:
    """Add what files hold; one that cannot be read does not keep the others out."""
    new = known = failed = 0
    for file in files:
        try:
            added = store.add(read_saved_run(file))
        except HistoryError as error:
            complain(f"jaxgate {COMMAND}: {error}")
            failed += 1
            continue
        new, known = new + added, known + (not added)
    unread = f", {plural(failed, 'file was', 'files were')} not read" if failed else ""
    tell(added=new, known=known, unread=failed)
    say(f"{shown}: {plural(new, 'run')} added, {known} known already{unread}")
    return 1 if failed else 0


def _show(store: HistoryStore, asked: argparse.Namespace, shown: str) -> int:
    cases = [one for one in store.cases() if asked.folder in (None, one.folder)]
    known = [one.case for one in cases]
    if not known:
        where = f" on {asked.folder}" if asked.folder else ""
        none = f"{shown}: expected runs{where}, found none; each run of pytest that judges adds itself"
        return refuse(COMMAND, none, 1)
    if asked.changes:
        return _show_changes(store, asked)
    if not asked.case and asked.page is not None:
        return refuse(COMMAND, "expected CASE before --page, found none; list them: jaxgate history", 2)
    if not asked.case:
        if asked.json:
            tell(**history_json(cases))
        else:
            write(history_list(cases))
        return 0
    names = [asked.case] if asked.case in known else sorted({name for name in known if asked.case in name})
    if len(names) != 1:
        found = f"found {len(names)}:" if names else "found none; list them: jaxgate history"
        code = refuse(COMMAND, f"expected one case with {asked.case!r} in its name, {found}", 1)
        for name in names:
            complain(f"  {name}")
        return code
    whole = _by_series(store.points(names[0], asked.folder))
    points = [point for one in whole.values() for point in one[-(asked.last or len(one)) :]]
    if asked.json:
        tell(**history_json(points))
        return 0
    changes = {folder: lines for (_, folder), lines in _changes(whole).items()}
    if asked.page is not None:
        from jaxgate.ext.history.page import history_document  # noqa: PLC0415 - imports the templates

        return write_page(COMMAND, asked.page, lambda: history_document(points, changes, _relative(whole)))
    write(history_text(points, asked.last, changes, {folder: len(one) for (_, folder), one in whole.items()}))
    return 0


Series = Mapping[tuple[str, str], Sequence[HistoryPoint]]
"""By case and folder the points, oldest first."""


def _by_series(points: Sequence[HistoryPoint]) -> Series:
    series: dict[tuple[str, str], list[HistoryPoint]] = {}
    for point in points:
        series.setdefault((point.case, point.folder), []).append(point)
    return dict(sorted(series.items()))


def _relative(whole: Series) -> dict[str, dict[str, float]]:
    """By folder and run, the time of a call as a multiple of the first baseline's."""
    return {
        folder: {one.point.run: exp(one.value) for one in chain.points}
        for (_, folder), points in whole.items()
        if (chain := chain_times(points)) is not None
    }


def _show_changes(store: HistoryStore, asked: argparse.Namespace) -> int:
    """What moved in all cases. Nothing that moved is no error: so it should be."""
    whole = _by_series([point for point in store.points(None, asked.folder) if asked.case in point.case])
    found = _changes({name: points[-(asked.last or len(points)) :] for name, points in whole.items()})
    tell(changes=[{"case": case, "folder": folder, "lines": lines} for (case, folder), lines in found.items()])
    write(changes_text(found))
    say(f"{plural(len(whole), 'history', 'histories')}: {len(found)} moved")
    return 0


def _changes(series: Series) -> dict[tuple[str, str], list[str]]:
    """By case and folder what moved, in words; what did not is left out."""
    from jaxgate.ext.history.changes import changes_of  # noqa: PLC0415 - imports the rooms of the judge

    changes = {name: changes_of(points) for name, points in series.items()}
    return {name: change_lines(one) for name, one in changes.items() if one.is_moved}


def _runs(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number of runs, 1 or more, found {text!r}")
    return int(text)
