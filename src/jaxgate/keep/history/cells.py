"""What stands in the cells of a history: texts that every database takes, and names with their numbers."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields as fields_of
from typing import Any

_CLOCK = "_ns"
"""The end of a name whose number a clock measured: it is another one in each run."""


def fields(kind: type[Any]) -> tuple[str, ...]:
    """The names of the fields of a dataclass."""
    return tuple(field.name for field in fields_of(kind))


def plain(value: Any) -> Any:
    """A text without what PostgreSQL refuses in one: NUL and halves of characters. Everything else stays."""
    if not isinstance(value, str):
        return value
    return str(value).replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def finite(value: float | None) -> float | None:
    """A number; ``None`` where it is none, as SQLite would keep it."""
    return value if value is not None and math.isfinite(value) else None


def divided(figures: Mapping[str, float]) -> tuple[str, str]:
    """Figures as two texts: what is counted, which repeats from run to run, and what a clock measured."""
    times = {name: value for name, value in figures.items() if name.endswith(_CLOCK)}
    return joined({name: value for name, value in figures.items() if name not in times}), joined(times)


def joined(values: Mapping[str, Any]) -> str:
    """Names and values as a text, the same one whatever their order."""
    shortest = {name: _shortest(value) for name, value in values.items()}
    return json.dumps(shortest, sort_keys=True, separators=(",", ":"))


def _shortest(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


class ReadOnce:
    """Reads such texts, each once: nearly all rows of a case share one."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, Any]] = {}

    def __call__(self, text: str) -> dict[str, Any]:
        """The names and values of a text."""
        if text not in self._known:
            self._known[text] = json.loads(text)
        return self._known[text]
