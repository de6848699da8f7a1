"""The history of runs: a run is added whole, once, and cases are read back oldest first."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from sqlalchemy import Connection, Row, Select, func, insert, select

from jaxgate.keep import COMMIT
from jaxgate.keep.history.cells import ReadOnce, divided, fields, finite, joined, plain
from jaxgate.keep.history.database import BUSY_S, Database
from jaxgate.keep.history.interned import intern
from jaxgate.keep.history.place import HistoryError, Place
from jaxgate.keep.history.run_points import history_run
from jaxgate.keep.history.schema import SCHEMA, STEPS, Step, bring_up_to_date, refuse_newer, version_of
from jaxgate.keep.history.tables import BASELINES, ENVIRONMENTS, FACTS, POINTS, RUNS, SERIES
from jaxgate.model import BaselineName, HistoryCase, HistoryPoint, HistoryRun, RunRecord

_OF_BASELINE = fields(BaselineName)
_PLAIN = tuple(name for name in fields(HistoryPoint) if name not in {"baseline", "figures", "environment"})
_NEWEST = (RUNS.c.moment.desc(), RUNS.c.id.desc())


class HistoryStore:
    """The history at one place; made with the first run.

    Args:
        place: Where it is.
        busy_s: Seconds to wait for another process that writes.
        schema: The version of its tables.
        steps: How older ones become that.
    """

    def __init__(
        self, place: Place, *, busy_s: float = BUSY_S, schema: int = SCHEMA, steps: Mapping[int, Step] = STEPS
    ) -> None:
        self._schema, self._steps = schema, steps
        self._database = Database(place, busy_s=busy_s)
        self._place = place

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._database.close()

    def append(self, record: RunRecord) -> bool:
        """Add a run by its results.

        Returns:
            Whether it was new; a run that is there already stays as it is.

        Raises:
            HistoryError: If it could not be added; what was there is there.
        """
        return self.add(history_run(record))

    def add(self, run: HistoryRun) -> bool:
        """The same of a run whose points are known."""
        _refuse_too_long(run)
        with self._database.writes() as connection:
            bring_up_to_date(connection, self._schema, self._steps)
            if connection.execute(select(RUNS.c.id).where(RUNS.c.run == plain(run.run))).first() is not None:
                return False
            about = {
                name: getattr(run, name) for name in ("dirty", "jaxgate", "elsewhere", "green", "gate_exit", "source")
            }
            row = {"run": run.run, "moment": run.moment, "commit": run.commit, **about}
            cells = {name: plain(value) for name, value in row.items()}
            connection.execute(insert(RUNS).values(**cells))
            number = connection.execute(select(RUNS.c.id).where(RUNS.c.run == cells["run"])).scalar_one()
            _add_points(connection, number, run.points)
        return True

    def points(self, case: str | None, folder: str | None = None) -> tuple[HistoryPoint, ...]:
        """What is known of a case, oldest first.

        Args:
            case: Its whole name; ``None`` for all cases.
            folder: Hardware and release line; ``None`` for all of them.
        """
        chosen = _POINTS if case is None else _POINTS.where(SERIES.c.case == case)
        if folder is not None:
            chosen = chosen.where(SERIES.c.folder == folder)
        return _points(self._rows(chosen.order_by(*_NEWEST, POINTS.c.series_id.desc())))

    def series(self) -> tuple[tuple[str, str], ...]:
        """Name and folder of all cases."""
        return tuple((row.case, row.folder) for row in self._rows(select(SERIES.c.case, SERIES.c.folder)))

    def cases(self) -> tuple[HistoryCase, ...]:
        """All cases, by name and folder."""
        place = func.row_number().over(partition_by=POINTS.c.series_id, order_by=_NEWEST).label("place")
        count = func.count().over(partition_by=POINTS.c.series_id).label("runs")
        inner = (
            select(SERIES.c.case, SERIES.c.folder, RUNS.c.moment, POINTS.c.status, place, count)
            .select_from(POINTS.join(RUNS).join(SERIES))
            .subquery()
        )
        found = self._rows(select(inner).where(inner.c.place == 1))
        cases = (
            HistoryCase(case=row.case, folder=row.folder, runs=row.runs, moment=row.moment, status=row.status)
            for row in found
        )
        return tuple(sorted(cases, key=lambda case: (case.case, case.folder)))

    def runs(self, last: int | None = None) -> tuple[HistoryRun, ...]:
        """The runs without their points, oldest first; at most so many, the newest."""
        return tuple(_run(row) for row in reversed(self._rows(select(RUNS).order_by(*_NEWEST).limit(last))))

    def at_commit(self, commit: str) -> tuple[HistoryPoint, ...]:
        """What is known of a commit: of each case on each hardware the newest point, from whichever run has it.

        Runs of a checkout with changes, and those against something else than stored baselines, do not speak of a commit.

        Args:
            commit: Its id, or the first four or more characters of it.

        Raises:
            HistoryError: If it is no commit's id, or begins several.
        """
        if not COMMIT.fullmatch(commit):
            raise HistoryError(f"expected a commit by four or more characters of its id, found {commit!r}")
        beginning = (
            RUNS.c.commit >= commit,
            RUNS.c.commit < f"{commit}g",
        )  # as an index can find it; "g" follows all digits
        clean = (RUNS.c.dirty.is_(False), RUNS.c.elsewhere == "")
        points = _points(self._rows(_POINTS.where(*beginning, *clean).order_by(*_NEWEST)))
        commits = sorted({point.commit for point in points if point.commit})
        if len(commits) > 1:
            raise HistoryError(f"expected one commit that begins with {commit}, found {', '.join(commits)}")
        newest = {(point.case, point.folder): point for point in points}
        return tuple(newest[name] for name in sorted(newest))

    def _rows(self, chosen: Select[Any]) -> Sequence[Row[Any]]:
        """What a query finds; nothing where no run was added yet."""
        file = self._place.file
        if file is not None and not file.exists():
            return ()
        with self._database.reads() as connection:
            version = version_of(connection)
            refuse_newer(version, self._schema)
            if version == self._schema:
                return connection.execute(chosen).all()
        if version is None:
            return ()
        with self._database.writes() as connection:
            bring_up_to_date(connection, self._schema, self._steps)
        return self._rows(chosen)


_POINTS = select(
    POINTS,
    *(RUNS.c[name] for name in ("run", "moment", "commit", "elsewhere", "source")),
    SERIES.c.case,
    SERIES.c.folder,
    FACTS.c.content.label("facts"),
    ENVIRONMENTS.c.content.label("environment"),
    *(BASELINES.c[name].label(f"baseline_{name}") for name in _OF_BASELINE),
).select_from(POINTS.join(RUNS).join(SERIES).join(FACTS).join(ENVIRONMENTS, isouter=True).join(BASELINES, isouter=True))


def _refuse_too_long(run: HistoryRun) -> None:
    """Refuse names that not every database would keep whole."""
    cells = [(run.run, RUNS.c.run), (run.commit or "", RUNS.c.commit), *((p.case, SERIES.c.case) for p in run.points)]
    for text, column in cells:
        most = getattr(column.type, "length", None)
        if most is not None and len(text) > most:
            raise HistoryError(f"expected a {column.name} of at most {most} characters, found {len(text)}")


def _add_points(connection: Connection, run: int, points: Sequence[HistoryPoint]) -> None:
    """Add the points of a run; of a case that two tests have, the last."""
    of_series = {(plain(point.case), plain(point.folder)): point for point in points}
    if not of_series:
        return
    chosen = list(of_series.values())
    split = [divided(point.figures) for point in chosen]
    series = intern(connection, SERIES, [{"case": case, "folder": folder} for case, folder in of_series])
    facts = intern(connection, FACTS, [{"content": facts} for facts, _ in split])
    environments = intern(
        connection,
        ENVIRONMENTS,
        [{"content": joined(point.environment)} if point.environment else None for point in chosen],
    )
    baselines = intern(
        connection,
        BASELINES,
        [
            None if point.baseline is None else {name: plain(getattr(point.baseline, name)) for name in _OF_BASELINE}
            for point in chosen
        ],
    )
    connection.execute(
        insert(POINTS),
        [
            {
                "runs_id": run,
                "series_id": series[place],
                "facts_id": facts[place],
                "environments_id": environments[place],
                "baselines_id": baselines[place],
                "times": split[place][1],
                "fails": point.fails,
                **{name: plain(getattr(point, name)) for name in ("status", "recorded", "program", "time_status")},
                **{name: finite(getattr(point, name)) for name in ("ratio", "low", "high")},
            }
            for place, point in enumerate(chosen)
        ],
    )


def _run(row: Row[Any], points: tuple[HistoryPoint, ...] = ()) -> HistoryRun:
    known = {name: getattr(row, name) for name in fields(HistoryRun) if name != "points"}
    return HistoryRun(**known, points=points)


def _points(rows: Sequence[Row[Any]]) -> tuple[HistoryPoint, ...]:
    """Points of rows that are newest first."""
    read = ReadOnce()
    return tuple(_point(row._mapping, read) for row in reversed(rows))  # noqa: SLF001 - public, so named for columns' sake


def _point(row: Mapping[str, Any], read: ReadOnce) -> HistoryPoint:
    return HistoryPoint(
        **{name: row[name] for name in _PLAIN},
        baseline=None
        if row["baselines_id"] is None
        else BaselineName(**{name: row[f"baseline_{name}"] for name in _OF_BASELINE}),
        figures={**read(row["facts"]), **json.loads(row["times"])},
        environment={} if row["environment"] is None else read(row["environment"]),
    )
