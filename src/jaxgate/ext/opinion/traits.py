"""How a StableHLO module may be checked: what it would cost the interpreter, and how exact its floats and sums can be."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf, prod
from typing import Any

_UNKNOWN_TO_INTERPRETER = frozenset(
    {
        "stablehlo.fft", "stablehlo.infeed", "stablehlo.outfeed", "stablehlo.recv", "stablehlo.send", "stablehlo.rng",
        "stablehlo.rng_bit_generator", "sdy.manual_computation", "stablehlo.all_gather", "stablehlo.all_reduce",
        "stablehlo.all_to_all", "stablehlo.collective_permute", "stablehlo.partition_id", "stablehlo.reduce_scatter",
        "stablehlo.replica_id",
    }
)  # fmt: skip
"""Most of them end its process. Collectives run only where several programs are given to it."""
_CALLS = {"func.call": "callee", "stablehlo.composite": "decomposition"}
"""Operations that stand for a function, with the attribute that names it."""
_REPEATED = {
    "stablehlo.reduce": 3.0, "stablehlo.reduce_window": 3.0, "stablehlo.scatter": 3.0, "stablehlo.select_and_scatter": 3.0,
    "stablehlo.sort": 30.0,
}  # fmt: skip
"""Operations whose region runs for each operand, or for each number of a window: as many steps for each, measured."""
_CHLO_STEPS = 50
"""Operations that one of ``chlo``, such as ``erf_inv``, becomes."""
_PRODUCTS = frozenset({"stablehlo.dot_general", "stablehlo.convolution"})
_FLOAT = re.compile(r"bf16|f[468]E\dM\d|f16|f32|f64")
"""In the text of a type, such as ``tensor<2x3xbf16>`` or ``tensor<4xcomplex<f32>>``."""
_EPS = {"f64": 2.0**-52, "f32": 2.0**-23, "f16": 2.0**-10, "bf16": 2.0**-7}
"""The distance from 1 to the next number."""
_PRODUCT_EPS = 2.0**-7
"""Away from CPUs a product of float32 may be made of bfloat16, unless HIGHEST is asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramTraits:
    """What one walk over a module finds."""

    cost: float  # steps that the interpreter would take; infinite where a loop has no constant length
    unknown: str  # what the interpreter does not know, by name; empty if it knows all of it
    eps: float  # distance from 1 to the next number, of the coarsest float anywhere in it; 0 without floats
    longest_sum: int  # numbers that go into the longest sum


def read_traits(module: Any, platform: str) -> ProgramTraits:
    """Walk a module, as ``lowered.compiler_ir("stablehlo")`` or ``interpreter.parse`` gives it.

    The platform decides how exact a product is.
    """
    functions = {
        _word(found.attributes["sym_name"]): found
        for found in module.body.operations
        if found.operation.name == "func.func"
    }
    walk = _Walk(functions)
    cost = walk.of_function("main")
    # f8E4M3 has three bits behind the point
    eps = max((_EPS[name] if name in _EPS else 2.0 ** -int(name[-1]) for name in walk.floats), default=0.0)
    if platform != "cpu" and walk.loose_products and eps:
        eps = max(eps, _PRODUCT_EPS)
    return ProgramTraits(
        cost=cost, unknown=", ".join(sorted(walk.unknown)), eps=max([eps, *walk.reduced]), longest_sum=walk.longest_sum
    )


