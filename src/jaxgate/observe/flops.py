"""Matrix-multiplication FLOPs of a traced function, counted by hand.

XLA's own count takes the body of a loop once; here a scan counts as often as it runs. Like the compiler,
the count leaves out dead code and counts a common subexpression once, so that it moves when work moves and
not when a line is written twice. A ``while`` with an unknown trip count counts once: a lower bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import jax
from jax.extend import core as jex_core
from jax.extend import source_info_util

from jaxgate.observe.lines import is_project_file, short_path

_INLINED = frozenset({"jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call"})


@dataclass(frozen=True, slots=True)
class Matmuls:
    """Matrix multiplications of one call.

    Attributes:
        flops: Two per multiply-add, in total.
        counts: How often each pair of operand shapes is multiplied.
        lines: Operand shapes to the source line of one such multiplication.
    """

    flops: int
    counts: Mapping[str, int]
    lines: Mapping[str, str]


@dataclass(slots=True)
class _Node:
    """One equation after numbering: what it reads and what it multiplies."""

    reads: tuple[int, ...]
    work: Counter[tuple[str, int]] = field(default_factory=Counter)


def count_matmuls(jaxpr: Any) -> Matmuls:
    """Count the multiplications of a ``ClosedJaxpr`` (``jax.stages.Traced.jaxpr``)."""
    lines: dict[str, str] = {}
    work = _Scope(lines).run(jaxpr.jaxpr)
    counts: Counter[str] = Counter()
    for (shapes, _), times in work.items():
        counts[shapes] += times
    return Matmuls(flops=_flops(work), counts=dict(sorted(counts.items())), lines=lines)


class _Scope:
    """One body: values are numbered, equal equations share their numbers (value numbering)."""

    def __init__(self, lines: dict[str, str]) -> None:
        self.lines = lines
        self.nodes: list[_Node] = []
        self.made_by: dict[int, int] = {}  # value number -> index of its node
        self.known: dict[Any, tuple[int, ...]] = {}
        self.effects: list[int] = []
        self._next = 0

    def run(self, jaxpr: Any) -> Counter[tuple[str, int]]:
        """Number a whole body and add up what its outputs need."""
        outputs = self.number(jaxpr, self.fresh(len(jaxpr.constvars)), self.fresh(len(jaxpr.invars)))
        needed = [self.made_by[value] for value in outputs if value in self.made_by] + self.effects
        total: Counter[tuple[str, int]] = Counter()
        seen: set[int] = set()
        while needed:
            index = needed.pop()
            if index in seen:
                continue
            seen.add(index)
            total.update(self.nodes[index].work)
            needed += [self.made_by[value] for value in self.nodes[index].reads if value in self.made_by]
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
            if not isinstance(atom, jex_core.Literal):
                return values[atom]
            key = ("literal", str(atom.aval), id(atom.val) if atom.aval.shape else str(atom.val))
            if key not in self.known:
                self.known[key] = self.fresh(1)
            return self.known[key][0]

        for equation in jaxpr.eqns:
            reads = tuple(read(atom) for atom in equation.invars)
            inner = _inlined(equation)
            if inner is not None:
                results: Sequence[int] = self.number(inner, self.fresh(len(inner.constvars)), reads)
            else:
                results = self._equation(equation, reads)
            values.update(zip(equation.outvars, results, strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def _equation(self, equation: Any, reads: tuple[int, ...]) -> tuple[int, ...]:
        nested = tuple(jex_core.jaxprs_in_params(equation.params))
        key = None if nested or equation.effects else (equation.primitive, reads, str(equation.params))
        if key is not None and key in self.known:
            return self.known[key]
        results = self.fresh(len(equation.outvars))
        node = _Node(reads=reads, work=self._work(equation))
        self.nodes.append(node)
        self.made_by.update(dict.fromkeys(results, len(self.nodes) - 1))
        if equation.effects:
            self.effects.append(len(self.nodes) - 1)
        if key is not None:
            self.known[key] = results
        return results

    def _work(self, equation: Any) -> Counter[tuple[str, int]]:
        name, params = equation.primitive.name, equation.params
        if name in ("dot_general", "conv_general_dilated"):
            flops = _dot_flops(equation) if name == "dot_general" else _conv_flops(equation)
            shapes = " x ".join(_short(atom.aval) for atom in equation.invars[:2])
            self.lines.setdefault(shapes, _line(equation))
            return Counter({(shapes, flops): 1})
        total: Counter[tuple[str, int]] = Counter()
        if name == "cond":
            branches = [self._inner(branch) for branch in params["branches"]]
            return max(branches, key=_flops)
        times = _times(name, params)
        for body in _bodies(params):
            for item, count in self._inner(body).items():
                total[item] += count * times
        return total

    def _inner(self, body: Any) -> Counter[tuple[str, int]]:
        return _Scope(self.lines).run(getattr(body, "jaxpr", body))


def _times(name: str, params: Mapping[str, Any]) -> int:
    """How often one call runs the body: per step of a scan, per device of a shard map, per block of a kernel."""
    if name == "scan":
        return int(params["length"])
    if name == "shard_map":
        return prod(params["mesh"].shape[axis] for axis in params["newly_manual_axes"])
    if name == "pallas_call":
        grid = params["grid_mapping"].grid
        return prod(grid) if all(isinstance(extent, int) for extent in grid) else 1
    return 1


def _flops(work: Mapping[tuple[str, int], int]) -> int:
    return sum(flops * times for (_, flops), times in work.items())


def _inlined(equation: Any) -> Any | None:
    """The body of a call that the compiler inlines, or nothing."""
    if equation.primitive.name not in _INLINED:
        return None
    body = equation.params.get("jaxpr", equation.params.get("call_jaxpr"))
    return getattr(body, "jaxpr", body)


def _bodies(params: Mapping[str, Any]) -> Iterator[Any]:
    for value in params.values():
        for item in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(item, (jex_core.Jaxpr, jex_core.ClosedJaxpr)):
                yield item


def _dot_flops(equation: Any) -> int:
    (contract, _), _batch = equation.params["dimension_numbers"]
    depth = prod(equation.invars[0].aval.shape[axis] for axis in contract)
    return int(2 * depth * prod(equation.outvars[0].aval.shape))


def _conv_flops(equation: Any) -> int:
    kernel = equation.invars[1].aval.shape
    features = kernel[equation.params["dimension_numbers"].rhs_spec[0]]
    return int(2 * prod(equation.outvars[0].aval.shape) * prod(kernel) // features)


def _short(aval: Any) -> str:
    return f"{jax.numpy.dtype(aval.dtype).name}[{','.join(map(str, aval.shape))}]"


def _line(equation: Any) -> str:
    """Where the equation was written; JAX already skips its own frames."""
    text = source_info_util.summarize(equation.source_info)
    file, _, rest = text.partition(":")
    return f"{short_path(file)}:{rest.split(' ')[0].split(':')[0]}" if is_project_file(file) else ""
