"""The work of a traced function, counted by hand: matrix products, communication, widening.

XLA's own counts take the body of a loop once; here a scan counts as often as it runs. Like the compiler,
the count leaves out dead code and counts a common subexpression once, so that it moves when work moves and
not when a line is written twice. A ``while`` with an unknown trip count counts once: a lower bound.

Communication is what the program asks for itself, before a compiler combines it; what a partitioner adds is read from
the optimised program (``observe.hlo.collectives``).
"""

from __future__ import annotations

import inspect
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import prod
from typing import Any, NamedTuple

from jaxgate.model.measurement import EACH_TURN, MAX_NAMED
from jaxgate.observe.arguments.signature import short
from jaxgate.observe.jax_extend import jax_extend
from jaxgate.observe.machine.environment import libraries_of
from jaxgate.observe.source_lines import at, is_project_file, places, short_path
from jaxgate.observe.trace.jaxpr_items import (
    CALLBACK,
    COLLECTIVE,
    ERROR_CHECK,
    MAIN_MEMORY,
    MATMUL,
    RANDOM,
    WIDENING,
    Item,
    items_of,
    line_of,
    nbytes_of,
)

_MANY, _SOME = 100, 20
"""Equations in vain from which they are named, and those of a kind whose lines are looked up."""
INLINED = frozenset({"jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call"})
"""Primitives whose body stands in the program as if it were written there."""


_Work = Counter[Item]
"""How often each kind of work is done."""


@dataclass(frozen=True, slots=True)
class Work:
    """What one call does."""

    matmul_flops: int  # two per multiply-add, on all devices together
    matmuls: Mapping[str, int]  # how often each pair of operand shapes is multiplied
    collectives: Mapping[str, int]  # how often each collective operation runs that the function itself asks for
    collective_bytes: int  # what these hand over, on one device
    widened: Mapping[str, int]  # how often each array is made wider: from bfloat16 to float32, from float32 to float64
    widened_bytes: int  # size of the widened arrays, on one device
    random_bits: int  # random bits that it draws, on all devices together
    drawn: tuple[str, ...]  # how often it draws each array of them, with the source lines
    unmatched: tuple[str, ...]  # names that a policy of `jax.checkpoint` says and no array has
    block_bytes: int  # the most that one kernel of Pallas holds at once: blocks of its arrays, and what it works in
    blocks: str  # what that kernel holds, with its name and source line; empty if there is no kernel
    callbacks: Mapping[str, int]  # how often it calls each Python function
    equations: int  # that tracing wrote, dead ones and equal ones too; the body of a loop once
    libraries: Mapping[str, str]  # packages that some of them come from, with their versions
    thrown_away: str  # equations that nothing needs, or that stand there already, where they are most of all
    lines: Mapping[str, str]  # any label above to the source lines of such operations

    def only_raises(self, host_callbacks: int) -> bool:
        """Whether all calls into Python, of which the program has so many, do nothing but raise."""
        checks = sum(count for label, count in self.callbacks.items() if label.startswith(ERROR_CHECK))
        return 0 < host_callbacks <= checks == sum(self.callbacks.values())

    @property
    def callback_lines(self) -> tuple[str, ...]:
        """The Python functions that it calls, with the source lines that ask for it."""
        return tuple(f"{name}{at(self.lines.get(name, ''))}" for name in self.callbacks)


class _Node(NamedTuple):
    """One equation after numbering: what it reads and what work it does."""

    equation: Any
    reads: tuple[int, ...]
    work: _Work


@dataclass(slots=True)
class _Traced:
    """What tracing wrote, of all bodies together."""

    lines: defaultdict[str, list[str]]  # of each label
    equations: list[Any] = field(default_factory=list)
    in_vain: list[Any] = field(default_factory=list)  # equations that nothing needs, or that stand there already
    within: list[Any] = field(default_factory=list)  # those whose bodies are looked at, the innermost last

    def line_of(self, equation: Any) -> str:
        """The line of the project that asks for an equation: JAX does not know it of the body of a function that it jits itself."""
        return next(filter(None, map(line_of, (equation, *reversed(self.within)))), "")

    def thrown_away(self) -> str:
        """The kinds of equations that were written in vain, each with the lines of some; empty where they are few."""
        if len(self.in_vain) < _MANY or 2 * len(self.in_vain) < len(self.equations):
            return ""
        kinds: defaultdict[str, list[Any]] = defaultdict(list)
        for equation in self.in_vain:
            kinds[equation.primitive.name].append(equation)
        most = sorted(kinds.items(), key=lambda kind: -len(kind[1]))[:MAX_NAMED]
        named = (f"{len(some):,} × {name}{at(places(map(line_of, some[:_SOME])))}" for name, some in most)
        return f"traced and thrown away: {', '.join(named)}"


