"""A fingerprint of source text: did somebody change the subject, or what it calls in this project?"""

from __future__ import annotations

import ast
import hashlib
import inspect
import textwrap
from collections.abc import Callable
from types import FunctionType
from typing import Any

from jaxgate.model import Computation, Family
from jaxgate.observe.trace.project_functions import is_python, project_functions


def source_fingerprint(*functions: Callable[..., Any], given: Any = ()) -> str | None:
    """Hash the source of functions and of every project function they reach.

    Comments, docstrings, blank lines and positions do not count; names do. Of a workload's builder, its decorator and
    ``claims=`` of ``Computation(...)`` do not count either: they say what is judged, not what runs. A function that
    makes claims counts as any function does. Installed packages are part of the environment, not of the source.

    Args:
        functions: The subject, and what builds it: there stand donation, sizes and compiler options.
        given: What the subject is given: methods of models and optimisers, of the project, that are in it count.

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
        if isinstance(node, ast.Call) and _is(node.func, function, Computation):
            node.keywords = [keyword for keyword in node.keywords if keyword.arg != "claims"]
    return ast.unparse(tree)


def _adds_a_case(decorator: ast.expr, function: FunctionType) -> bool:
    """Whether it is ``workload`` of a family: that gives the builder as it is."""
    called = decorator.func if isinstance(decorator, ast.Call) else None
    if not isinstance(called, ast.Attribute) or called.attr != "workload" or not isinstance(called.value, ast.Name):
        return False
    return isinstance(function.__globals__.get(called.value.id), Family)


def _is(called: ast.expr, function: FunctionType, wanted: object) -> bool:
    return isinstance(called, ast.Name) and function.__globals__.get(called.id) is wanted
