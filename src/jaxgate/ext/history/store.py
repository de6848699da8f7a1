"""The history of runs in an SQLite file: a run is added whole, once, and cases are read back oldest first.

SQLite keeps its rollback journal, not a write-ahead log: between two runs the history is one file, which can be copied as an
artifact and lies on network file systems, where a log does not work. Writers are few and short, so they may wait.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, TypeVar

from jaxgate.ext.history.model import HISTORY_OFF, HISTORY_PLACE, HistoryCase, HistoryPoint, HistoryRun
from jaxgate.keep.files import write_atomic
from jaxgate.keep.git import COMMIT
from jaxgate.model.decision import Status
from jaxgate.model.outcome import CaseRecord, RunRecord, TimeRecord
from jaxgate.model.verdict import BaselineName


class HistoryError(Exception):
    """The history cannot be read or written; the text says why in one line."""


def history_run(record: RunRecord) -> HistoryRun:
    """Make a run of its results.

    Raises:
        HistoryError: If an earlier jaxgate wrote them: they do not say which run it was, and when.
    """
    if not record.run or not record.moment:
        raise HistoryError(
            f"expected results with `run` and `moment`, found those of jaxgate {record.jaxgate}, which wrote neither"
        )
    moment = utc(record.moment)
    return HistoryRun(
        run=record.run,
        moment=moment,
        commit=record.commit,
        dirty=record.dirty,
        jaxgate=record.jaxgate,
        elsewhere=record.elsewhere,
        green=record.green,
        gate_exit=record.gate_exit,
        points=tuple(history_point(case, record, moment) for case in record.cases),
    )


def utc(moment: str) -> str:
    """A date and time as ISO 8601 has them, in UTC and to the second, so that texts are in the order of time.

    Raises:
        HistoryError: If it is something else.
    """
    try:
        found = dt.datetime.fromisoformat(moment)
    except ValueError:
        raise HistoryError(f"expected date and time such as 2026-11-25T02:30:00+00:00, found {moment!r}") from None
    aware = found if found.tzinfo is not None else found.replace(tzinfo=dt.UTC)
    return aware.astimezone(dt.UTC).isoformat(timespec="seconds")


def _ratio(time: TimeRecord) -> Iterator[float | None]:
    """The ratio of a duel with its bounds, each as far as it is known.

    Where fresh processes did not confirm a slow-down there was none, and its ratio says nothing.
    """
    beyond = time.low is not None and time.margin is not None and time.low > 1 + time.margin
    unconfirmed = beyond and time.status == Status.UNDECIDED
    for one in (time.ratio, time.low, time.high):
        yield one if one is not None and math.isfinite(one) and not unconfirmed else None


def history_point(case: CaseRecord, record: RunRecord, moment: str) -> HistoryPoint:
    """What is remembered of a case of a run that ended at a moment."""
    figures, time = case.figures, case.time
    ratio, low, high = _ratio(time)
    return HistoryPoint(
        run=record.run,
        moment=moment,
        commit=record.commit,
        case=case.case,
        folder=case.folder,
        status=case.status,
        fails=case.fails,
        recorded=case.recorded,
        elsewhere=record.elsewhere,
        program="" if figures is None else figures.program,
        baseline=None if figures is None else figures.baseline,
        time_status=time.status,
        ratio=ratio,
        low=low,
        high=high,
        figures={} if figures is None else figures.now,
        environment={} if figures is None else figures.environment,
    )


BUSY_S = 30.0
"""So long a run waits for another one to end its transaction, which takes far less than a second."""
VERSION = 1
"""Of the tables; stands in ``PRAGMA user_version``."""
TABLES = (
    # `about` and `content`: JSON, the other fields of HistoryRun and of HistoryPoint by name
    """CREATE TABLE jaxgate_runs (
        id INTEGER PRIMARY KEY, run TEXT NOT NULL UNIQUE, moment TEXT NOT NULL, "commit" TEXT, about TEXT NOT NULL)""",
    """CREATE TABLE jaxgate_points (
        run_id INTEGER NOT NULL REFERENCES jaxgate_runs, "case" TEXT NOT NULL, folder TEXT NOT NULL, status TEXT NOT NULL,
        content TEXT NOT NULL, UNIQUE (run_id, "case", folder))""",
    """CREATE INDEX jaxgate_points_of_a_case ON jaxgate_points ("case")""",
    f"PRAGMA user_version = {VERSION}",
)
_ABOUT = ("dirty", "jaxgate", "elsewhere", "green", "gate_exit", "source")
_COLUMNS = ("run", "moment", "commit", "case", "folder", "status")
_POINTS = """SELECT run, moment, "commit", "case", folder, status, content
    FROM jaxgate_points JOIN jaxgate_runs ON id = run_id WHERE {where} ORDER BY moment, id, jaxgate_points.rowid"""
_CLEAN = "NOT json_extract(about, '$.dirty') AND json_extract(about, '$.elsewhere') = ''"
_CASES = """SELECT "case", folder, count(*) AS runs, moment, status, max(moment || printf('%012d', id)) AS newest
    FROM jaxgate_points JOIN jaxgate_runs ON id = run_id GROUP BY "case", folder ORDER BY "case", folder"""
"""SQLite takes moment and status of the row that has the maximum."""
_Made = TypeVar("_Made")


def find_place(text: str, root: Path) -> Path | None:
    """The file that an option names, relative to ``root``; ``None`` for ``none``.

    Raises:
        HistoryError: If it is something else, or cannot be looked at. Of a URL only the beginning is quoted: it may hold a
            password.
    """
    if text.strip() == HISTORY_OFF:
        return None
    scheme, is_url, _ = text.partition("://")
    if is_url:
        raise HistoryError(f"expected the path of a file, or {HISTORY_OFF}, found a URL, {scheme}://…")
    path = root / text
    if _is_there(path) and not path.is_file():
        raise HistoryError(f"expected the path of a file, or {HISTORY_OFF}, found {path}, which is no regular file")
    return path


class HistoryStore:
    """The history in a file, which is made with the first run."""

    def __init__(self, file: Path, *, busy_s: float = BUSY_S) -> None:
        self._file = file
        self._busy_s = busy_s

    def append(self, record: RunRecord) -> bool:
        """Add a run by its results, as ``add`` does."""
        return self.add(history_run(record))

    def add(self, run: HistoryRun) -> bool:
        """Add a run, and tell whether it was new; one that is there already stays as it is.

        Of a case that two tests have, the last stays. Raises HistoryError if the run could not be added; what was there is
        there.
        """
        with self._transaction(write=True) as connection:
            if not _has_tables(connection):
                for statement in TABLES:
                    connection.execute(statement)
            about = _json({name: getattr(run, name) for name in _ABOUT})
            added = connection.execute(
                "INSERT INTO jaxgate_runs VALUES (NULL, ?, ?, ?, ?) ON CONFLICT (run) DO NOTHING",
                (_plain(run.run), run.moment, _plain(run.commit), about),
            )
            if added.rowcount:
                connection.executemany(
                    "INSERT OR REPLACE INTO jaxgate_points VALUES (?, ?, ?, ?, ?)",
                    [(added.lastrowid, *_cells(point)) for point in run.points],
                )
            return bool(added.rowcount)

    def points(self, case: str | None, folder: str | None = None) -> tuple[HistoryPoint, ...]:
        """What is known of a case (its whole name) in a folder, oldest first; ``None`` means all of them."""
        asked = {name: value for name, value in (("case", case), ("folder", folder)) if value is not None}
        where = " AND ".join(["TRUE", *(f'"{name}" = :{name}' for name in asked)])
        return self._rows(_POINTS.format(where=where), asked, _point)

    def cases(self) -> tuple[HistoryCase, ...]:
        """All cases, by name and folder."""
        return self._rows(_CASES, {}, lambda row: HistoryCase(**{name: row[name] for name in row if name != "newest"}))

    def at_commit(self, commit: str) -> tuple[HistoryPoint, ...]:
        """What is known of a commit: of each case on each hardware the newest point, from whichever run has it.

        ``commit`` is its id, or the first four or more characters of it; HistoryError says that it is none, or of several.
        Runs of a checkout with changes, and those against something else than stored baselines, do not speak of a commit.
        """
        if not COMMIT.fullmatch(commit):
            raise HistoryError(f"expected a commit by four or more characters of its id, found {commit!r}")
        where = f'"commit" GLOB :beginning AND {_CLEAN}'
        points = self._rows(_POINTS.format(where=where), {"beginning": f"{commit}*"}, _point)
        commits = sorted({point.commit for point in points if point.commit})
        if len(commits) > 1:
            raise HistoryError(f"expected one commit that begins with {commit}, found {', '.join(commits)}")
        newest = {(point.case, point.folder): point for point in points}
        return tuple(newest[name] for name in sorted(newest))

    def _rows(self, query: str, asked: Mapping[str, str], make: Callable[[dict[str, Any]], _Made]) -> tuple[_Made, ...]:
        """What a query finds; nothing where no run was added yet."""
        if not _is_there(self._file):
            return ()
        with self._transaction() as connection:
            connection.row_factory = sqlite3.Row
            found = connection.execute(query, asked) if _has_tables(connection) else ()
            return tuple(make(dict(row)) for row in found)

    @contextmanager
    def _transaction(self, *, write: bool = False) -> Iterator[sqlite3.Connection]:
        """A transaction, whole or nothing; statements that the file brings call nothing that could harm.

        Raises HistoryError, in one line, whatever goes wrong inside.
        """
        try:
            if write:
                _make_folder(self._file.parent)
            opened = sqlite3.connect(self._file, timeout=self._busy_s, isolation_level=None)
            with closing(opened) as connection:  # takes back what was not committed
                connection.execute("PRAGMA trusted_schema = OFF")
                connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")  # who reads first could not go on to write
                yield connection
                connection.execute("COMMIT")
        except HistoryError as error:
            raise HistoryError(f"{self._file}: {error}") from None
        except Exception as error:  # noqa: BLE001 - what is in a file decides what goes wrong
            said = (str(error).strip().splitlines() or [""])[0]
            name = "" if isinstance(error, OSError) else f"{type(error).__name__}: "
            raise HistoryError(f"{self._file}: {name}{said}") from None


def _is_there(file: Path) -> bool:
    """Whether a file is there. Where that cannot be told nobody knows what is remembered, and HistoryError says so."""
    try:
        file.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError) as error:
        raise HistoryError(str(error)) from None
    return True


def _has_tables(connection: sqlite3.Connection) -> bool:
    """Whether a file has the tables of a history; without any it may become one.

    Raises:
        HistoryError: If it is a later jaxgate's, or something else than a history.
    """
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    if version > VERSION and "jaxgate_runs" in names:
        raise HistoryError(
            f"expected a history of schema {VERSION}, found {version}, which a later jaxgate made; nothing was written; "
            "upgrade jaxgate, or name another file in perf_history"
        )
    if names and (version != VERSION or not {"jaxgate_runs", "jaxgate_points"} <= names):
        raise HistoryError("expected a history, found another program's database; nothing was written")
    return bool(names)


def _make_folder(folder: Path) -> None:
    """Make a folder. That of the default place is kept out of git, whatever the project's own rules say."""
    folder.mkdir(parents=True, exist_ok=True)
    ignored = folder / ".gitignore"
    if folder.name == HISTORY_PLACE.partition("/")[0] and not ignored.exists():
        write_atomic(ignored, b"*\n")


def _cells(point: HistoryPoint) -> tuple[str | None, ...]:
    """What a point has in columns, and as JSON what has none."""
    content = {one.name: getattr(point, one.name) for one in fields(point) if one.name not in _COLUMNS}
    content["figures"] = {
        name: int(figure) if isinstance(figure, float) and figure.is_integer() else figure
        for name, figure in point.figures.items()
    }
    content["environment"] = dict(point.environment)
    content["baseline"] = None if point.baseline is None else asdict(point.baseline)
    return _plain(point.case), _plain(point.folder), _plain(point.status), _json(content)


def _point(row: dict[str, Any]) -> HistoryPoint:
    content = json.loads(row.pop("content"))
    baseline = content.pop("baseline")
    return HistoryPoint(**row, **content, baseline=None if baseline is None else BaselineName(**baseline))


def _json(content: Mapping[str, object]) -> str:
    return json.dumps(content, separators=(",", ":"))


def _plain(text: str | None) -> str | None:
    """A text without halves of characters, which SQLite refuses."""
    return None if text is None else text.encode("utf-8", "replace").decode()
