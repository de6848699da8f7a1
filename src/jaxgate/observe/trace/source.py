"""A fingerprint of source text: did somebody change the subject, or what it calls in this project?

It counts the project's own functions that a subject reaches: by name, by closure, through what libraries keep of them.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import sys
import textwrap
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import is_dataclass
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import jax
import numpy as np

from jaxgate.model.computation import Computation
from jaxgate.model.workload import Family
from jaxgate.observe.source_lines import is_project_file, short_path

_VALUES = (jax.Array, np.ndarray, np.generic, str, bytes, bool, int, float, complex, type(None), ModuleType, CodeType)
"""Types that hold no function."""
_OWN = __name__.partition(".")[0]
"""This package: what it holds a subject against is not the subject's source."""
_MAX_OBJECTS = 20_000
"""Objects that are looked into: a model has some hundreds, a subject that holds a whole application is cut off here."""


def project_functions(*roots: Any) -> Iterator[FunctionType]:
    """The project's own functions among some objects and all that these reach, each once.

    A function of the project reaches what its code names and what it closed over. A function of a library reaches what
    it closed over: a chain of optimisers, a method bound to a model. An object reaches its attributes, one of the
    project's classes the methods of its class, too.
    """
    codes: set[CodeType] = set()
    for value in reachable(roots):
        if isinstance(value, FunctionType) and value.__code__ not in codes and _is_own(value):
            codes.add(value.__code__)
            yield value


def begins_at(*roots: Any) -> str:
    """``file:line`` where the nearest of them begins, with its decorators; empty if none is the project's."""
    code = next((function.__code__ for function in project_functions(*roots)), None)
    return "" if code is None else f"{short_path(code.co_filename)}:{code.co_firstlineno}"


def is_python(root: Any) -> bool:
    """Whether there is a Python function in an object, of whatever author."""
    return any(isinstance(value, FunctionType) for value in reachable([root]))


def reachable(roots: Iterable[Any]) -> Iterator[Any]:
    """Some objects and all that these may call, the nearest first; nothing of this package's own."""
    seen: dict[int, Any] = {}  # keeps them alive: a bound method is a new object each time
    pending = deque(roots)
    while pending and len(seen) < _MAX_OBJECTS:
        value = pending.popleft()
        if isinstance(value, _VALUES) or id(value) in seen:
            continue
        seen[id(value)] = value
        yield value
        pending.extend(_inside(value))


def _inside(value: Any) -> Iterable[Any]:
    """What a value may call."""
    if isinstance(value, FunctionType):
        return [*vars(value).values(), *(seen for _, seen in variables(value))]  # also ``__wrapped__``
    if isinstance(value, (list, tuple, AbstractSet)):
        return value
    if isinstance(value, Mapping):
        return value.values()
    if isinstance(value, partial):
        return [value.func, *value.args, *value.keywords.values()]
    if isinstance(value, MethodType):
        return [value.__func__, value.__self__]
    if isinstance(value, (staticmethod, classmethod)):
        return [value.__func__]
    if isinstance(value, property):
        return [value.fget]
    if isinstance(value, type):
        own = [base for base in value.__mro__ if _is_project_class(base)] if _is_project_class(value) else []
        return [member for base in own for member in vars(base).values()]
    return _attributes(value)


def _attributes(value: Any) -> Iterator[Any]:
    """The attributes of an object of the project; of a library's, only callables, trees of arrays, and plain data."""
    kind = type(value)
    if _is_project_class(kind):
        yield kind
    elif kind.__module__.partition(".")[0] == _OWN or not _keeps_functions(value):
        return
    yield from getattr(value, "__dict__", {}).values()
    for base in kind.__mro__:
        slots = vars(base).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            yield getattr(value, name, None)


def _keeps_functions(value: Any) -> bool:
    """Whether an object of a library's is made of other people's functions: not a logger, not a lock, not a device."""
    described = callable(value) or hasattr(type(value), "__get__") or is_dataclass(value)
    return described or not jax.tree_util.all_leaves([value])


