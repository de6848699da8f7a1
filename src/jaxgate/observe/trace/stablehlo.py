"""What a StableHLO module holds: operations, captured constants, callbacks, with the lines they come from.

It also says whether work may depend on the values of the arguments: if not, only shapes count.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations
from math import prod
from typing import Any

from jaxgate.model.measurement import BRANCHES, LOOP
from jaxgate.observe.source_lines import at, places, project_line
from jaxgate.observe.trace.fingerprint import is_callback, is_splat

NAMED_CONSTANT_BYTES = 1024
"""Captured constants from this size on are named one by one."""

_HOST_QUEUES = frozenset({"stablehlo.infeed", "stablehlo.outfeed", "stablehlo.recv", "stablehlo.send"})
_NOT_OPERATIONS = frozenset({"stablehlo.return", "stablehlo.constant", "func.return", "func.func", "func.call"})


@dataclass(frozen=True, slots=True)
class Constant:
    """A large captured array."""

    shape: tuple[int, ...]  # its shape
    nbytes: int  # its size
    text: str  # its type, its size and where it is used
    content: bytes | None = None  # hash of its values in row-major order; `None` where they cannot be read


@dataclass(frozen=True, slots=True)
class Structure:
    """What one walk over a module finds."""

    # operations by name and type of the first result, such as `stablehlo.tanh 8x64xf32`. The body of a function counts
    # at each of its calls, as the compiler will see it: releases differ in what they put into functions (0.10.2 makes
    # one of the copies of an unrolled scan's body, 0.12 none).
    operations: Mapping[str, int]
    lines: Mapping[str, str]  # operation to the project lines that it comes from, most of them first
    constant_bytes: int  # bytes of captured arrays (splats excluded: they cost nothing)
    constants: tuple[Constant, ...]  # the large captured arrays
    host_callbacks: int  # calls from the program into Python, and queues that wait for the host


def read_structure(module: Any, *, lines: bool = True) -> Structure:
    """Walk a module as ``lowered.compiler_ir("stablehlo")`` gives it.

    Source ``lines`` explain a difference and cost most of the time.
    """
    bodies: defaultdict[str, Counter[str]] = defaultdict(Counter)
    waiting: Counter[str] = Counter()
    seen: defaultdict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
    constant_bytes = 0
    constants: list[Constant] = []
    callers = _Callers()
    top = (operation.operation for operation in module.body.operations)
    functions = {one.attributes["sym_name"].value: one for one in top if one.name == "func.func"}
    for function, operation in walk(module.operation):
        name = operation.name
        if name == "func.call":
            callers.note(operation, function, lines=lines)
        if name == "stablehlo.constant":
            if not is_splat(operation):
                result = operation.results[0]
                nbytes = _tensor_bytes(str(result.type))
                constant_bytes += nbytes
                if nbytes >= NAMED_CONSTANT_BYTES:
                    text, content = _described(result, nbytes, functions), _content(operation) if lines else None
                    constants.append(Constant(_shape(str(result.type)), nbytes, text, content))
            continue
        if name in _NOT_OPERATIONS:
            continue
        label = _label(operation)
        bodies[function][label] += 1
        waiting[function] += name in _HOST_QUEUES or is_callback(operation)
        if lines:
            seen[label][project_line(str(operation.location)) or function, function] += 1
    operations: Counter[str] = Counter()
    for function, body in bodies.items():
        times = callers.times(function)
        operations.update({label: count * times for label, count in body.items()})
    return Structure(
        operations=dict(sorted(operations.items())),
        lines={name: text for name, found in seen.items() if (text := places(callers.lines(found)))},
        constant_bytes=constant_bytes,
        constants=tuple(constants),
        host_callbacks=sum(count * callers.times(function) for function, count in waiting.items()),
    )


def _label(operation: Any) -> str:
    target = f" @{operation.attributes['call_target_name'].value}" if operation.name == "stablehlo.custom_call" else ""
    result = next((_inside(str(value.type)) for value in operation.results), "")
    return f"{operation.name}{target}{' ' if result else ''}{result}"


def _inside(tensor: str) -> str:
    """``tensor<4x8xf32, #layout>`` as ``4x8xf32``."""
    return tensor.removeprefix("tensor<").removesuffix(">").partition(",")[0]


