"""What values an option may take, and how each is made of what stands on the command line, in a variable or in a file."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from jaxgate.plugin.options.option import Values

AUTO = "auto"
FALSE = frozenset({"", "0", "false", "no", "off"})
_TRUE = frozenset({"1", "true", "yes", "on"})


def truth(found: bool | str) -> bool:  # noqa: FBT001 - what stands in a place
    """Yes or no, in the words of people and of ini files."""
    word = str(found).lower()
    if word not in _TRUE | FALSE:
        raise ValueError(found)
    return word in _TRUE


def share(found: str) -> float:
    """``10%`` or ``0.1``; a bare 10 would be either."""
    part = float(found.removesuffix("%")) / 100 if found.endswith("%") else float(found)
    if not 0 < part < (math.inf if found.endswith("%") else 1):
        raise ValueError(found)
    return part


def path(found: str) -> str:
    """A path that this system can have."""
    with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
        Path(found).stat()
    return found


def items(found: str | list[str]) -> tuple[str, ...]:
    """Items between commas, or one by one."""
    parts = found.split(",") if isinstance(found, str) else found
    return tuple(part.strip() for part in parts if part.strip())


class Once(argparse.Action):
    """Takes one value: of several argparse would keep the last without a word. pytest parses the same line several times."""

    def __call__(
        self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: str | None = None
    ) -> None:
        """Keep the value.

        Raises:
            pytest.UsageError: If another one is there.
        """
        del parser
        before = getattr(namespace, self.dest, None)
        if before not in (None, values):
            raise pytest.UsageError(
                f"{option_string}: expected one in a run of pytest, found {before!r} and {values!r}; `jaxgate gate` takes "
                "several and runs once for each"
            )
        setattr(namespace, self.dest, values)


def rank(text: str) -> tuple[str, int, int] | None:
    """Coordinator, count and rank; ``None`` lets JAX find them."""
    if text == AUTO:
        return None
    coordinator, count, rank = text.split(",")
    host, _, port = coordinator.rpartition(":")
    if not host or not 0 < int(port) < 1 << 16 or not 0 <= int(rank) < int(count) or int(count) == 1:
        raise ValueError(text)
    return coordinator, int(count), int(rank)


def number(expected: str, metavar: str, fits: Callable[[float], bool]) -> Values:
    """A number that fits."""
    return Values(_fitting(float, fits), expected, {"metavar": metavar})


def count(expected: str, metavar: str = "N", *, least: int = 0, default: int | None = 0) -> Values:
    """A whole number, no less than the least."""
    return Values(_fitting(int, lambda count: count >= least), expected, {"metavar": metavar, "type": int}, default)


def _fitting(make: Callable[[Any], float], fits: Callable[[float], bool]) -> Callable[[Any], float]:
    def parse(found: float | str) -> float:
        number = make(found)
        if not fits(number):
            raise ValueError(found)
        return number

    return parse


def one_of(words: tuple[str, ...]) -> Values:
    """One of some words."""
    return Values(lambda text: words[words.index(text)], f"one of {', '.join(words)}", {"choices": words})