def _is_own(function: FunctionType) -> bool:
    return is_project_file(function.__code__.co_filename)


def _is_project_class(cls: type) -> bool:
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    codes = (member.__code__.co_filename for member in vars(cls).values() if isinstance(member, FunctionType))
    return is_project_file(file) if file else any(map(is_project_file, codes))


def variables(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """What a function sees without being given it, by name: what it closed over; of the project's own also what it names.

    Default arguments are seen, too. Modules of the project are looked into, through packages too: ``tables.SINES``.
    """
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:
            continue  # not filled yet
    if not _is_own(function):
        return
    defaults = function.__defaults__ or ()
    positional = function.__code__.co_varnames[: function.__code__.co_argcount]
    yield from zip(positional[len(positional) - len(defaults) :], defaults, strict=True)
    yield from (function.__kwdefaults__ or {}).items()
    names = list(dict.fromkeys(_names_in(function.__code__)))
    found = [(name, function.__globals__[name]) for name in names if name in function.__globals__]
    seen: set[int] = set()
    for name, value in found:  # grows: a module of a package is a value like any other
        if not isinstance(value, ModuleType):
            yield name, value
        elif id(value) not in seen and is_project_file(getattr(value, "__file__", None) or ""):
            seen.add(id(value))
            found += [(f"{name}.{inner}", vars(value)[inner]) for inner in names if inner in vars(value)]


def _names_in(code: CodeType) -> Iterator[str]:
    """The names of globals and attributes that a code uses, and those that the functions inside it use."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_in(constant)


def source_fingerprint(*functions: Callable[..., Any], given: Any = ()) -> str | None:
    """Hash the source of functions and of every project function they reach.

    Comments, docstrings, blank lines and positions do not count; names do. Of a workload's builder, its decorator and
    ``claims=`` of ``Computation(...)`` do not count either: they say what is judged, not what runs. A function that
    makes claims counts as any function does. Installed packages are part of the environment, not of the source. What
    builds the subject is among ``functions``: there stand donation, sizes and compiler options. Methods in what it is
    ``given`` count, if they are the project's.

    Returns:
        A hex digest, or ``None`` if the source of one of them cannot be read, or none is the project's.
    """
    if not all(map(is_python, functions)):
        return None
    texts = []
    for function in project_functions(*functions, given):
        text = _normal_source(function)
        if text is None:
            return None
        texts.append(text)
    if not texts:
        return None
    return hashlib.blake2b("\0".join(sorted(texts)).encode(), digest_size=16).hexdigest()


def _normal_source(function: FunctionType) -> str | None:
    # Not what it wraps; and not its code alone, for which ``inspect`` looks at the file of every module that is loaded.
    bare = FunctionType(function.__code__, function.__globals__, closure=function.__closure__)
    try:
        text = textwrap.dedent(inspect.getsource(bare))
    except (OSError, TypeError):
        return None
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return " ".join(text.split())  # a lambda inside a larger statement
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        if isinstance(node, ast.FunctionDef):
            node.decorator_list = [one for one in node.decorator_list if not _adds_a_case(one, function)]
        if isinstance(node, ast.Call) and _meant(node.func, function) is Computation:
            node.keywords = [keyword for keyword in node.keywords if keyword.arg != "claims"]
    return ast.unparse(tree)


def _adds_a_case(decorator: ast.expr, function: FunctionType) -> bool:
    """Whether it is ``workload`` of a family: that gives the builder as it is."""
    called = decorator.func if isinstance(decorator, ast.Call) else None
    if not isinstance(called, ast.Attribute) or called.attr != "workload":
        return False
    return isinstance(_meant(called.value, function), Family)


def _meant(name: ast.expr, function: FunctionType) -> Any:
    return function.__globals__.get(name.id) if isinstance(name, ast.Name) else None
