"""Anybody's function as a case: donation and threading worked out from one line in a test."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MethodType
from typing import Any

import jax

from jaxgate.model import Batch, Case, Claim, Computation, Tolerance
from jaxgate.observe.arguments.carry import Carry, Names, positions_of
from jaxgate.observe.arguments.guests import StaticLeaves, stages_itself, with_owner, without_owner


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

    Args:
        function: Jitted, or a plain function that ``jax.jit`` can trace; any with ``eager`` among the options.
        args: Positional arguments.
        name: Family and sentence.
        kwargs: Keyword arguments.
        donate: Arguments of a plain function to donate, by name or position.
        carry: Arguments that the next step takes from the result; the donated ones by default.
        reference: The naive way to compute the same.
        claims: What must hold on any hardware.
        tolerances: Facts that may move by another amount than the policy says.
        batch: Where the samples are.
        options: Further fields of ``Computation``.

    Raises:
        TypeError: If ``donate`` is given for a function that is jitted already or called as it is, or ``carry``
            besides ``next_args``.
        ValueError: If a name is not an argument.
    """
    if carry is not None and "next_args" in options:
        raise TypeError("expected carry= or next_args=, found both; either says what the next step is called with")
    if stages_itself(function):
        options = {**options, "eager": True}
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
    return Case(
        family=name[0],
        sentence=name[1],
        build=lambda: computation,
        tolerances=tuple(tolerances),
    )


def _without_static(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    reference: Callable[..., Any] | None,
) -> tuple[Callable[..., Any], tuple[Any, ...], Mapping[str, Any], Callable[..., Any] | None]:
    """Give a plain function arrays only: what it belongs to among its arguments, what is no array within it."""
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