def walk(operation: Any, function: str = "") -> Iterator[tuple[str, Any]]:
    """Every operation, with the function that it stands in: ``@main``."""
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield function, inner.operation
                if inner.operation.name == "func.func":
                    yield from walk(inner.operation, f"@{inner.operation.attributes['sym_name'].value}")
                else:
                    yield from walk(inner.operation, function)


class _Callers:
    """Where functions are called from: JAX leaves no line on what its own helpers, such as ``argsort``, are made of."""

    def __init__(self) -> None:
        self._calls: defaultdict[str, list[str]] = defaultdict(list)
        self._callers: defaultdict[str, list[str]] = defaultdict(list)
        self._times: dict[str, int] = {}

    def note(self, call: Any, function: str, *, lines: bool) -> None:
        """Note one call, by its line, or by the function that makes it where it has none."""
        callee = f"@{call.attributes['callee'].value}"
        self._callers[callee].append(function)
        if lines:
            self._calls[callee].append(project_line(str(call.location)) or function)

    def times(self, function: str) -> int:
        """How often the body of a function stands in the program once calls are replaced by what they call.

        One that nothing calls counts once: it is the program itself, or is named in another way than by a call.
        """
        if function not in self._times:
            self._times[function] = sum(self.times(caller) for caller in self._callers[function]) or 1
        return self._times[function]

    def lines(self, found: Counter[tuple[str, str]]) -> Iterator[str]:
        """The lines of operations, the most frequent first, as often as the function that each stands in is called.

        ``found`` counts lines, or functions that stand for where they are called, by the function that they are in.
        """
        total: Counter[str] = Counter()
        for (where, function), count in found.items():
            total[where] += count * self.times(function)
        for where, _ in total.most_common():
            yield from self._resolved(where, frozenset())

    def _resolved(self, where: str, passed: frozenset[str]) -> Iterator[str]:
        if not where.startswith("@"):
            yield where
        elif where not in passed:
            for caller in self._calls[where]:
                yield from self._resolved(caller, passed | {where})


