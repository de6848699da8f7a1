"""Which of a step's results its log reads: each makes Python wait until the device is done."""

from __future__ import annotations

import sys
from collections.abc import Callable
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
    """Reads of some arrays in a call."""

    def __init__(self) -> None:
        self._read: dict[int, str] = {}
        self._arrays: dict[int, Any] = {}

    def run(self, log: Callable[[int, Any], None], number: int, out: Any) -> None:
        """Log a step and note which of its results are read; those of the step before may be."""
        self._arrays = {id(leaf): leaf for leaf in jax.tree.leaves(out) if isinstance(leaf, jax.Array)}
        own = {name: getattr(np, name) for name in FROM_NUMPY}  # they read an array's memory without an event
        profiler = sys.getprofile()
        vars(np).update({name: self._watched(function) for name, function in own.items()})
        sys.setprofile(self._on_call)
        try:
            log(number, out)
        finally:
            sys.setprofile(profiler)
            vars(np).update(own)

    @property
    def count(self) -> Count:
        """How many, and where."""
        told = "log= reads a result of each step, so that Python waits for the device"
        return Count(len(self._read), told, next(iter(self._read.values()), ""))

    def _watched(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def watcher(*args: Any, **kwargs: Any) -> Any:
            if args and id(args[0]) in self._arrays:
                self._note(args[0])
            return function(*args, **kwargs)

        return watcher

    def _on_call(self, frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_name in _METHODS:
            array = frame.f_locals.get("self")
            if id(array) in self._arrays:
                self._note(array)

    def _note(self, array: Any) -> None:
        self._read.setdefault(id(array), f"{short(array)} is read{at(calling_line())}")
