"""Waivers on disk: ``<baselines>/waivers.toml``. The reader is strict: a typo must not accept or refuse a loss."""

from __future__ import annotations

import os
import re
from dataclasses import MISSING, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from jaxgate.keep.strict import first_problem
from jaxgate.keep.untrusted import may_be_quoted, parse_toml, read_text
from jaxgate.model import Waiver

if TYPE_CHECKING:
    from pydantic import BaseModel

FILE = "waivers.toml"
_TABLE = "waiver"


class WaiverError(Exception):
    """A file of waivers that cannot be trusted; the text names file, entry and key."""


def read_waivers(baselines: Path) -> tuple[Waiver, ...]:
    """Read all waivers of a project; none if it has no such file.

    Raises:
        WaiverError: If the file is there and anything in it is not as expected.
    """
    path = baselines / FILE
    if not os.path.lexists(path):  # a link to nowhere is not "none"
        return ()
    try:
        text = read_text(path)
        content = parse_toml(text)
    except (OSError, UnicodeDecodeError) as error:
        raise WaiverError(f"{path}: cannot be read: {error}") from error
    except ValueError as error:
        line = re.search(r"line (\d+)", str(error)) if may_be_quoted(path) else None
        there = f": {text.splitlines()[int(line[1]) - 1].strip()}" if line else ""
        raise WaiverError(f"{path}: is not TOML (no such date, or merged badly?): {error}{there}") from error
    unknown = sorted(set(content) - {_TABLE})
    if unknown:
        raise WaiverError(f"{path}: unknown key `{unknown[0]}`; expected [[{_TABLE}]] entries and nothing else")
    entries = content.get(_TABLE, [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise WaiverError(f"{path}: expected [[{_TABLE}]] entries, in double brackets")
    found: dict[tuple[str, str], int] = {}
    waivers = []
    for number, entry in enumerate(entries, start=1):
        waiver = _read(path, number, entry)
        first = found.setdefault((waiver.case, waiver.quantity), number)
        if first != number:
            raise WaiverError(
                f"{_where(path, number, entry)}: keys `case` and `quantity` are those of entry {first}; keep one of them"
            )
        waivers.append(waiver)
    return tuple(waivers)


@cache
def _entry() -> type[BaseModel]:
    """The keys of an entry. Read strictly, pydantic takes a dataclass from JSON only, and JSON knows no dates."""
    from pydantic import ConfigDict, create_model  # noqa: PLC0415 - few projects waive anything

    types = get_type_hints(Waiver)
    keys: dict[str, Any] = {
        field.name: (types[field.name], ... if field.default is MISSING else field.default) for field in fields(Waiver)
    }
    return create_model("Entry", __config__=ConfigDict(strict=True, extra="forbid"), **keys)


def _read(path: Path, number: int, entry: dict[str, Any]) -> Waiver:
    from pydantic import ValidationError  # noqa: PLC0415 - as above

    try:
        return Waiver(**_entry().model_validate(entry).model_dump())
    except ValidationError as error:
        reason = first_problem(error)
        if error.errors()[0]["loc"] == ("expires",):
            reason += "; a date stands without quotes, such as 2026-12-31"
    except ValueError as error:  # what the waiver itself refuses
        reason = str(error)
    raise WaiverError(f"{_where(path, number, entry)}: {reason}")


def _where(path: Path, number: int, entry: dict[str, Any]) -> str:
    named = ", ".join(str(entry[key]) for key in ("case", "quantity") if isinstance(entry.get(key), str))
    return f"{path}: entry {number}" + (f" ({named})" if named else "")
