"""Rows that stand once: found by the digest of what they hold, added where they are new."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Table, insert, select

from jaxgate.keep.history.tables import DIGEST

_AT_ONCE = 500
"""Digests in one query; databases limit the values of a statement."""
Cells = Mapping[str, Any]


def intern(connection: Connection, table: Table, rows: Sequence[Cells | None]) -> list[int | None]:
    """Number rows, adding those that are new.

    Args:
        connection: With a transaction that writes: nobody else adds rows meanwhile.
        table: Where they stand.
        rows: Their cells; ``None`` for none.

    Returns:
        The number of each; ``None`` for none.
    """
    digests = [None if row is None else _digest(row) for row in rows]
    wanted = {digest: row for digest, row in zip(digests, rows, strict=True) if digest is not None}
    known = _known(connection, table, list(wanted))
    new = [{"digest": digest, **(row or {})} for digest, row in wanted.items() if digest not in known]
    if new:
        connection.execute(insert(table), new)
        known |= _known(connection, table, [row["digest"] for row in new])
    return [None if digest is None else known[digest] for digest in digests]


def _known(connection: Connection, table: Table, digests: Sequence[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for begin in range(0, len(digests), _AT_ONCE):
        some = digests[begin : begin + _AT_ONCE]
        rows = connection.execute(select(table.c.digest, table.c.id).where(table.c.digest.in_(some)))
        found |= {row.digest: row.id for row in rows}
    return found


def _digest(row: Cells) -> str:
    content = json.dumps(row, sort_keys=True).encode()
    return hashlib.blake2b(content, digest_size=DIGEST // 2).hexdigest()
