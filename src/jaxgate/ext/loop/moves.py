"""What a part of a loop moves: arrays that it reads, each of which makes Python wait for the device, and bytes that it sends there."""

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
_SENDERS = frozenset({"array", "asarray", "device_put"})
"""Functions of JAX that send NumPy arrays to a device."""


class Moves:
    """Reads of arrays in a call, by Python, and NumPy arrays that it sends.

    The device is done with ``spared`` arrays, which may be read and sent.
    """

    def __init__(self, spared: Iterable[Any]) -> None:
        self._spared = {id(array): array for array in spared}
        self._read: dict[int, tuple[Any, str]] = {}
        self._sent: dict[int, tuple[Any, str]] = {}
        self._sender: FrameType | None = None

    def run(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function; note what it reads, and what it sends of its arguments or makes of them."""
        for argument in args:
            self._note_sent(argument)
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

    @property
    def sent_bytes(self) -> int:
        """Bytes of the arrays that are sent."""
        return sum(array.nbytes for array, _ in self._sent.values())

    @property
    def sent_most(self) -> str:
        """The largest array that is sent, and where; empty if there is none."""
        return max(self._sent.values(), key=lambda sent: sent[0].nbytes, default=(None, ""))[1]

    def _watched(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def watcher(*args: Any, **kwargs: Any) -> Any:
            if args:
                self._note(args[0])
            return function(*args, **kwargs)

        return watcher

    def _on_call(self, frame: FrameType, event: str, _: Any) -> None:
        name = frame.f_code.co_name
        if event == "call" and name in _METHODS:
            self._note(frame.f_locals.get("self"))
        elif event == "return" and frame is self._sender:
            self._sender = None
        elif event == "call" and name in _SENDERS and self._sender is None and _is_of_jax(frame):
            self._sender = frame  # what it calls sends the same
            self._note_sent(next(iter(frame.f_locals.values()), None))

    def _note(self, array: Any) -> None:
        concrete = isinstance(array, jax.Array) and not isinstance(array, jax.core.Tracer)
        if concrete and id(array) not in self._spared and id(array) not in self._read:
            self._read[id(array)] = array, f"{short(array)} is read{at(calling_line())}"

    def _note_sent(self, tree: Any) -> None:
        for array in jax.tree.leaves(tree):
            if isinstance(array, np.ndarray) and id(array) not in self._spared and id(array) not in self._sent:
                self._sent[id(array)] = array, f"{short(array)}{at(calling_line())}"


def _is_of_jax(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).startswith("jax.")
