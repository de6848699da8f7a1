"""The structure of a StableHLO module: a fingerprint, operation counts and captured constants, in one walk.

The fingerprint hashes the graph of values, not the text: names of functions and helpers, source locations
and the order of independent lines do not reach it. It is of its own kind: never compare it with a hash of
``as_text()`` or of an exported module.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jaxgate.observe.lines import project_line

LARGE_CONSTANT_BYTES = 64 * 1024
"""Captured constants from this size on are named one by one."""

_NOT_OPERATIONS = frozenset({"stablehlo.return", "stablehlo.constant", "func.return", "func.func", "func.call"})
_CALLBACK = re.compile(r"callback", re.IGNORECASE)
_SYMBOL = re.compile(r'@(?:"([^"]+)"|([\w.$-]+))')
_NAMES_ONLY = frozenset({"sym_name", "sym_visibility", "jax.result_info"})


@dataclass(frozen=True, slots=True)
class Structure:
    """What one walk over a module finds.

    Attributes:
        fingerprint: Hex digest of the value graph.
        operations: Operations by name, function bodies counted once.
        operation_lines: Operation to the project line that most of them come from.
        constant_bytes: Bytes of captured arrays (splats excluded: they cost nothing).
        constants: One line per large captured array.
        host_callbacks: Calls from the program into Python.
    """

    fingerprint: str
    operations: Mapping[str, int]
    operation_lines: Mapping[str, str]
    constant_bytes: int
    constants: tuple[str, ...]
    host_callbacks: int


def read_structure(module: Any) -> Structure:
    """Walk a module as ``lowered.compiler_ir("stablehlo")`` gives it.

    Args:
        module: A ``jaxlib.mlir.ir.Module``.
    """
    walk = _Walk(module)
    fingerprint = walk.module_digest().hex()
    lines = {name: seen.most_common(1)[0][0] for name, seen in walk.lines.items() if seen}
    return Structure(
        fingerprint=fingerprint,
        operations=dict(sorted(walk.operations.items())),
        operation_lines=lines,
        constant_bytes=walk.constant_bytes,
        constants=tuple(walk.constants),
        host_callbacks=walk.host_callbacks,
    )


def _digest(*parts: bytes | str) -> bytes:
    state = hashlib.blake2b(digest_size=16)
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        state.update(len(data).to_bytes(8, "little"))
        state.update(data)
    return state.digest()


class _Walk:
    def __init__(self, module: Any) -> None:
        self.module = module
        self.operations: Counter[str] = Counter()
        self.lines: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.constant_bytes = 0
        self.constants: list[str] = []
        self.host_callbacks = 0
        self._symbols = {
            _text(op.operation.attributes["sym_name"]): op.operation
            for op in module.body.operations
            if "sym_name" in op.operation.attributes
        }
        self._functions: dict[str, bytes] = {}

    def module_digest(self) -> bytes:
        """Hash the module: its attributes, its entry function, and what is neither (meshes)."""
        attributes = self._attributes(self.module.operation)
        others = sorted(
            self._operation(op.operation, {}, 0)
            for op in self.module.body.operations
            if op.operation.name != "func.func"
        )
        return _digest("module", attributes, self._function("main"), *others)

    def _function(self, name: str) -> bytes:
        known = self._functions.get(name)
        if known is None:
            self._functions[name] = b"recursion"
            known = self._functions[name] = self._operation(self._symbols[name], {}, 0)
        return known

    def _block(self, block: Any, outer: Mapping[Any, bytes], depth: int) -> bytes:
        values = dict(outer)
        types = []
        for index, argument in enumerate(block.arguments):
            types.append(str(argument.type))
            values[argument] = _digest("argument", str(depth), str(index), types[-1])
        digests = []
        for op in block.operations:
            operation = op.operation
            digest = self._operation(operation, values, depth + 1)
            for index, result in enumerate(operation.results):
                values[result] = _digest(digest, str(index))
            digests.append(digest)
        # The last operation ends the block; the rest is a bag, so independent lines may change places.
        return _digest("block", *types, digests[-1], *sorted(digests))

    def _operation(self, operation: Any, values: Mapping[Any, bytes], depth: int) -> bytes:
        name = operation.name
        if name == "stablehlo.constant":
            content = self._constant(operation)
        else:
            content = self._attributes(operation)
        if name not in _NOT_OPERATIONS and "." in name:
            self.operations[name] += 1
            line = project_line(str(operation.location))
            if line:
                self.lines[name][line] += 1
        if name == "stablehlo.custom_call" and _CALLBACK.search(str(operation.attributes["call_target_name"])):
            self.host_callbacks += 1
        return _digest(
            name,
            content,
            *(values[operand] for operand in operation.operands),
            "->",
            *(str(result.type) for result in operation.results),
            *(self._block(block, values, depth) for region in operation.regions for block in region.blocks),
        )

    def _attributes(self, operation: Any) -> bytes:
        attributes = operation.attributes
        found = []
        for key in sorted(getattr(key, "name", key) for key in attributes):
            if key in _NAMES_ONLY:
                continue
            text = str(attributes[key])
            if key == "res_attrs":
                text = re.sub(r'jax\.result_info = "(?:[^"\\]|\\.)*",? ?', "", text)
            elif key == "backend_config" and operation.name == "stablehlo.custom_call":
                target = str(attributes["call_target_name"])
                if _CALLBACK.search(target):
                    continue  # an address in this process
            found.append(_digest(key, _SYMBOL.sub(self._symbol, text)))
        return _digest(*found)

    def _symbol(self, match: re.Match[str]) -> str:
        name = match.group(1) or match.group(2)
        target = self._symbols.get(name)
        if target is None or target.name != "func.func":
            return match.group(0)
        return "@" + self._function(name).hex()

    def _constant(self, operation: Any) -> bytes:
        value = operation.attributes["value"]
        if getattr(value, "is_splat", False):
            return _digest(str(value))
        try:
            data = memoryview(value).tobytes()
        except (TypeError, ValueError, BufferError):
            data = str(value).encode()  # packed booleans and types that Python's buffers do not know
        result = operation.results[0]
        nbytes = _tensor_bytes(str(result.type))
        self.constant_bytes += nbytes
        if nbytes >= LARGE_CONSTANT_BYTES:
            self.constants.append(_describe(result, nbytes))
        return _digest(str(value.type), data)


def _text(attribute: Any) -> str:
    return str(getattr(attribute, "value", attribute)).strip('"')


def _tensor_bytes(tensor: str) -> int:
    """Size of ``tensor<4x8xf32>``; sub-byte elements count one byte."""
    inside = tensor.removeprefix("tensor<").split(">")[0].split(",")[0]
    *shape, element = inside.split("x")
    if element.startswith("complex"):
        element = inside[inside.index("complex") :]
    bits = int((re.findall(r"\d+", element) or ["8"])[0]) * (2 if "complex" in element else 1)
    size = max(bits // 8, 1)
    for extent in shape:
        size *= int(extent)
    return size


def _describe(result: Any, nbytes: int) -> str:
    tensor = str(result.type).removeprefix("tensor<").removesuffix(">")
    for use in result.uses:
        owner = use.owner.operation if hasattr(use.owner, "operation") else use.owner
        line = project_line(str(owner.location))
        where = f" at {line}" if line else ""
        return f"{tensor} ({nbytes:,} bytes) used by {owner.name}{where}"
    return f"{tensor} ({nbytes:,} bytes)"
