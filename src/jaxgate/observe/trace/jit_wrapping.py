"""A plain function under ``jax.jit``, with the donation that programs in it ask for: inlining would drop that."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import jax

from jaxgate.observe.errors import guarded


def as_jitted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Put a plain function under ``jax.jit``; leave a jitted one as its author made it."""
    jitted: Callable[..., Any] = function if isinstance(function, jax.stages.Wrapped) else jax.jit(function)
    return jitted


def with_own_donation(
    function: Any, jitted: Any, args: Sequence[Any], kwargs: Mapping[str, Any], role: str
) -> Callable[..., Any]:
    """Donate under ``jax.jit`` what ``pmap`` donates: it gives a plain function, and inlining drops what it asks for."""
    if jitted is function or is_plain(function):
        return cast("Callable[..., Any]", jitted)
    with guarded(f"tracing the {role}"):
        body = jitted.trace(*args, **kwargs).jaxpr.jaxpr
    donated = {
        id(variable)
        for equation in body.eqns
        for variable, given in zip(equation.invars, equation.params.get("donated_invars", ()), strict=False)
        if given
    }
    places = frozenset(place for place, variable in enumerate(body.invars) if id(variable) in donated)
    own = donating(function, args, kwargs, places)
    if own is None:
        return cast("Callable[..., Any]", jitted)
    if role == "subject":
        jax.clear_caches()  # its trace would be that of a cache
    return own


def is_plain(function: Any) -> bool:
    """Whether a function is not staged yet: results of ``jax.jit`` and ``jax.pmap`` have a ``lower``."""
    return not callable(getattr(function, "lower", None))


def donating(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], places: frozenset[int]
) -> Callable[..., Any] | None:
    """A plain function under ``jax.jit``, with the donation of leaves; ``None`` if these make up no whole arguments."""
    owners: list[int | str] = [position for position, arg in enumerate(args) for _ in jax.tree.leaves(arg)]
    owners += [name for name in sorted(kwargs) for _ in jax.tree.leaves(kwargs[name])]
    kept = {owner for place, owner in enumerate(owners) if place not in places}
    donated = {owners[place] for place in places if place < len(owners)}
    if not donated or donated & kept:
        return None
    positions = tuple(sorted(owner for owner in donated if isinstance(owner, int)))
    named = tuple(sorted(owner for owner in donated if isinstance(owner, str)))
    return cast("Callable[..., Any]", jax.jit(function, donate_argnums=positions, donate_argnames=named))
