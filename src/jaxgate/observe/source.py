"""A fingerprint of source text: did somebody change the subject, or what it calls in this project?"""

from __future__ import annotations

import ast
import hashlib
import inspect
import textwrap
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

from jaxgate.observe.lines import is_project_file


def source_fingerprint(*functions: Callable[..., Any]) -> str | None:
    """Hash the source of functions and of every project function they reach by name or closure.

    Comments, docstrings, blank lines and positions do not count; names do. Installed packages are part of
    the environment, not of the source.

    Args:
        functions: The subject, and what builds it: there stand donation, sizes and compiler options.

    Returns:
        A hex digest, or ``None`` if the source of one of them cannot be read, or none is the project's.
    """
    roots = [_plain(function) for function in functions]
    pending = [root for root in roots if root is not None]
    if len(pending) < len(roots):
        return None
    seen, texts = {root.__code__ for root in pending}, []
    while pending:
        current = pending.pop()
        if is_project_file(current.__code__.co_filename):
            text = _normal_source(current)
            if text is None:
                return None
            texts.append(text)
        for called in _reached(current):
            if called.__code__ not in seen and is_project_file(called.__code__.co_filename):
                seen.add(called.__code__)
                pending.append(called)
    if not texts:
        return None
    return hashlib.blake2b("\0".join(sorted(texts)).encode(), digest_size=16).hexdigest()


def _plain(function: Any) -> FunctionType | None:
    """The Python function under decorators, ``partial`` and bound methods."""
    while True:
        if isinstance(function, FunctionType) and not hasattr(function, "__wrapped__"):
            return function
        inner = getattr(function, "__wrapped__", None) or getattr(function, "func", None)
        inner = inner or getattr(function, "__func__", None)
        if inner is None and not isinstance(function, (FunctionType, type)):
            inner = vars(type(function)).get("__call__")
        if inner is None or inner is function:
            return None
        function = inner


def _normal_source(function: FunctionType) -> str | None:
    try:
        text = textwrap.dedent(inspect.getsource(function))
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
    names = set(_names(function.__code__))
    values = [function.__globals__[name] for name in names if name in function.__globals__]
    for cell in function.__closure__ or ():
        try:
            values.append(cell.cell_contents)
        except ValueError:
            continue  # not filled yet
    values += [getattr(value, name) for value in values if inspect.ismodule(value) for name in names & set(vars(value))]
    for value in values:
        if callable(value) and not isinstance(value, type):
            plain = _plain(value)
            if plain is not None:
                yield plain


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
