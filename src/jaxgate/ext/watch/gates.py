"""Gates for the largest programs of a watched run, written as a test file that compiles them for the shapes of their arguments."""

from __future__ import annotations

import inspect
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import jax
import numpy as np

from jaxgate.model.words import plural, shortlist
from jaxgate.observe.compat import compiled_call

FILE = "perf/test_watched.py"
MOST = 10
"""Functions that are gated."""
_HEAD = """\"\"\"Gates for the largest programs of the tests, written by `pytest --perf-watch=gates`; now they are yours.

They are compiled for shapes and never called. Give real arrays where time is to be gated, too.
\"\"\"

"""
_WIDE = 120
_TEST_MODULE = re.compile(r"(^|\.)(test_\w*|\w*_test|conftest)$")
_KEY = "key<fry>"
_PLAIN = (type(None), bool, int, float, str)


class _CannotBeWrittenError(Exception):
    """A value that no line of Python makes."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call that made JAX compile a program."""

    function: str  # its name
    written: str = ""  # `module.name` where it can be imported
    arguments: tuple[str, ...] = ()  # as Python
    named: tuple[str, ...] = ()  # keyword arguments: `'name': value`
    modules: frozenset[str] = frozenset()  # that those need
    why_not: str = ""  # why no test can be written


def call_here() -> Call | None:
    """The call whose program was just compiled; ``None`` if it is JAX's own, or none is known."""
    called = compiled_call()
    call = None if called is None else _call(*called)
    return None if call is None or call.function.startswith("jax.") else call


def gates_of(calls: Iterable[tuple[Mapping[str, int], Call]]) -> tuple[str, str]:
    """A test file for the calls, each with the facts of its program, and what to say of it; empty if nothing is to write."""
    largest: dict[str, tuple[tuple[int, int], Call]] = {}
    for facts, call in calls:
        size, key = (facts.get("xla_flops", 0), facts.get("xla_bytes", 0)), call.written or call.function
        if key not in largest or largest[key][0] < size:
            largest[key] = size, call
    ranked = [call for _, call in sorted(largest.values(), key=lambda one: one[0], reverse=True)]
    gated = [call for call in ranked if call.written][:MOST]
    known = {call.function for call in gated}
    left = [
        f"{call.function.rpartition('.')[2]} {call.why_not}"
        for call in ranked
        if call.why_not and call.function not in known
    ]
    others = f"; not gated: {shortlist(left, 3, phrases=True)}" if left else ""
    if not gated:
        return "", f"{FILE} is not written: no function of {len(ranked)} can be called from there{others}"
    return _file(gated), f"{FILE}: {plural(len(gated), 'gate')} of the largest programs{others}"


def _call(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Call:
    function = inspect.unwrap(function)
    name = f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', '?')}"
    modules: set[str] = set()
    try:
        written = _imported(function, modules)
        arguments = tuple(_source(value, modules) for value in args)
        named = tuple(f"{key!r}: {_source(value, modules)}" for key, value in kwargs.items())
    except _CannotBeWrittenError as error:
        return Call(name, why_not=str(error))
    return Call(name, written, arguments, named, frozenset(modules))


def _imported(thing: Any, modules: set[str]) -> str:
    """How a function or a class is named after an import.

    Raises:
        _CannotBeWrittenError: If it stands within a function, in a test, or is another one by now.
    """
    module, name = getattr(thing, "__module__", None) or "", getattr(thing, "__qualname__", "")
    if not name or "<" in name:
        raise _CannotBeWrittenError("stands within a function")
    if _TEST_MODULE.search(module) or module == "__main__":
        raise _CannotBeWrittenError("stands in a test")
    parts = module.split(".")
    for known in (
        ".".join(parts[:number]) for number in range(1, len(parts) + 1)
    ):  # the package first: its public name
        with suppress(AttributeError, KeyError):
            if inspect.unwrap(attrgetter(name)(sys.modules[known])) is thing:
                modules.add(known)
                return f"{known}.{name}"
    raise _CannotBeWrittenError("is not what its module has under that name")


def _source(value: Any, modules: set[str]) -> str:
    """A value as Python, arrays as shapes.

    Raises:
        _CannotBeWrittenError: If no line of Python makes it.
    """
    if isinstance(value, jax.core.Tracer):
        raise _CannotBeWrittenError("is called within a transformation")
    if isinstance(value, (jax.Array, np.ndarray, np.generic)):
        return _shape(value)
    if type(value) in _PLAIN and not (isinstance(value, float) and not math.isfinite(value)):
        return repr(value)
    if type(value) is dict and all(type(key) in _PLAIN for key in value):
        return f"{{{', '.join(f'{key!r}: {_source(item, modules)}' for key, item in value.items())}}}"
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        fields = (f"{name}={_source(item, modules)}" for name, item in zip(value._fields, value, strict=True))
        return f"{_imported(type(value), modules)}({', '.join(fields)})"
    if type(value) in (list, tuple):
        items = ", ".join(_source(item, modules) for item in value)
        return f"[{items}]" if isinstance(value, list) else f"({items}{',' if len(value) == 1 else ''})"
    if inspect.isfunction(value) or isinstance(value, type):
        return _imported(value, modules)
    raise _CannotBeWrittenError(f"takes a {type(value).__name__}")


def _shape(array: Any) -> str:
    if isinstance(array, jax.Array) and len(array.sharding.device_set) > 1:
        raise _CannotBeWrittenError("takes arrays of several devices")
    dtype = str(array.dtype)
    if dtype == _KEY:
        return f"shape({array.shape}, jax.random.key(0).dtype)"
    if dtype.startswith("key<"):
        raise _CannotBeWrittenError(f"takes a {dtype}")
    return f"shape({array.shape}, {dtype!r})"


def _file(calls: Sequence[Call]) -> str:
    modules = sorted({module for call in calls for module in call.modules} | {"jax"})
    head = [*(f"import {module}" for module in modules), "", "shape = jax.ShapeDtypeStruct"]
    return f"{_HEAD}{chr(10).join(head)}\n{''.join(_tests(calls))}"


def _tests(calls: Sequence[Call]) -> Iterator[str]:
    taken: set[str] = set()
    for call in calls:
        name = test = f"test_{call.written.rpartition('.')[2].strip('_')}"
        while test in taken:
            test = f"{name}_{len(taken)}"
        taken.add(test)
        named = [f"kwargs={{{', '.join(call.named)}}}"] if call.named else []
        parts = [call.written, *call.arguments, *named]
        line = f"    gate({', '.join(parts)})"
        if len(line) > _WIDE:
            line = "    gate(\n" + "".join(f"        {part},\n" for part in parts) + "    )"
        yield f"\n\ndef {test}(gate):\n{line}\n"