def _tensor_bytes(tensor: str) -> int:
    """Size of ``tensor<4x8xf32>``; sub-byte elements count one byte."""
    element = _inside(tensor).removesuffix(">").replace("complex", "c").split("x")[-1]
    bits = int((re.findall(r"\d+", element) or ["8"])[0]) * (2 if element.startswith("c") else 1)
    return max(bits // 8, 1) * prod(_shape(tensor))


def _content(constant: Any) -> bytes | None:
    try:
        return content_hash(memoryview(constant.attributes["value"]).tobytes())
    except (TypeError, ValueError, BufferError):
        return None  # bfloat16, resources: the bindings have no buffer for them


def content_hash(values: bytes) -> bytes:
    """Hash the values of an array, in row-major order."""
    return hashlib.blake2b(values, digest_size=16).digest()


def _shape(tensor: str) -> tuple[int, ...]:
    return tuple(int(extent) for extent in _inside(tensor).replace("complex", "c").split("x")[:-1])


def _described(result: Any, nbytes: int, functions: Mapping[str, Any]) -> str:
    tensor = str(result.type).removeprefix("tensor<").removesuffix(">")
    found = _user(result, functions)
    return f"{tensor} ({nbytes:,} bytes)" + (f" used by {found[0].name}{at(found[1])}" if found else "")


def _user(value: Any, functions: Mapping[str, Any]) -> tuple[Any, str] | None:
    """The first operation that uses a value, and its line; a loop or a function that is given it is looked into.

    What stands in JAX's own helpers, such as ``where``, has no line of the project; then it is that of the call.
    """
    given = None
    for use in value.uses:
        owner = use.owner.operation if hasattr(use.owner, "operation") else use.owner
        line = project_line(str(owner.location))
        block = None
        if owner.name == LOOP:
            block = owner.regions[1].blocks[0]
        elif owner.name == "func.call":
            block = functions[owner.attributes["callee"].value].regions[0].blocks[0]
        if block is not None and (found := _user(block.arguments[use.operand_number], functions)):
            return found[0], found[1] or line
        if owner.name not in ("stablehlo.return", "func.return"):
            given = given or (owner, line)
    return given


_DEPENDENT = frozenset(
    {
        *BRANCHES, "stablehlo.infeed", "stablehlo.outfeed", "stablehlo.recv", "stablehlo.send",
        "stablehlo.set_dimension_size", "stablehlo.sort", "chlo.ragged_dot", "chlo.top_k",
    }
)  # fmt: skip
"""Operations that branch or wait, have sizes known at run time, compare until all is in order, or take rows by another array."""
_SLICES = frozenset({"stablehlo.dynamic_slice", "stablehlo.dynamic_update_slice"})
"""Operations that are dynamic only in where they begin; of all other dynamic ones, values decide the size."""
_DIALECTS = ("builtin", "chlo", "func", "sdy", "stablehlo")
_PLACEMENT = re.compile(r"Sharding|SPMD\w+|annotate_device_placement|LayoutConstraint|mhlo\.erf")
"""Custom calls without work of their own, or with one step for each number. Solvers of LAPACK may iterate."""


def value_dependent(module: Any) -> tuple[str, ...]:
    """Name the operations of a module whose work may depend on values; a loop of constant length does not.

    What is not known to be independent is dependent. That denormal numbers, and indices far apart in memory, take some
    processors longer is not counted as work.
    """
    return tuple(sorted({name for _, operation in walk(module.operation) if (name := _dependent(operation))}))


def undecided(module: Any) -> tuple[int, int]:
    """Count the loops of a module whose length does not stand in it, and its conditions."""
    names = Counter(_dependent(operation) for _, operation in walk(module.operation))
    return names[LOOP], sum(names[name] for name in BRANCHES)


def _dependent(operation: Any) -> str:
    name = str(operation.name)
    if name == LOOP:
        return "" if _has_constant_length(operation) else name
    if name == "stablehlo.custom_call":
        target = operation.attributes["call_target_name"].value
        return "" if _PLACEMENT.fullmatch(target) else f"{name} @{target}"
    dialect, _, kind = name.partition(".")
    dynamic = kind.startswith(("dynamic_", "real_dynamic_")) and name not in _SLICES
    return name if dialect not in _DIALECTS or name in _DEPENDENT or dynamic else ""


def _has_constant_length(loop: Any) -> bool:
    """Whether a loop counts from a constant, by a constant, up to a constant, as ``scan`` and ``fori_loop`` do."""
    condition = loop.regions[0].blocks[0]
    (decision,) = _last(condition).operands
    test = _operation(decision)
    if test is None or test.name != "stablehlo.compare":
        return False
    places = {argument: place for place, argument in enumerate(condition.arguments)}
    counters = [places[side] for side in test.operands if side in places]
    bounds = [side for side in test.operands if side not in places]
    return bool(counters) and all(map(_is_constant, bounds)) and all(_is_counted(loop, place) for place in counters)


def _is_counted(loop: Any, place: int) -> bool:
    """Whether what a loop carries at a place starts at a constant, and stays as it is or moves by a constant at each turn."""
    body = loop.regions[1].blocks[0]
    inside, following = body.arguments[place], _last(body).operands[place]
    if not _is_constant(loop.operands[place]):
        return False
    step = _operation(following)
    if following == inside or step is None:
        return bool(following == inside)
    if step.name == "stablehlo.add":
        return any(one == inside and _is_constant(other) for one, other in permutations(step.operands))
    first, *rest = step.operands
    return step.name == "stablehlo.subtract" and first == inside and all(map(_is_constant, rest))


def _last(block: Any) -> Any:
    return block.operations[len(block.operations) - 1].operation


def _operation(value: Any) -> Any:
    """What makes a value; ``None`` of an argument of a block."""
    return getattr(value.owner, "operation", value.owner if hasattr(value.owner, "name") else None)


def _is_constant(value: Any) -> bool:
    made_by = _operation(value)
    return made_by is not None and made_by.name == "stablehlo.constant"
