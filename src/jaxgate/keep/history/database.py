"""Transactions of a history: each is whole or nothing, and two that write wait for each other.

SQLite keeps its rollback journal, not a write-ahead log: between two runs the history is one file, which can be copied as an
artifact and lies on network file systems, where a log does not work. Writers are few and short, so they may wait.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Engine, NullPool, create_engine, event, text

from jaxgate.keep.history.place import Place

BUSY_S = 30.0
"""As long as that a run waits for another one to end its transaction, which takes far less than a second."""
CONNECT_S = 10
_WRITES = "jaxgate_writes"
_LOCK = 0x6A617867617465  # "jaxgate": whoever holds this number in PostgreSQL is the one that writes


class Database:
    """The transactions of one place.

    Args:
        place: Where it is.
        busy_s: Seconds to wait for another writer.
    """

    def __init__(self, place: Place, *, busy_s: float = BUSY_S) -> None:
        self.place = place
        self._busy_s = busy_s
        with place.explaining():
            self._engine = self._connectable()

    @contextmanager
    def writes(self) -> Iterator[Connection]:
        """A transaction that writes: no other one that does is open meanwhile.

        Raises:
            HistoryError: If it cannot be written; then nothing was.
        """
        with self.place.explaining():
            self.place.make_folder()
            with self._engine.connect() as connection:
                marked = connection.execution_options(**{_WRITES: True})
                with marked.begin():
                    if self._engine.dialect.name == "postgresql":
                        marked.execute(text(f"SET LOCAL lock_timeout = {int(self._busy_s * 1000)}"))
                        marked.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
                    yield marked

    @contextmanager
    def reads(self) -> Iterator[Connection]:
        """A transaction that reads: it sees whole runs only.

        Raises:
            HistoryError: If it cannot be read.
        """
        with self.place.explaining(), self._engine.connect() as connection, connection.begin():
            yield connection

    def close(self) -> None:
        """Let go of the database."""
        self._engine.dispose()

    def _connectable(self) -> Engine:
        url = self.place.url
        if self.place.file is None:
            known = url.get_backend_name() == "postgresql" and "connect_timeout" not in url.query
            return create_engine(url, poolclass=NullPool, connect_args={"connect_timeout": CONNECT_S} if known else {})
        engine = create_engine(url, poolclass=NullPool, connect_args={"timeout": self._busy_s})
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine


def _prepare_sqlite(connection: Any, _: Any) -> None:
    """Let SQLAlchemy begin and end transactions, and let nothing that a file brings run in this process."""
    connection.isolation_level = None  # the driver's own would leave CREATE TABLE outside of them
    for pragma in ("foreign_keys = ON", "trusted_schema = OFF", "synchronous = FULL"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    """Begin; of those that write one at a time, from the start: one that reads first could not go on to write."""
    writes = connection.get_execution_options().get(_WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
