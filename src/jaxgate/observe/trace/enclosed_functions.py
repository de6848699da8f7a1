"""Jitted functions that a plain one calls: its caller's loop runs them and Python, not one program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax

from jaxgate.model import MAX_NAMED, shortlist
from jaxgate.observe.compat import source_of_jitted
from jaxgate.observe.jax_extend import jax_extend
from jaxgate.observe.source_lines import is_project_file
from jaxgate.observe.trace.jitted_functions import jitted_functions


@dataclass(frozen=True, slots=True)
class Enclosed:
    """What a plain function calls besides operations of JAX.

    Attributes:
        names: The project's jitted functions that it calls, each once.
        whole: Whether one of them takes all its arguments, gives all its results, and nothing else is done.
        only: That one itself, where it is found, takes the arguments as they are, and its results are given as they are.
        donated: Places, among the leaves of the arguments, of those that it donates.
    """

    names: tuple[str, ...] = ()
    whole: bool = False
    only: Callable[..., Any] | None = None
    donated: frozenset[int] = frozenset()

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

    Helpers of JAX and of other libraries are jitted too; nobody's loop is written around those.
    """
    body = traced.jaxpr.jaxpr
    sources = [(equation, source) for equation in body.eqns if (source := source_of_jitted(equation)) is not None]
    own = [(equation, source) for equation, source in sources if is_project_file(source[1])]
    names = tuple(dict.fromkeys(name for _, (name, _, _) in own))
    if len(own) != 1 or len(body.eqns) != 1:
        return Enclosed(names)
    ((equation, source),) = own
    constants = any(isinstance(result, jax_extend().core.Literal) for result in body.outvars)
    if constants or set(body.outvars) != set(equation.outvars) or not set(body.invars) <= _variables(equation):
        return Enclosed(names)
    given = zip(equation.invars, equation.params["donated_invars"], strict=True)
    donated = {id(variable) for variable, is_donated in given if is_donated}
    places = frozenset(place for place, variable in enumerate(body.invars) if id(variable) in donated)
    as_it_is = equation.invars == body.invars and equation.outvars == body.outvars
    found = _taking(
        function, equation.params["jaxpr"], source, args, kwargs, results=jax.tree.structure(traced.out_info)
    )
    return Enclosed(names, whole=True, only=next(found, None) if as_it_is else None, donated=places)


def _variables(equation: Any) -> set[Any]:
    return {variable for variable in equation.invars if not isinstance(variable, jax_extend().core.Literal)}


def _taking(
    function: Any,
    program: Any,
    source: tuple[str, str, int],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    results: Any,
) -> Iterator[Callable[..., Any]]:
    """The function objects that give this very program for the same arguments, and this tree of results.

    JAX has the program from the call within.

    One that is made anew at each call is not to be found, and its loop traces at each call.
    """
    for candidate, code in jitted_functions(function):
        if (code.co_name, code.co_filename, code.co_firstlineno) != source:
            continue
        try:
            traced = candidate.trace(*args, **kwargs)
        except Exception:  # noqa: BLE001, S112 - it takes other arguments than the function around it
            continue
        if traced.jaxpr is program and jax.tree.structure(traced.out_info) == results:
            yield candidate