def count_work(jaxpr: Any) -> Work:
    """Count the work of a ``ClosedJaxpr`` (``jax.stages.Traced.jaxpr``)."""
    traced = _Traced(defaultdict(list))
    work, lines = _Scope(traced).run(jaxpr.jaxpr), traced.lines
    lines.update({label: lines[label.removesuffix(EACH_TURN)] for _, label, _ in work})
    drawn = _labels(work, RANDOM)
    block_bytes, blocks = _blocks(traced.equations)
    return Work(
        matmul_flops=_amount(work, MATMUL),
        matmuls=_labels(work, MATMUL),
        collectives=_labels(work, COLLECTIVE),
        collective_bytes=_amount(work, COLLECTIVE),
        widened=_labels(work, WIDENING),
        widened_bytes=_amount(work, WIDENING),
        random_bits=_amount(work, RANDOM),
        drawn=tuple(f"{count} × {label}{at(places(lines[label]))}" for label, count in drawn.items()),
        unmatched=_unmatched(traced.equations),
        block_bytes=block_bytes,
        blocks=blocks,
        callbacks=_labels(work, CALLBACK),
        equations=len(traced.equations),
        libraries=libraries_of(traced.equations),
        thrown_away=traced.thrown_away(),
        lines={label: text for label, found in lines.items() if (text := places(found))},
    )


def _unmatched(equations: Sequence[Any]) -> tuple[str, ...]:
    """Names that policies of ``jax.checkpoint`` say, and that ``checkpoint_name`` gives to no array."""
    given = {equation.params["name"] for equation in equations if equation.primitive.name == "name"}
    policies = {id(one): one for one in (equation.params.get("policy") for equation in equations) if callable(one)}
    return tuple(sorted({name for one in policies.values() for name in _names_of(one)} - given))


def _blocks(equations: Sequence[Any]) -> tuple[int, str]:
    """The kernel of Pallas that holds most at once: how many bytes, and of which arrays; not what stays in the main memory."""
    most, found = 0, ""
    for equation in equations:
        if equation.primitive.name == "pallas_call":
            kernel = equation.params["jaxpr"]
            avals = [variable.aval for variable in kernel.invars]
            held = [aval for aval in avals if str(getattr(aval, "memory_space", None)) not in MAIN_MEMORY]
            if (nbytes := sum(map(nbytes_of, held))) > most:
                most, found = nbytes, f"{', '.join(map(short, held))} in {_kernel_name(kernel)}"
    return most, found


def _kernel_name(kernel: Any) -> str:
    """The function of a kernel, with its line."""
    name, _, place = str(getattr(kernel.debug_info, "func_src_info", None) or "a kernel").partition(" at ")
    file, _, line = place.rpartition(":")
    return f"{name}{at(f'{short_path(file)}:{line}' if is_project_file(file) else '')}"


def _names_of(policy: Any) -> Iterator[str]:
    """The strings that a policy of JAX's own holds, and those of the ones that it asks; what another's strings mean nobody knows."""
    if not str(getattr(policy, "__module__", "")).startswith("jax."):
        return
    held = inspect.getclosurevars(policy).nonlocals if inspect.isfunction(policy) else getattr(policy, "__dict__", {})
    for value in held.values():
        if isinstance(value, (set, frozenset, tuple, list)):
            yield from (name for name in value if isinstance(name, str))
        elif callable(value):
            yield from _names_of(value)


def _labels(work: _Work, kind: str) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for item, times in work.items():
        if item.kind == kind:
            counts[item.label] += times
    return dict(sorted(counts.items()))


def _amount(work: _Work, kind: str) -> int:
    return sum(item.amount * times for item, times in work.items() if item.kind == kind)


