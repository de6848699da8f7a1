"""Waivers and accepted drifts on disk: ``<baselines>/waivers.toml``. A typo must not accept or refuse a loss."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import MISSING, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

from jaxgate.ext.history.drift import DriftStart
from jaxgate.keep.files import may_be_quoted, parse_toml, read_text
from jaxgate.keep.strict import first_problem
from jaxgate.model.waiver import Waiver

if TYPE_CHECKING:
    from pydantic import BaseModel

FILE = "waivers.toml"
_Entry = TypeVar("_Entry", Waiver, DriftStart)
_TABLES = ("waiver", "drift")


class WaiverError(Exception):
    """A file of waivers that cannot be trusted; the text names file, entry and key."""


def read_waivers(baselines: Path) -> tuple[Waiver, ...]:
    """Read all waivers of a project; none if it has no such file.

    Raises:
        WaiverError: If the file is there and anything in it is not as expected.
    """
    return tuple(_read_entries(baselines, "waiver", Waiver, ("case", "quantity")))


def read_drift_starts(baselines: Path) -> tuple[DriftStart, ...]:
    """Read from which day on the drift of a case counts, where what came before was accepted. Raises WaiverError, too."""
    return tuple(_read_entries(baselines, "drift", DriftStart, ("case",)))


def _read_entries(baselines: Path, table: str, kind: type[_Entry], key: tuple[str, ...]) -> Iterator[_Entry]:
    """The entries of one table; no two may have the same key."""
    path = baselines / FILE
    entries = _entries(path, table)
    if not entries:
        return
    keys = _keys(kind)
    found: dict[tuple[str, ...], int] = {}
    for number, entry in enumerate(entries, start=1):
        read = _read(path, number, entry, kind, keys)
        first = found.setdefault(tuple(getattr(read, name) for name in key), number)
        if first != number:
            names = " and ".join(f"`{name}`" for name in key)
            same = f"keys {names} are those" if len(key) > 1 else f"key {names} is that"
            raise WaiverError(f"{_where(path, number, entry)}: {same} of entry {first}; keep one of them")
        yield read


def _entries(path: Path, table: str) -> list[dict[str, Any]]:
    if not os.path.lexists(path):  # a link to nowhere is not "none"
        return []
    try:
        text = read_text(path)
        content = parse_toml(text)
    except (OSError, UnicodeDecodeError) as error:
        raise WaiverError(f"{path}: cannot be read: {error}") from error
    except ValueError as error:
        line = re.search(r"line (\d+)", str(error)) if may_be_quoted(path) else None
        there = f": {text.splitlines()[int(line[1]) - 1].strip()}" if line else ""
        raise WaiverError(f"{path}: is not TOML (no such date, or merged badly?): {error}{there}") from error
    unknown = sorted(set(content) - set(_TABLES))
    if unknown:
        expected = " and ".join(f"[[{name}]]" for name in _TABLES)
        raise WaiverError(f"{path}: unknown key `{unknown[0]}`; expected {expected} entries and nothing else")
    entries = content.get(table, [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise WaiverError(f"{path}: expected [[{table}]] entries, in double brackets")
    return entries


def _keys(kind: type[Waiver | DriftStart]) -> type[BaseModel]:
    """The keys of an entry. Read strictly, pydantic takes a dataclass from JSON only, and JSON knows no dates."""
    from pydantic import ConfigDict, create_model  # noqa: PLC0415 - few projects waive anything

    types = get_type_hints(kind)
    keys: dict[str, Any] = {
        field.name: (types[field.name], ... if field.default is MISSING else field.default) for field in fields(kind)
    }
    return create_model("Entry", __config__=ConfigDict(strict=True, extra="forbid"), **keys)


def _read(path: Path, number: int, entry: dict[str, Any], kind: type[_Entry], keys: type[BaseModel]) -> _Entry:
    from pydantic import ValidationError  # noqa: PLC0415 - as above

    try:
        return kind(**keys.model_validate(entry).model_dump())
    except ValidationError as error:
        reason = first_problem(error)
        if error.errors()[0]["loc"] in (("expires",), ("since",)):
            reason += "; a date stands without quotes, such as 2026-12-31"
    except ValueError as error:  # what the waiver itself refuses
        reason = str(error)
    raise WaiverError(f"{_where(path, number, entry)}: {reason}")


def _where(path: Path, number: int, entry: dict[str, Any]) -> str:
    named = ", ".join(str(entry[key]) for key in ("case", "quantity") if isinstance(entry.get(key), str))
    return f"{path}: entry {number}" + (f" ({named})" if named else "")
