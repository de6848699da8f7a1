"""The version of a history's tables: made, brought up to date in place, or refused where a later jaxgate made them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from sqlalchemy import Connection, insert, inspect, select, update

from jaxgate.keep.history.place import HistoryError
from jaxgate.keep.history.tables import METADATA, SCHEMAS

SCHEMA = 1
Step = Callable[[Connection], None]
"""Changes the tables from one version to the next, inside a transaction that it does not end."""
STEPS: Mapping[int, Step] = MappingProxyType({})
"""By the version that each begins with. Whoever raises ``SCHEMA`` adds the step from the version before."""


def version_of(connection: Connection) -> int | None:
    """The version of the tables that are there; ``None`` where there are none."""
    if not inspect(connection).has_table(SCHEMAS.name):
        return None
    return int(connection.execute(select(SCHEMAS.c.version)).scalar_one())


def refuse_newer(version: int | None, known: int = SCHEMA) -> None:
    """Refuse tables that a later jaxgate made.

    Raises:
        HistoryError: If it did.
    """
    if version is not None and version > known:
        raise HistoryError(
            f"expected a history of schema {known} or older, found {version}, which a later jaxgate made; nothing was "
            "written; upgrade jaxgate, or name another place with --perf-history"
        )


def bring_up_to_date(connection: Connection, known: int = SCHEMA, steps: Mapping[int, Step] = STEPS) -> None:
    """Make the tables, or bring older ones up to date, inside the transaction that is open.

    Raises:
        HistoryError: If a later jaxgate made them, or there is no step from the version that is there.
    """
    version = version_of(connection)
    refuse_newer(version, known)
    if version is None:
        METADATA.create_all(connection)
        connection.execute(insert(SCHEMAS).values(version=known))
        return
    for begin in range(version, known):
        if begin not in steps:
            raise HistoryError(f"expected a history of schema {min(steps, default=known)} or newer, found {version}")
        steps[begin](connection)
        connection.execute(update(SCHEMAS).values(version=begin + 1))
