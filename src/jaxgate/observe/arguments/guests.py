"""Functions and arguments of other people's libraries, as ``jax.jit`` takes them; none of these libraries is imported.

Leaves that JAX does not take are static, and so are the numbers beside them in an object, as Equinox treats them; a callable
tree is an argument of what it does, since its arrays would be constants otherwise; and what a library stages in its own way
is called as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from types import FunctionType
from typing import Any

import jax
import numpy as np

_JITTED = type(jax.jit(lambda: None))
_NUMBERS = (bool, int, float, complex)
_DEPTH = 8
"""Wrappers that are looked through."""


def stages_itself(function: Any) -> bool:
    """Whether a library lowers a function in its own way: ``eqx.filter_jit``, ``nnx.jit``, a method under them."""
    for _ in range(_DEPTH):
        if isinstance(function, (_JITTED, FunctionType)):
            return False
        if callable(getattr(type(function), "lower", None)):
            return True
        function = getattr(function, "__func__", None) or getattr(function, "func", None)
    return False


def with_owner(function: Any, args: Sequence[Any]) -> tuple[Any, tuple[Any, ...]]:
    """Make a tree of arrays that is called, or whose method is, the first argument."""
    if isinstance(function, (_JITTED, FunctionType)):
        return function, tuple(args)
    owner, method = getattr(function, "__self__", None), getattr(function, "__func__", None)
    if isinstance(method, FunctionType) and _is_tree_of_arrays(owner):
        return method, (owner, *args)
    call = getattr(type(function), "__call__", None)  # noqa: B004 - the function itself is wanted
    if isinstance(call, FunctionType) and _is_tree_of_arrays(function):
        return call, (function, *args)
    return function, tuple(args)


def without_owner(reference: Callable[..., Any]) -> Callable[..., Any]:
    """A reference that is called with an owner of the subject in front, which it does not take."""

    @wraps(reference)
    def called(_owner: Any, *args: Any, **kwargs: Any) -> Any:
        return reference(*args, **kwargs)

    return called


class StaticLeaves:
    """The leaves of a call that are part of its program.

    Args:
        args: Positional arguments.
        kwargs: Keyword arguments.
    """

    def __init__(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        self._leaves, self._tree = jax.tree.flatten((tuple(args), dict(kwargs)))
        self._static = list(_are_static((tuple(args), dict(kwargs))))

    def __bool__(self) -> bool:
        """Whether there are any."""
        return any(self._static)

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The call with ``None`` in their places, which JAX passes over."""
        kept = [None if static else leaf for leaf, static in zip(self._leaves, self._static, strict=True)]
        args, kwargs = jax.tree.unflatten(self._tree, kept)
        return args, kwargs

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function of the other leaves; what it gives has ``None`` in the places of such leaves, too."""

        @wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            dynamic = iter(jax.tree.leaves((args, kwargs)))
            whole = [leaf if static else next(dynamic) for leaf, static in zip(self._leaves, self._static, strict=True)]
            args, kwargs = jax.tree.unflatten(self._tree, whole)
            output = function(*args, **kwargs)
            _refuse_changed((args, kwargs), output)
            return _stripped(output)

        vars(called)["given"] = jax.tree.unflatten(self._tree, self._leaves)  # its methods are part of the source
        return called


def _refuse_changed(given: Any, output: Any) -> None:
    """Refuse a number or text within a model that a call changes: the program would keep the one that it was traced with.

    Raises:
        TypeError: Names its path and both values.
    """
    results = {jax.tree.structure(node): node for node in _nodes(output)}
    for node in _nodes(given):
        same = results.get(jax.tree.structure(node))
        if same is None:
            continue
        leaves = zip(jax.tree_util.tree_leaves_with_path(node), jax.tree.leaves(same), strict=True)
        for (path, before), after in leaves:
            if isinstance(before, (*_NUMBERS, str)) and not _is_array(after) and before != after:
                raise TypeError(
                    f"expected static leaves that a call leaves as they are, found {type(node).__name__}"
                    f"{jax.tree_util.keystr(path)} {before!r} → {after!r}: make it an array, or gate the function under "
                    "eqx.filter_jit, which traces again for each value"
                )


def _stripped(output: Any) -> Any:
    leaves, tree = jax.tree.flatten(output)
    return jax.tree.unflatten(
        tree, [None if static else leaf for leaf, static in zip(leaves, _are_static(output), strict=True)]
    )


def _are_static(tree: Any) -> Iterator[bool]:
    """Of each leaf whether it is static: what JAX does not take, and what stands beside that in an object and is no array."""
    for node in jax.tree.leaves(tree, is_leaf=_is_custom):
        leaves = jax.tree.leaves(node)
        foreign = not all(_is_array(leaf) or isinstance(leaf, _NUMBERS) for leaf in leaves)
        for leaf in leaves:
            yield not _is_array(leaf) and (foreign or not isinstance(leaf, _NUMBERS))


def _nodes(tree: Any) -> Iterator[Any]:
    """The nodes of somebody's own classes, outermost first."""
    for node in jax.tree.leaves(tree, is_leaf=_is_custom):
        if _is_custom(node):
            yield node
            children = jax.tree.leaves(node, is_leaf=lambda inner, node=node: inner is not node)
            yield from _nodes(children)


def _is_custom(node: Any) -> bool:
    return not isinstance(node, (tuple, list, dict, type(None))) and not jax.tree_util.all_leaves([node])


def _is_tree_of_arrays(value: Any) -> bool:
    return _is_custom(value) and any(map(_is_array, jax.tree.leaves(value)))


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, (jax.Array, np.ndarray, np.generic)) or (hasattr(leaf, "shape") and hasattr(leaf, "dtype"))