class _Scope:
    """One body: values are numbered, equal equations share their numbers (value numbering)."""

    def __init__(self, traced: _Traced) -> None:
        self.traced = traced
        self.nodes: list[_Node] = []
        self.made_by: dict[int, int] = {}  # value number -> index of its node
        self.known: dict[Any, tuple[int, ...]] = {}
        self.effects: list[int] = []
        self._next = 0

    def run(self, jaxpr: Any) -> _Work:
        """Number a whole body and add up what its outputs need."""
        outputs = self.number(jaxpr, self.fresh(len(jaxpr.constvars)), self.fresh(len(jaxpr.invars)))
        needed = [self.made_by[value] for value in outputs if value in self.made_by] + self.effects
        total: _Work = Counter()
        seen: set[int] = set()
        while needed:
            index = needed.pop()
            if index in seen:
                continue
            seen.add(index)
            total.update(self.nodes[index].work)
            needed += [self.made_by[value] for value in self.nodes[index].reads if value in self.made_by]
        self.traced.in_vain += [node.equation for index, node in enumerate(self.nodes) if index not in seen]
        return total

    def fresh(self, count: int) -> tuple[int, ...]:
        """Numbers that no value has yet."""
        first = self._next
        self._next += count
        return tuple(range(first, first + count))

    def number(self, jaxpr: Any, consts: Sequence[int], arguments: Sequence[int]) -> list[int]:
        """Number the equations of a body whose inputs have these numbers; return the outputs' numbers."""
        values: dict[Any, int] = dict(zip(jaxpr.constvars, consts, strict=True))
        values.update(zip(jaxpr.invars, arguments, strict=True))

        def read(atom: Any) -> int:
            if not isinstance(atom, jax_extend().core.Literal):
                return values[atom]
            key = ("literal", str(atom.aval), id(atom.val) if atom.aval.shape else str(atom.val))
            if key not in self.known:
                self.known[key] = self.fresh(1)
            return self.known[key][0]

        for equation in jaxpr.eqns:
            reads = tuple(read(atom) for atom in equation.invars)
            if equation.primitive.name in INLINED:
                inner = _opened(next(bodies(equation.params)))
                self.traced.within.append(equation)
                results: Sequence[int] = self.number(inner, self.fresh(len(inner.constvars)), reads)
                self.traced.within.pop()
            else:
                results = self._equation(equation, reads)
            values.update(zip(equation.outvars, results, strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def _equation(self, equation: Any, reads: tuple[int, ...]) -> tuple[int, ...]:
        self.traced.equations.append(equation)
        nested = tuple(jax_extend().core.jaxprs_in_params(equation.params))
        effects = _lasting(equation)
        key = None if nested or effects else (equation.primitive, reads, str(equation.params))
        if key is not None and key in self.known:
            self.traced.in_vain.append(equation)
            return self.known[key]
        results = self.fresh(len(equation.outvars))
        self.nodes.append(_Node(equation, reads, self._work(equation)))
        self.made_by.update(dict.fromkeys(results, len(self.nodes) - 1))
        if effects:
            self.effects.append(len(self.nodes) - 1)
        if key is not None:
            self.known[key] = results
        return results

    def _work(self, equation: Any) -> _Work:
        name, params = equation.primitive.name, equation.params
        if name == "cond":
            return _of_branches([_Scope(self.traced).run(_opened(branch)) for branch in params["branches"]])
        total: _Work = Counter()
        inner = [_Scope(self.traced).run(_opened(body)) for body in bodies(params)]
        for item, count in chain.from_iterable(work.items() for work in inner):
            total[_in_loop(item) if name == "while" else item] += count * _times(name, params, item.kind)
        for item in () if inner else items_of(equation):
            total[item] += 1
            self.traced.lines[item.label].append(self.traced.line_of(equation))
        return total


def _in_loop(item: Item) -> Item:
    """What a loop of unknown length does in one turn: its label says so, and keeps it apart from what is counted in full."""
    if item.kind == CALLBACK or item.label.endswith(EACH_TURN):
        return item
    return item._replace(label=f"{item.label}{EACH_TURN}")


def _lasting(equation: Any) -> bool:
    """Whether an equation does more than give results: a collective only says which mesh axis it needs.

    Nothing reads such a mark after tracing: compilers drop and merge collectives like any other operation (seen on
    both JAX lines: two equal ``psum`` are one all-reduce, one whose result nobody reads is none).
    """
    return any(type(effect).__name__ != "NamedAxisEffect" for effect in equation.effects)


def _of_branches(branches: Sequence[_Work]) -> _Work:
    """Products of the branch with most of them; all else of every branch.

    The branch with the products is seldom the one that sends or widens, and what no count has can grow unseen. The
    optimised program counts every branch too.
    """
    most = max(branches, key=lambda work: _amount(work, MATMUL))
    total: _Work = Counter()
    for work in branches:
        total.update({item: times for item, times in work.items() if item.kind != MATMUL or work is most})
    return total


def _times(name: str, params: Mapping[str, Any], kind: str) -> int:
    """How often one call runs the body: per step of a scan, per device of a shard map, per block of a kernel."""
    if name == "scan":
        return int(params["length"])
    if name == "shard_map" and kind in (MATMUL, RANDOM):
        return prod(params["mesh"].shape[axis] for axis in params["newly_manual_axes"])
    if name == "pallas_call":
        grid = params["grid_mapping"].grid
        return prod(grid) if all(isinstance(extent, int) for extent in grid) else 1
    return 1


def _opened(body: Any) -> Any:
    return getattr(body, "jaxpr", body)


def bodies(params: Mapping[str, Any]) -> Iterator[Any]:
    """The bodies among the parameters of an equation, in their order."""
    for value in params.values():
        for item in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(item, (jax_extend().core.Jaxpr, jax_extend().core.ClosedJaxpr)):
                yield item
