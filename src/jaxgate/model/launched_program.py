"""A device program that plain Python launches, judged by itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from jaxgate.model.numbers import STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchedProgram:
    """One of the device programs of a warm call of plain Python.

    Attributes:
        name: Of the function that it was traced from.
        count: How often a call launches it.
        fingerprint: Structure of its StableHLO module.
        options: Its compiler options in one line; ``None`` if they could not be read.
        devices: Its device assignment; ``None`` on one device, or if it is unknown.
        arguments: Types of its arguments, in order.
        facts: Of one call of it, by name, as far as they are known.
    """

    __pydantic_config__: ClassVar[Any] = STRICT

    name: str
    count: int
    fingerprint: str
    options: str | None
    devices: str | None
    arguments: tuple[str, ...]
    facts: Mapping[str, int]

    @property
    def identity(self) -> tuple[object, ...]:
        """What is the same of two programs that take the same time: all that decides what is compiled."""
        return (self.fingerprint, self.options, self.devices, self.arguments)


def changed_programs(
    now: Sequence[LaunchedProgram], before: Sequence[LaunchedProgram]
) -> Iterator[tuple[LaunchedProgram | None, LaunchedProgram | None]]:
    """Pair the programs that one side has and the other has not, by name and in their order.

    Yields:
        Today's program and that of before; ``None`` for one that has no counterpart.
    """
    kept = {one.identity for one in now} & {one.identity for one in before}
    waiting: defaultdict[str, list[LaunchedProgram]] = defaultdict(list)
    for one in before:
        if one.identity not in kept:
            waiting[one.name].append(one)
    for one in now:
        if one.identity not in kept:
            yield one, (waiting[one.name].pop(0) if waiting[one.name] else None)
    for left in waiting.values():
        for one in left:
            yield None, one