@dataclass(slots=True)
class _Walk:
    """Adds up a module, each function once."""

    functions: Mapping[str, Any]  # all of them, by name
    known: dict[str, float] = field(default_factory=dict)  # the cost of those that were walked
    unknown: set[str] = field(default_factory=set)
    floats: set[str] = field(default_factory=set)  # float types of all values
    # distances from 1 to the next number that `reduce_precision` leaves
    reduced: list[float] = field(default_factory=list)
    loose_products: bool = False  # whether there is a product that may be rounded more than its type
    longest_sum: int = 1

    def of_function(self, name: str) -> float:
        if name not in self.known:
            self.known[name] = inf  # one that calls itself
            self.known[name] = self._of_regions(self.functions[name].regions) if name in self.functions else inf
        return self.known[name]

    def _of_regions(self, regions: Iterable[Any]) -> float:
        total = 0.0
        for region in regions:
            for block in region.blocks:
                for argument in block.arguments:
                    self.floats |= set(_FLOAT.findall(str(argument.type)))
                total += sum(self._of_operation(found.operation) for found in block.operations)
        return total

    def _of_operation(self, operation: Any) -> float:
        name = operation.name
        results = sum(_size(value) for value in operation.results)
        self.floats |= {found for value in operation.results for found in _FLOAT.findall(str(value.type))}
        if name in _CALLS:
            return self.of_function(_word(operation.attributes[_CALLS[name]])) + results
        inside = self._of_regions(operation.regions)
        if name == "stablehlo.while":
            return inside * (_trips(operation) + 1)
        if name in _PRODUCTS:
            length = _length_of_product(operation)
            self._note_product(operation, length)
            return 2.0 * results * length
        if name in _REPEATED:
            self._note_sum(operation, results)
            operands = sum(_size(value) for value in operation.operands)
            return _REPEATED[name] * (results * _window(operation) if name == "stablehlo.reduce_window" else operands)
        if name in _UNKNOWN_TO_INTERPRETER or name == "stablehlo.custom_call":
            self._note_unknown(operation)
        if name == "stablehlo.reduce_precision":
            self.reduced.append(2.0 ** -int(operation.attributes["mantissa_bits"]))
        return results * (_CHLO_STEPS if name.startswith("chlo.") else 1) + inside

    def _note_sum(self, operation: Any, results: int) -> None:
        """Note the length of a sum; all updates of a scatter may go to one place."""
        if operation.name == "stablehlo.reduce":
            length = _size(operation.operands[0]) // max(1, results // len(operation.results))
        elif operation.name == "stablehlo.reduce_window":
            length = _window(operation)
        elif operation.name == "stablehlo.scatter":
            length = _size(operation.operands[len(operation.operands) - 1])
        else:
            return
        self.longest_sum = max(self.longest_sum, length)

    def _note_unknown(self, operation: Any) -> None:
        target = (
            f" @{_word(operation.attributes['call_target_name'])}" if "call_target_name" in operation.attributes else ""
        )
        self.unknown.add(f"{operation.name}{target}")

    def _note_product(self, operation: Any, length: int) -> None:
        self.longest_sum = max(self.longest_sum, length)
        precision = str(operation.attributes["precision_config"]) if "precision_config" in operation.attributes else ""
        loose = all("f32" in str(value.type) for value in list(operation.operands)[:2])
        self.loose_products |= loose and "HIGHEST" not in precision


def _word(attribute: Any) -> str:
    return str(attribute).strip('@"')


def _shape(value: Any) -> tuple[int, ...]:
    return tuple(getattr(value.type, "shape", ()))


def _size(value: Any) -> int:
    return prod(_shape(value))


def _length_of_product(operation: Any) -> int:
    """Numbers that go into each number of a product."""
    if operation.name == "stablehlo.convolution":
        kernel = _shape(operation.operands[1])
        found = re.search(r"x\[([^\]]*)\]->", str(operation.attributes["dimension_numbers"]))
        places = [place.strip() for place in found[1].split(",")] if found else []
        outputs = kernel[places.index("o")] if "o" in places else 1
        return max(1, prod(kernel) // max(1, outputs))
    found = re.search(r"lhs_contracting_dimensions = \[([^\]]*)\]", str(operation.attributes["dot_dimension_numbers"]))
    left = _shape(operation.operands[0])
    return prod(left[int(place)] for place in found[1].split(",")) if found else 1


def _window(operation: Any) -> int:
    return prod(operation.attributes["window_dimensions"])


def _trips(loop: Any) -> float:
    """How often a loop that counts up by one to a constant runs; infinite for any other."""
    condition, body = (region.blocks[0] for region in loop.regions)
    (decision,) = _last(condition).operands
    test = _made_by(decision)
    if test is None or test.name != "stablehlo.compare" or "LT" not in str(test.attributes["comparison_direction"]):
        return inf
    counter, bound = test.operands
    carried = list(condition.arguments)
    if counter not in carried:
        return inf
    place = carried.index(counter)
    start, end = _constant(loop.operands[place]), _constant(bound)
    if end is None and bound in carried:  # handed on as it is
        other = carried.index(bound)
        unchanged = _last(body).operands[other] == body.arguments[other]
        end = _constant(loop.operands[other]) if unchanged else None
    step = _made_by(_last(body).operands[place])
    if start is None or end is None or step is None or step.name != "stablehlo.add":
        return inf
    steps = [_constant(value) for value in step.operands if value != body.arguments[place]]
    return max(0.0, float(end - start)) if steps == [1] else inf


def _constant(value: Any) -> int | None:
    """The number of a scalar constant."""
    operation = _made_by(value)
    if operation is None or operation.name != "stablehlo.constant":
        return None
    found = re.fullmatch(r"dense<(-?\d+)> : tensor<u?i\d+>", str(operation.attributes["value"]))
    return int(found[1]) if found else None


def _made_by(value: Any) -> Any:
    """The operation that makes a value; ``None`` of an argument of a block."""
    return getattr(value.owner, "operation", value.owner if hasattr(value.owner, "name") else None)


def _last(block: Any) -> Any:
    return block.operations[len(block.operations) - 1].operation
