"""A fingerprint of source text: did somebody change the subject, or what it calls in this project?"""

from __future__ import annotations

import ast
import hashlib
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any

from jaxgate.observe.source_lines import is_project_file


def source_fingerprint(*functions: Callable[..., Any], classes: Iterable[type] = ()) -> str | None:
    """Hash the source of functions and of every project function they reach by name or closure.

    Comments, docstrings, blank lines and positions do not count; names do. Installed packages are part of
    the environment, not of the source.

    Args:
        functions: The subject, and what builds it: there stand donation, sizes and compiler options.
        classes: Of the objects that the subject is given: those of the project.

    Returns:
        A hex digest, or ``None`` if the source of one of them cannot be read, or none is the project's.
    """
    if not all(any(_functions(function)) for function in functions):
        return None
    texts = []
    for function in project_functions(*functions, *classes):
        text = _normal_source(function)
        if text is None:
            return None
        texts.append(text)
    if not texts:
        return None
    return hashlib.blake2b("\0".join(sorted(texts)).encode(), digest_size=16).hexdigest()


def project_functions(*functions: Callable[..., Any]) -> Iterator[FunctionType]:
    """The project's own among some functions and all that these reach by name or closure, each once."""
    pending = [function for root in functions for function in _functions(root)]
    seen = {function.__code__ for function in pending}
    while pending:
        current = pending.pop()
        if is_project_file(current.__code__.co_filename):
            yield current
        for called in _reached(current):
            if called.__code__ not in seen and is_project_file(called.__code__.co_filename):
                seen.add(called.__code__)
                pending.append(called)


def _functions(value: Any, depth: int = 4) -> Iterator[FunctionType]:  # noqa: C901, PLR0912 - one branch for each kind of value
    """The Python functions that a value may call: under decorators and ``partial``, in classes and containers."""
    if depth == 0:
        return
    inner: list[Any] = []
    if isinstance(value, FunctionType):
        yield value
        inner = list(vars(value).values())  # ``__wrapped__``
    elif isinstance(value, (list, tuple)):
        inner = list(value)
    elif isinstance(value, dict):
        inner = list(value.values())
    elif isinstance(value, partial):
        inner = [value.func, *value.args, *value.keywords.values()]
    elif isinstance(value, MethodType):
        inner = [value.__func__, value.__self__]
    elif isinstance(value, (staticmethod, classmethod)):
        inner = [value.__func__]
    elif isinstance(value, property):
        inner = [value.fget]
    elif isinstance(value, type):
        if _is_project_class(value):
            inner = [member for base in value.__mro__ if _is_project_class(base) for member in vars(base).values()]
    elif _is_project_class(type(value)):
        inner = [type(value), *getattr(value, "__dict__", {}).values()]
    elif callable(value):
        inner = list(getattr(value, "__dict__", {}).values())  # ``jit`` and ``custom_vjp`` keep their functions there
    for item in inner:
        containers = (list, tuple, dict, staticmethod, classmethod, property)
        if callable(item) or isinstance(item, containers) or _is_project_class(type(item)):
            yield from _functions(item, depth - 1)


def _is_project_class(cls: type) -> bool:
    module = sys.modules.get(cls.__module__)
    codes = [member.__code__ for member in vars(cls).values() if isinstance(member, FunctionType)]
    file = codes[0].co_filename if codes else getattr(module, "__file__", None)
    return file is not None and is_project_file(file)


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
    return ast.unparse(tree)


def _reached(function: FunctionType) -> Iterator[FunctionType]:
    """Functions that a function can call: by the names in its code, and through its closure."""
    names = set(names_in(function.__code__))
    values = [function.__globals__[name] for name in names if name in function.__globals__]
    for cell in function.__closure__ or ():
        try:
            values.append(cell.cell_contents)
        except ValueError:
            continue  # not filled yet
    seen: set[int] = set()
    for value in values:  # grows: a module of a package is a value like any other
        if inspect.ismodule(value):
            if id(value) not in seen and is_project_file(getattr(value, "__file__", None) or ""):
                seen.add(id(value))
                values += [getattr(value, name) for name in names & set(vars(value))]
        else:
            yield from _functions(value)


def names_in(code: CodeType) -> Iterator[str]:
    """The names of globals and attributes that a code uses, and those that the functions inside it use."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from names_in(constant)
