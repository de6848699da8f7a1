"""One option: its names, how pytest declares it, what values it takes, and how its value is found."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from jaxgate.settings import RankSettings


@dataclass(frozen=True, slots=True)
class Values:
    """What values an option takes."""

    parse: Callable[[Any], Any]  # makes one of what stands in a place; raises `ValueError` where that makes no sense
    expected: str = ""  # what makes sense, for the error
    form: Mapping[str, Any] = field(default_factory=dict)  # arguments of pytest's `addoption`
    default: Any = None  # where it stands nowhere


@dataclass(frozen=True, slots=True)
class Option:
    """One option, in all its places."""

    names: str  # names of its flag, environment variable and ini key, as far as it has them
    values: Values  # what values it takes
    help: str = ""  # what it is for; `{default}` stands for its default and the names of its other places
    default: Any = None  # its value where it stands nowhere; `None` for that of its values
    unset: str = ""  # its default in words, where the value itself does not say it
    ini_help: str = ""  # what its ini key is for, where that needs other words

    @property
    def flag(self) -> str:
        """Its flag on the command line; empty for none."""
        return self._name("--")

    @property
    def variable(self) -> str:
        """Its environment variable; empty for none."""
        return self._name("JAXGATE_")

    @property
    def ini(self) -> str:
        """Its ini key; empty for none."""
        return self._name("perf_")

    def _name(self, prefix: str) -> str:
        return next((name for name in self.names.split() if name.startswith(prefix)), "")

    @property
    def default_words(self) -> str:
        """Its default for people; empty where it does nothing by default."""
        return self.unset or (f"{self.default:g}" if isinstance(self.default, float) else str(self.default or ""))

    @property
    def name(self) -> str:
        """How messages call it."""
        return self.flag or self.variable

    @property
    def long_help(self) -> str:
        """What it is for, with its default and its other places."""
        default = f"default: {self.default_words}" if self.default_words else ""
        others = ", ".join(name for name in (self.variable, self.ini) if name and name != self.name)
        return self.help.replace("{default}", f"({'; '.join(filter(None, (default, others)))})")

    def add_flag(self, group: pytest.OptionGroup, *, shown: bool) -> None:
        """Declare the flag, if it has one; that it was not given is known from all values."""
        if self.flag:
            text = self.long_help if shown else argparse.SUPPRESS
            group.addoption(self.flag, default=None, help=text, **self.values.form)

    def add_ini(self, parser: pytest.Parser) -> None:
        """Declare the ini key, if it has one."""
        if self.ini:
            text = self.ini_help or self.help.replace(" {default}", "")
            parser.addini(self.ini, text, default="")

    def find(self, config: pytest.Config, environ: Mapping[str, str]) -> tuple[str, Any] | None:
        """Find the first place where it stands (command line, environment variable, ini key), and what stands there.

        What is blank stands nowhere.

        Raises:
            pytest.UsageError: If its flag has nothing after it: the run would do something else than it says.
        """
        for name, found in self._places(config, environ):
            value = found.strip() if isinstance(found, str) else found
            if isinstance(found, list):
                value = [item.strip() for item in found]
            if name == self.flag and "" in (value if isinstance(value, list) else [value]):
                what = self.values.form.get("metavar", "a value")
                raise pytest.UsageError(f"{name}: expected {what}, found nothing; write {name}={what}, or leave it out")
            if value not in (None, "", []):
                return name, value
        return None

    def _places(self, config: pytest.Config, environ: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
        if self.flag:
            yield self.flag, config.getoption(self.flag)
        if self.variable:
            yield self.variable, environ.get(self.variable)
        if self.ini:
            yield self.ini, config.getini(self.ini)

    def read(self, config: pytest.Config, environ: Mapping[str, str]) -> Any:
        """Read its value: where it stands first, else its default.

        Raises:
            pytest.UsageError: If that makes no sense.
        """
        found = self.find(config, environ)
        if found is None:
            return self.values.default if self.default is None else self.default
        try:
            return self.values.parse(found[1])
        except (ValueError, OSError):
            path = f"; was a path meant? Write {self.flag}={self.values.form.get('const')}, or put it last"
            takes_path = found[0] == self.flag and self.values.form.get("nargs") == "?"
            raise self.error(found[1], place=found[0], then=path if takes_path else "") from None

    def error(self, found: object, *, place: str = "", expected: str = "", then: str = "") -> pytest.UsageError:
        """Say what was expected, and what was found.

        ``place`` is where it stands, ``expected`` what makes sense where that is not the same for all values.
        """
        from jaxgate.model.words import cut  # noqa: PLC0415 - what runs without gates do without

        if "action" in self.values.form:
            name = place  # its flag has no value
        elif self.flag and "choices" not in self.values.form:
            name = self.flag
        else:
            name = (
                f"{self.ini} ({self.variable})" if self.ini else self.variable
            )  # pytest itself refuses what is no choice on the command line
        shown = cut(repr(found), 200)
        return pytest.UsageError(f"{name}: expected {expected or self.values.expected}, found {shown}{then}")


AUTO = "auto"
RANK_TIMEOUT_S = 300.0
"""Most programs compile in less; a stage of a case that takes longer needs more."""
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


class Once(argparse.Action):
    """Takes one value: of several argparse would silently keep the last. pytest parses the same line several times."""

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


def rank(text: str) -> RankSettings:
    """Coordinator, count, rank and, if wanted, a limit; ``auto`` lets JAX find the first three."""
    where, *parts = text.split(",")
    limit_s = float(parts.pop()) if len(parts) == (1 if where == AUTO else 3) else RANK_TIMEOUT_S
    if not 0 < limit_s < math.inf:
        raise ValueError(text)
    if where == AUTO and not parts:
        return RankSettings(coordinator=None, count=None, rank=None, timeout_s=limit_s)
    count, rank = map(int, parts)
    host, _, port = where.rpartition(":")
    if not host or not 0 < int(port) < 1 << 16 or not 0 <= rank < count or count == 1:
        raise ValueError(text)
    return RankSettings(coordinator=where, count=count, rank=rank, timeout_s=limit_s)


def part(found: str) -> tuple[int, int]:
    """``2/8``: the second part of eight."""
    number, _, count = found.partition("/")
    if not 1 <= int(number) <= int(count):
        raise ValueError(found)
    return int(number), int(count)


def words(found: str) -> frozenset[str]:
    """Some words with commas between."""
    return frozenset(filter(None, (word.strip() for word in found.split(","))))


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
