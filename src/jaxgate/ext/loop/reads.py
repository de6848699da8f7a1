"""Which arrays a part of a loop reads: each makes Python wait until the device is done."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any

import jax
import numpy as np

from jaxgate.ext.loop.model import Count
from jaxgate.observe.arguments.signature import short
from jaxgate.observe.execute.python_calls import FROM_NUMPY
from jaxgate.observe.source_lines import at, calling_line

_METHODS = frozenset(
    {"__array__", "__bool__", "__complex__", "__float__", "__format__", "__index__", "__int__", "__repr__", "__str__"}
    | {"_value", "item", "tolist", "block_until_ready"}
)
"""Methods of an array that give its values to Python."""


class Reads:
    """Reads of arrays in a call, by Python.

    Args:
        spared: Arrays that may be read: the device is done with them.
    """

    def __init__(self, spared: Iterable[Any]) -> None:
        self._spared = {id(array): array for array in spared}
        self._read: dict[int, tuple[Any, str]] = {}

    def run(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function and note what it reads: of what it is given, or makes of that."""
        own = {name: getattr(np, name) for name in FROM_NUMPY}  # they read an array's memory without an event
        profiler = sys.getprofile()
        vars(np).update({name: self._watched(function) for name, function in own.items()})
        sys.setprofile(self._on_call)
        try:
            return function(*args)
        finally:
            sys.setprofile(profiler)
            vars(np).update(own)

    def count(self, told: str) -> Count:
        """How many, and where."""
        where = next((where for _, where in self._read.values()), "")
        return Count(len(self._read), f"{told}, so that Python waits for the device", where)

    def _watched(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def watcher(*args: Any, **kwargs: Any) -> Any:
            if args:
                self._note(args[0])
            return function(*args, **kwargs)

        return watcher

    def _on_call(self, frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_name in _METHODS:
            self._note(frame.f_locals.get("self"))

    def _note(self, array: Any) -> None:
        concrete = isinstance(array, jax.Array) and not isinstance(array, jax.core.Tracer)
        if concrete and id(array) not in self._spared and id(array) not in self._read:
            self._read[id(array)] = array, f"{short(array)} is read{at(calling_line())}"
