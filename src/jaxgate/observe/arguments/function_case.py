"""Anybody's function as a case: donation and threading worked out from one line in a test.

Libraries are not imported. Leaves that JAX does not take are static, and so are the numbers beside them in an object,
as Equinox treats them; a callable tree is an argument of what it does, since its arrays would be constants otherwise;
and what a library stages in its own way is called as it is.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial, wraps
from types import FunctionType, MethodType
from typing import Any

import jax
import numpy as np

from jaxgate.ext.growth.model import Growth
from jaxgate.model.claim import Claim
from jaxgate.model.computation import MAX_STEPS, Batch, Computation
from jaxgate.model.workload import Case, Tolerance
from jaxgate.observe.arguments.carry import Carry, Names, Requests, positions_of

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
    """A reference that ignores the owner of the subject, which it is called with in front."""

    @wraps(reference)
    def called(_owner: Any, *args: Any, **kwargs: Any) -> Any:
        return reference(*args, **kwargs)

    return called


class StaticLeaves:
    """The leaves of a call that are part of its program."""

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
    """Whether each leaf is static: JAX does not take it, or it is no array and stands beside such a leaf in an object."""
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


def case_of_function(
    function: Callable[..., Any],
    args: Sequence[Any],
    *,
    name: tuple[str, str],
    kwargs: Mapping[str, Any],
    donate: Names | None,
    carry: Names | None,
    reference: Callable[..., Any] | None,
    claims: Sequence[Claim],
    tolerances: Sequence[Tolerance],
    batch: Batch | None,
    options: Mapping[str, Any],
) -> Case:
    """Make a case of a function and its arguments.

    ``name`` is family and sentence; ``options`` are further fields of ``Computation``. The donated arguments are
    carried by default.

    Raises:
        TypeError: If ``donate`` is given for a function that is jitted already or called as it is, or ``carry``
            besides ``next_args``.
        ValueError: If a name is not an argument.
    """
    if carry is not None and "next_args" in options:
        raise TypeError("expected carry= or next_args=, found both; either says what the next step is called with")
    if stages_itself(function):
        options = {**options, "eager": True}
    if (requests := options.get("requests")) is not None:
        options = {name: value for name, value in options.items() if name != "requests"}
        if not options.get("eager") or carry is not None or "next_args" in options:
            raise TypeError(
                "expected eager=True with requests=, and neither carry= nor next_args=: a function that brings each "
                "request into a shape that is compiled"
            )
        options["next_args"] = Requests(args, requests, MAX_STEPS)
    if isinstance(grow := options.get("grow"), Growth):
        options = {**options, "grow": grow.through(partial(_at_size, function, kwargs, donate))}
    if options.get("eager"):
        if donate is not None:
            raise TypeError(
                f"expected no donate= with eager=True, found donate={donate!r}: the function is called as it is, and the "
                "jitted functions that it calls donate themselves; carry= threads the state"
            )
    else:
        function, args, kwargs = unbind(function, args, kwargs)
        if not isinstance(function, jax.stages.Wrapped):
            function, args, kwargs, reference = _without_static(function, args, kwargs, reference)
    if donate is not None and isinstance(function, jax.stages.Wrapped):
        raise TypeError(
            f"expected a plain function with donate={donate!r}, found one that is jitted already; "
            "put donate_argnames into its own jax.jit"
        )
    donated = positions_of(function, args, donate)
    threaded = positions_of(function, args, carry) if carry is not None else donated
    subject = _donating(function, donated) if donated else function
    computation = Computation(
        subject=subject,
        args=tuple(args),
        kwargs=kwargs,
        reference=reference,
        claims=tuple(claims),
        batch=batch,
        **{"next_args": Carry(threaded, required=carry is not None) if threaded else None, **options},
    )
    return Case(family=name[0], sentence=name[1], build=lambda: computation, tolerances=tuple(tolerances))


def _at_size(function: Callable[..., Any], kwargs: Mapping[str, Any], donate: Names | None, made: Any) -> Any:
    """The function with other arguments, made a case as with its own; a function that ``made`` brings stays as it is."""
    if not isinstance(made, (tuple, list)):
        return made
    nothing: Any = {"carry": None, "reference": None, "claims": (), "tolerances": (), "batch": None, "options": {}}
    return case_of_function(function, made, name=("at", "size"), kwargs=kwargs, donate=donate, **nothing).build()


def _without_static(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], reference: Callable[..., Any] | None
) -> tuple[Callable[..., Any], tuple[Any, ...], Mapping[str, Any], Callable[..., Any] | None]:
    """Give a plain function arrays only: its owner becomes an argument, leaves that are no arrays become part of it."""
    owned, args = with_owner(function, args)
    if reference is not None and owned is not function:
        reference = without_owner(reference)
    static = StaticLeaves(args, kwargs)
    if not static:
        return owned, args, kwargs, reference
    args, kwargs = static.arguments()
    return static.around(owned), args, kwargs, reference and static.around(reference)


def _donating(function: Callable[..., Any], donated: tuple[int, ...]) -> Callable[..., Any]:
    """Jit by names, which hold for arguments passed by keyword too; by positions where there are no names."""
    parameters = list(inspect.signature(function).parameters.values())
    named = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    jitted: Callable[..., Any] = (
        jax.jit(function, donate_argnames=tuple(named[place] for place in donated))
        if len(named) == len(parameters)
        else jax.jit(function, donate_argnums=donated)
    )
    vars(jitted)["jitted_by_gate"] = True
    return jitted


def unbind(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
    """Take a bound method or a ``partial`` of a jitted function apart, so that its own donation stays in force."""
    inner: Any = function
    while True:
        if isinstance(inner, MethodType) and isinstance(inner.__func__, jax.stages.Wrapped):
            inner, args = inner.__func__, (inner.__self__, *args)
        elif isinstance(inner, partial) and isinstance(inner.func, (jax.stages.Wrapped, MethodType, partial)):
            inner, args, kwargs = inner.func, (*inner.args, *args), {**inner.keywords, **kwargs}
        else:
            return inner, tuple(args), dict(kwargs)
