"""Jitted functions: made of plain ones with the donation that programs in them ask for, and found in what a plain one calls."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType, MethodType
from typing import Any, cast

import jax

from jaxgate.model.measurement import MAX_NAMED
from jaxgate.model.words import shortlist
from jaxgate.observe.compat import source_of_jitted
from jaxgate.observe.errors import guarded
from jaxgate.observe.jax_extend import jax_extend
from jaxgate.observe.source_lines import at, is_project_file, short_path
from jaxgate.observe.trace.misses import Miss, listen_to_misses
from jaxgate.observe.trace.source import reachable


def as_jitted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Put a plain function under ``jax.jit``; leave a jitted one as its author made it."""
    jitted: Callable[..., Any] = function if isinstance(function, jax.stages.Wrapped) else jax.jit(function)
    return jitted


def is_plain(function: Any) -> bool:
    """Whether a function is not staged yet: results of ``jax.jit`` and ``jax.pmap`` have a ``lower``."""
    return not callable(getattr(function, "lower", None))


def is_jitted(function: Any) -> bool:
    """Whether a function comes jitted, and not by the gate, which marks what it jits to donate."""
    return not is_plain(function) and not getattr(function, "jitted_by_gate", False)


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
    """The project's jitted functions that a function can reach, the nearest first, each with the code that it compiles."""
    owner = function.__self__ if isinstance(function, MethodType) else None  # of whatever author
    for value in reachable([function, *filter(callable, getattr(owner, "__dict__", {}).values())]):
        code = getattr(inspect.unwrap(value), "__code__", None) if isinstance(value, jax.stages.Wrapped) else None
        if code is not None and is_project_file(code.co_filename):
            yield value, code


@dataclass(frozen=True, slots=True)
class Enclosed:
    """What a plain function calls besides operations of JAX."""

    names: tuple[str, ...] = ()  # the project's jitted functions that it calls, each once
    whole: bool = False  # whether one of them takes all its arguments, gives all its results, and nothing else is done
    # that one itself, where it is found, takes the arguments as they are, and its results are given as they are
    only: Callable[..., Any] | None = None
    sources: tuple[tuple[str, str, int], ...] = ()  # name, file and line of each of these
    donated: frozenset[int] = frozenset()  # places, among the leaves of the arguments, of those that it donates

    @property
    def unseen(self) -> str:
        """What is not seen where the plain function is gated as one program; empty if nothing is."""
        if not self.names or self.only is not None:
            return ""
        calls = f"calls jitted {shortlist([f'{name}()' for name in self.names], MAX_NAMED)}"
        if self.whole:
            return f"{calls}: gated without the Python around it, whose time and retraces are not seen: eager=True"
        return (
            f"{calls}: gated as one program; what Python does between them, retraces and donation of the inner ones are "
            "not seen: eager=True, or jax.jit it as the loop does"
        )


def find_enclosed(
    function: Callable[..., Any], traced: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Enclosed:
    """Find the project's jitted functions at the top of a plain function that was traced with these arguments.

    Helpers of JAX and of other libraries are jitted too; nobody's loop is written around those. Of what ``pmap`` gives,
    which calls one program of its own, only the donation is read: under ``jax.jit`` it would be lost.
    """
    if isinstance(function, jax.stages.Wrapped):
        return Enclosed()
    body = traced.jaxpr.jaxpr
    if not is_plain(function):
        return Enclosed(donated=_donated(body))
    called = ((equation, source_of_jitted(equation)) for equation in body.eqns)
    own = [(equation, source) for equation, source in called if source is not None and is_project_file(source[1])]
    names = tuple(dict.fromkeys(name for _, (name, _, _) in own))
    sources = tuple(dict.fromkeys(source for _, source in own))
    if len(own) != 1 or len(body.eqns) != 1:
        return Enclosed(names, sources=sources)
    ((equation, source),) = own
    given = {variable for variable in equation.invars if not isinstance(variable, jax_extend().core.Literal)}
    constants = any(isinstance(result, jax_extend().core.Literal) for result in body.outvars)
    if constants or set(body.outvars) != set(equation.outvars) or not set(body.invars) <= given:
        return Enclosed(names, sources=sources)
    as_it_is = equation.invars == body.invars and equation.outvars == body.outvars
    results, program = jax.tree.structure(traced.out_info), equation.params["jaxpr"]
    only = _taking(function, program, source, args, kwargs, results=results) if as_it_is else None
    return Enclosed(names, whole=True, only=only, sources=sources, donated=_donated(body))


def _donated(body: Any) -> frozenset[int]:
    """The places of those arguments of a body that a program in it takes the buffers of."""
    donated = {
        id(variable)
        for equation in body.eqns
        for variable, given in zip(equation.invars, equation.params.get("donated_invars", ()), strict=False)
        if given
    }
    return frozenset(place for place, variable in enumerate(body.invars) if id(variable) in donated)


def _taking(
    function: Any,
    program: Any,
    source: tuple[str, str, int],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    results: Any,
) -> Callable[..., Any] | None:
    """The function object that gives this very program for the same arguments, and this tree of results.

    JAX has the program from the call within. A function that is made anew at each call is not found, and its loop
    traces each time.
    """
    for candidate, code in jitted_functions(function):
        if (code.co_name, code.co_filename, code.co_firstlineno) != source:
            continue
        try:
            traced = candidate.trace(*args, **kwargs)
        except Exception:  # noqa: BLE001, S112 - it takes other arguments than the function around it
            continue
        if traced.jaxpr is program and jax.tree.structure(traced.out_info) == results:
            return cast("Callable[..., Any]", candidate)
    return None


def find_remade(
    function: Callable[..., Any], enclosed: Enclosed, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[str, ...]:
    """The project's jitted functions that a plain one, traced once more, traces anew: ``jax.jit`` makes them at each call.

    Where all that it calls are found by name they are made once, and nothing is traced.
    """
    known = {(code.co_name, code.co_filename, code.co_firstlineno) for _, code in jitted_functions(function)}
    if known.issuperset(enclosed.sources):
        return ()
    heard: list[Miss] = []

    def again(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    with listen_to_misses(heard.append), guarded("tracing the subject once more"):
        jax.make_jaxpr(again)(*args, **kwargs)
    anew = (miss for miss in heard if miss.kind == "new" and miss.function in enclosed.names)
    return tuple(dict.fromkeys(f"{miss.function}{at(miss.defined)}" for miss in anew))
