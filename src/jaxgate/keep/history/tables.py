"""The tables of the history, version 1. What repeats from run to run stands once and is found by its digest."""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

METADATA = MetaData()
DIGEST = 32
"""Characters of a digest."""


def _once(name: str, *columns: Column[str] | Index) -> Table:
    """A table of what stands once."""
    return Table(
        f"jaxgate_{name}",
        METADATA,
        Column("id", Integer, primary_key=True),
        Column("digest", String(DIGEST), nullable=False, unique=True),
        *columns,
    )


def _reference(table: Table, *, nullable: bool = False) -> Column[int]:
    return Column(f"{table.name.removeprefix('jaxgate_')}_id", ForeignKey(table.c.id), nullable=nullable)


SCHEMAS = Table("jaxgate_schema", METADATA, Column("version", Integer, nullable=False))
"""One row."""

SERIES = _once(
    "series",
    Column("case", String(400), nullable=False),
    Column("folder", Text, nullable=False),
    Index("jaxgate_series_case", "case"),  # else the history of one case reads that of all
)
"""A case on one hardware and release line of jax."""

ENVIRONMENTS = _once("environments", Column("content", Text, nullable=False))
"""JSON, name to value."""

FACTS = _once("facts", Column("content", Text, nullable=False))
"""JSON, name to value, of figures that no clock measured: nearly always those of the run before."""

BASELINES = _once(
    "baselines",
    Column("program", Text, nullable=False),
    Column("folder", Text, nullable=False),
    Column("commit", Text),
    Column("date", Text, nullable=False),
)

RUNS = Table(
    "jaxgate_runs",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("run", String(120), nullable=False, unique=True),
    Column("moment", String(40), nullable=False),
    Column("commit", String(80)),
    Column("dirty", Boolean, nullable=False),
    Column("jaxgate", Text, nullable=False),
    Column("elsewhere", Text, nullable=False),
    Column("green", Boolean),
    Column("gate_exit", Integer),
    Column("source", Text, nullable=False),
    Index("jaxgate_runs_commit", "commit"),
)

POINTS = Table(
    "jaxgate_points",
    METADATA,
    Column("runs_id", ForeignKey(RUNS.c.id), primary_key=True),
    Column("series_id", ForeignKey(SERIES.c.id), primary_key=True),
    _reference(FACTS),
    _reference(ENVIRONMENTS, nullable=True),
    _reference(BASELINES, nullable=True),
    Column("status", Text, nullable=False),
    Column("fails", Boolean, nullable=False),
    Column("recorded", Text, nullable=False),
    Column("program", Text, nullable=False),
    Column("time_status", Text, nullable=False),
    Column("ratio", Double),
    Column("low", Double),
    Column("high", Double),
    Column("times", Text, nullable=False),  # JSON, name to nanoseconds: other ones in each run
    UniqueConstraint("series_id", "runs_id", name="jaxgate_points_of_a_series"),
    sqlite_with_rowid=False,  # a run is written in one place, at the end
)
