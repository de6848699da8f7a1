"""How often loops turn whose length the inputs decide, and which branches are taken: a copy of the program counts it.

A ``scan``, and a ``fori_loop`` between constants, stand in a program with their length; a ``while_loop`` does not say its own. The
copy is made of the program's own equations, with a counter for each such loop and for each branch of a ``cond``; it is compiled, and
called once with the arguments of the case. A program without such a loop costs nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate, chain
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxgate.observe.arguments.signature import short
from jaxgate.observe.arguments.static import given_leaves
from jaxgate.observe.jax_extend import jax_extend
from jaxgate.observe.machine.environment import fingerprint
from jaxgate.observe.observation import CompiledSubject
from jaxgate.observe.tools import Tools
from jaxgate.observe.trace.jaxpr_cost import INLINED, bodies
from jaxgate.observe.trace.jaxpr_items import line_of
from jaxgate.observe.trace.stablehlo import undecided

_CALLED = INLINED | {"remat2"}
"""Primitives that run their body once."""
_LOOP = "while"
_UNDECIDED = (_LOOP, "cond")
_COPIED = _CALLED | {*_UNDECIDED, "scan", "custom_linear_solve"}
"""Primitives whose bodies are copied; loops in the body of another primitive are not counted."""


@dataclass(frozen=True, slots=True)
class Turns:
    """What the loops and conditions of a program do for its arguments."""

    # turns of each loop and runs of each branch, in one call, by the largest array that it carries or gives
    counts: Mapping[str, int] = field(default_factory=dict)
    lines: Mapping[str, str] = field(default_factory=dict)  # source lines of these loops and branches
    why_not: str = ""  # why nothing is known; empty if it is

    @property
    def total(self) -> int | None:
        """Turns of all loops together; 0 for a program whose text says all lengths."""
        return None if self.why_not else sum(count for name, count in self.counts.items() if name.startswith(_LOOP))

    @property
    def unknown(self) -> dict[str, str]:
        """The fact, where it is not known, with the reason."""
        return {"loop_turns": self.why_not} if self.why_not else {}


def count_turns(compiled: CompiledSubject, tools: Tools) -> Turns:
    """Count what one call of a program does for its arguments, of which nothing is donated for it."""
    program, lowered = compiled.program, compiled.lowered
    loops, _ = undecided(lowered.stage.compiler_ir("stablehlo"))
    if not loops:
        return Turns()
    if compiled.processes > 1:
        return Turns(why_not="it runs in several processes")
    if program.structure.host_callbacks and not program.work.only_raises(program.structure.host_callbacks):
        return Turns(why_not="counting them would call its Python once more")
    body = lowered.traced.jaxpr
    found = list({id(one): one for one in _undecided(body.jaxpr)}.values())
    named = _names(found)
    lines = {name: line for one, names in zip(found, named, strict=True) for name in names if (line := line_of(one))}
    key = fingerprint("turns", lowered.fingerprint, compiled.inputs, compiled.surroundings)
    known = tools.store.load(key)
    if known is not None:
        return Turns(counts=known[0], lines=lines)
    tools.progress("counting turns of loops")
    places = dict(zip(map(id, found), accumulate(map(len, named), initial=0), strict=False))
    leaves = given_leaves(lowered.stage, compiled.call)

    def copied(*leaves: Any, flat: bool) -> Any:
        nothing = jnp.zeros(sum(map(len, named)), jnp.int32)
        counts, results = _Copy(places, flat=flat).run(body.jaxpr, body.consts, nothing, leaves)
        return (counts, results) if flat else counts

    try:
        left = jax.jit(partial(copied, flat=True), keep_unused=True).lower(*leaves)
        if any(undecided(left.compiler_ir("stablehlo"))):
            return Turns(why_not="a loop or a branch in a shard_map, in a kernel, or of JAX's own is not counted")
        counted = jax.device_get(jax.jit(partial(copied, flat=False))(*leaves))
    except Exception as error:  # noqa: BLE001 - whatever a copy that nobody wrote runs into, the program itself has run
        return Turns(why_not=f"the copy that counts them fails: {str(error).partition(chr(10))[0][:200]}")
    counts = dict(zip(chain(*named), map(int, counted), strict=True))
    tools.store.save(key, counts, [])
    return Turns(counts=counts, lines=lines)


def _undecided(body: Any) -> Iterator[Any]:
    """The loops of any length and the conditions in what is copied; one that stands twice comes twice."""
    for equation in body.eqns:
        if equation.primitive.name in _UNDECIDED:
            yield equation
        for inner in _copied(equation):
            yield from _undecided(inner)


def _copied(equation: Any) -> Iterator[Any]:
    """The bodies of an equation that are copied with it."""
    name, params = equation.primitive.name, equation.params
    if name == "custom_linear_solve":
        yield params["jaxprs"].solve.jaxpr
    elif name == _LOOP:  # its test is asked once more than it turns
        yield params["body_jaxpr"].jaxpr
    elif name in _COPIED:
        yield from (getattr(one, "jaxpr", one) for one in bodies(params))


def _names(equations: Sequence[Any]) -> list[list[str]]:
    """Names of the counters of each: the largest array that it carries or gives, with a number where two are the same."""
    seen: Counter[str] = Counter()
    names = []
    for equation in equations:
        avals = [variable.aval for variable in equation.outvars]
        largest = short(max(avals, key=lambda aval: prod(aval.shape))) if avals else "nothing"
        name = f"{equation.primitive.name} {largest}"
        seen[name] += 1
        name += f" #{seen[name]}" if seen[name] > 1 else ""
        branches = len(equation.params.get("branches", ()))
        names.append([f"{name} branch {place}" for place in range(branches)] if branches else [name])
    return names


class _Copy:
    """Runs the equations of a body, and counts on the way.

    ``places`` has the first counter of an equation by its identity. If it is ``flat``, a loop runs its body once and a
    condition all its branches: what still loops is not copied.
    """

    def __init__(self, places: Mapping[int, int], *, flat: bool) -> None:
        self._places, self._flat = places, flat
        self._counted: dict[int, bool] = {}

    def run(self, body: Any, consts: Sequence[Any], counts: Any, given: Sequence[Any]) -> tuple[Any, list[Any]]:
        """Run a body; gives the counters after it, and its results."""
        known = dict(zip((*body.constvars, *body.invars), (*consts, *given), strict=True))

        def read(atom: Any) -> Any:
            return atom.val if isinstance(atom, jax_extend().core.Literal) else known[atom]

        for equation in body.eqns:
            values = [read(atom) for atom in equation.invars]
            if self._counts(equation):
                counts, results = self._counting(equation, counts, values)
            else:
                results = _as_it_is(body, equation, values)
            known.update(zip(equation.outvars, results, strict=True))
        return counts, [read(atom) for atom in body.outvars]

    def _counts(self, equation: Any) -> bool:
        """Whether there is anything to count in an equation."""
        if id(equation) not in self._counted:
            inner = any(self._counts(one) for body in _copied(equation) for one in body.eqns)
            self._counted[id(equation)] = inner or id(equation) in self._places
        return self._counted[id(equation)]

    def _counting(self, equation: Any, counts: Any, values: Sequence[Any]) -> tuple[Any, list[Any]]:
        name, params = equation.primitive.name, equation.params
        if name == _LOOP:
            return self._while(params, self._places[id(equation)], counts, values)
        if name == "scan":
            return self._scan(equation, counts, values)
        if name == "cond":
            branches = [self._branch(one) for one in params["branches"]]
            if self._flat:
                first, *_ = [branch(counts, *values[1:]) for branch in branches]
                return _pair(first)
            chosen = jnp.clip(jnp.int32(values[0]), 0, len(branches) - 1)
            counts = counts.at[self._places[id(equation)] + chosen].add(1)
            return _pair(lax.switch(chosen, branches, counts, *values[1:]))
        if name == "custom_linear_solve":
            # Its operands are constants of four functions, of which the third solves, and what is solved for.
            before = sum(params["const_lengths"][:2])
            own = values[before : before + params["const_lengths"][2]]
            return self._closed(params["jaxprs"].solve, counts, (*own, *values[sum(params["const_lengths"]) :]))
        return self._closed(next(bodies(params)), counts, values)

    def _closed(self, body: Any, counts: Any, values: Sequence[Any]) -> tuple[Any, list[Any]]:
        return self.run(getattr(body, "jaxpr", body), getattr(body, "consts", ()), counts, values)

    def _branch(self, body: Any) -> Callable[..., Any]:
        return lambda counts, *values: self._closed(body, counts, values)

    def _while(
        self, params: Mapping[str, Any], place: int, counts: Any, values: Sequence[Any]
    ) -> tuple[Any, list[Any]]:
        tests, constants = params["cond_nconsts"], params["body_nconsts"]
        asked, own, carried = values[:tests], values[tests : tests + constants], values[tests + constants :]
        if self._flat:
            jax_extend().core.jaxpr_as_fun(params["cond_jaxpr"])(*asked, *carried)
            return self._closed(params["body_jaxpr"], counts, (*own, *carried))

        def goes_on(state: tuple[Any, list[Any]]) -> Any:
            (result,) = jax_extend().core.jaxpr_as_fun(params["cond_jaxpr"])(*asked, *state[1])
            return jnp.any(result)  # under vmap it goes on until all are done

        def turn(state: tuple[Any, list[Any]]) -> tuple[Any, list[Any]]:
            (going,) = jax_extend().core.jaxpr_as_fun(params["cond_jaxpr"])(*asked, *state[1])
            counts, found = self._closed(params["body_jaxpr"], state[0].at[place].add(1), (*own, *state[1]))
            if not going.ndim:
                return counts, found
            kept = [
                jnp.where(going.reshape(going.shape + (1,) * (new.ndim - going.ndim)), new, old)
                for new, old in zip(found, state[1], strict=True)
            ]
            return counts, kept

        return _pair(lax.while_loop(goes_on, turn, (counts, list(carried))))

    def _scan(self, equation: Any, counts: Any, values: Sequence[Any]) -> tuple[Any, list[Any]]:
        params, body = equation.params, equation.params["jaxpr"].jaxpr
        # Releases call the three kinds of operands by other names; what is taken apart or put together has a dimension more.
        sliced = sum(_ranks(equation.invars, body.invars))
        carries = len(body.outvars) - sum(_ranks(equation.outvars, body.outvars))
        consts = len(values) - sliced - carries
        own, carried, each = values[:consts], values[consts : consts + carries], values[consts + carries :]

        def turn(state: tuple[Any, list[Any]], given: list[Any]) -> Any:
            counts, found = self._closed(params["jaxpr"], state[0], (*own, *state[1], *given))
            return (counts, found[:carries]), found[carries:]

        (counts, last), results = lax.scan(
            turn, (counts, list(carried)), list(each), length=params["length"], reverse=params["reverse"]
        )
        return counts, [*last, *results]


def _ranks(outside: Sequence[Any], inside: Sequence[Any]) -> list[int]:
    """How many dimensions each has more outside."""
    return [len(one.aval.shape) - len(other.aval.shape) for one, other in zip(outside, inside, strict=True)]


def _pair(found: Any) -> tuple[Any, list[Any]]:
    counts, results = found
    return counts, list(results)


def _as_it_is(body: Any, equation: Any, values: Sequence[Any]) -> list[Any]:
    """The results of one equation of a body: it is run as a program of its own."""
    core = jax_extend().core
    pairs = zip(equation.invars, values, strict=True)
    given = {atom: value for atom, value in pairs if not isinstance(atom, core.Literal)}
    named = [variable for variable in equation.outvars if type(variable).__name__ != "DropVar"]
    alone = body.replace(constvars=[], invars=list(given), outvars=named, eqns=[equation], effects=equation.effects)
    found = dict(zip(named, core.jaxpr_as_fun(core.ClosedJaxpr(alone, ()))(*given.values()), strict=True))
    return [found.get(variable) for variable in equation.outvars]
