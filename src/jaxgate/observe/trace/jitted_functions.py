"""The jitted functions that plain Python can call, with their source lines: found, not run."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import jax

from jaxgate.observe.source_lines import is_project_file, short_path

_DEPTH = 4
"""Calls from function to function that are followed."""


def find_jitted_functions(function: Callable[..., Any]) -> Mapping[str, str]:
    """Find the project's jitted functions that a function can reach by name, closure or the attributes of its object.

    For messages only: what is not found is launched and counted all the same. ``jax.pmap`` gives plain functions
    whose program is called ``_fun``; those are not among them.

    Returns:
        Name of the function, as JAX names its program, to ``file:line``; the first one where two have a name.
    """
    found: dict[str, str] = {}
    for _, code in jitted_functions(function):
        found.setdefault(code.co_name, f"{short_path(code.co_filename)}:{code.co_firstlineno}")
    return found


def jitted_functions(function: Callable[..., Any]) -> Iterator[tuple[Any, CodeType]]:
    """The same as objects, the nearest first, each with the code of the function that it compiles."""
    seen: set[int] = set()
    pending: list[tuple[Any, int]] = [(function, _DEPTH)]
    while pending:
        value, depth = pending.pop(0)
        if id(value) in seen or depth < 0:
            continue
        seen.add(id(value))
        if isinstance(value, jax.stages.Wrapped):
            code = getattr(inspect.unwrap(value), "__code__", None)
            if code is not None and is_project_file(code.co_filename):
                yield value, code
        pending += [(inner, depth - 1) for inner in _inside(value)]


def _inside(value: Any) -> Iterator[Any]:
    if isinstance(value, partial):
        yield value.func
    elif isinstance(value, MethodType):
        yield value.__func__
        owner = value.__self__
        attributes = [*vars(type(owner)).values(), *getattr(owner, "__dict__", {}).values()]
        yield from filter(callable, attributes)
    elif isinstance(value, FunctionType) and is_project_file(value.__code__.co_filename):
        yield from vars(value).values()  # ``__wrapped__``
        try:
            names = inspect.getclosurevars(value)
        except (TypeError, ValueError):
            return  # a cell that is not filled yet
        known = [*names.nonlocals.values(), *names.globals.values()]
        yield from known
        modules = [item for item in known if isinstance(item, ModuleType)]
        yield from (vars(module)[name] for module in modules for name in names.unbound if name in vars(module))
    elif isinstance(value, FunctionType):
        yield vars(value).get("__wrapped__")  # a decorator out of a library
