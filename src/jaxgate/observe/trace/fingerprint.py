"""A structural fingerprint of a StableHLO module: a hash of the graph of values, not of its text.

Names of functions and helpers, source locations, the order of independent lines and whether a helper is
jitted on its own do not reach it: calls are followed to the values they return, as the compiler inlines
them. The values that a loop carries are distinguished by what they do, not by their position, which follows
the order of the lines in the body. It is of its own kind: never compare it with a hash of ``as_text()``
or of an exported module.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from jaxgate.observe.compat import register_tpu_dialect

TARGET = "tpu_custom_call"


def without_locations(config: str) -> str:
    """What a kernel does, as text that stays the same where its file is moved or a line is put above it.

    ``config`` is ``backend_config`` of the call: JSON, with the kernel of a TPU as MLIR bytecode. It comes back with
    the kernel as text; as it is where this release writes it otherwise.
    """
    try:
        from jax.extend.mlir import ir  # noqa: PLC0415 - imports Pallas, which makes jax 0.12 trace everything anew

        found = json.loads(config)
        call = found["custom_call_config"]
        call.pop("debug_locations", None)  # 0.12
        with ir.Context() as context:
            context.allow_unregistered_dialects = True
            register_tpu_dialect(context)
            call["body"] = ir.Module.parse(base64.b64decode(call["body"])).operation.get_asm(enable_debug_info=False)
        return json.dumps(found, sort_keys=True)
    except Exception:  # noqa: BLE001 - the bindings raise their own
        return config


_CALLBACK = re.compile(r"callback", re.IGNORECASE)
_SYMBOL = re.compile(r'@(?:"([^"]+)"|([\w.$-]+))')
_RESULT_NAMES = re.compile(r'jax\.result_info = "(?:[^"\\]|\\.)*"(?:, )?')
_NAMES_ONLY = frozenset({"sym_name", "sym_visibility"})

Digests = tuple[bytes, ...]


def program_fingerprint(module: Any) -> str:
    """Hash a module as ``lowered.compiler_ir("stablehlo")`` gives it, into 32 hexadecimal digits."""
    return _Hasher(module).module().hex()


def is_callback(operation: Any) -> bool:
    """Whether an operation calls from the program into Python."""
    return bool(_CALLBACK.search(_calls(operation)))


def _calls(operation: Any) -> str:
    """The target of a custom call; empty for any other operation."""
    if operation.name != "stablehlo.custom_call":
        return ""
    return str(operation.attributes["call_target_name"].value)


def is_splat(operation: Any) -> bool:
    """Whether a constant is one value repeated."""
    try:
        return bool(operation.attributes["value"].is_splat)
    except TypeError:  # complex elements: the bindings cannot hand the attribute over
        return not re.search(r"dense<(\[|\"0x)", str(operation))


def _digest(*parts: bytes | str) -> bytes:
    state = hashlib.blake2b(digest_size=16)
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        state.update(len(data).to_bytes(8, "little"))
        state.update(data)
    return state.digest()


class _Hasher:
    def __init__(self, module: Any) -> None:
        self._root = module.operation
        self._top = [op.operation for op in module.body.operations]
        self._functions = {op.attributes["sym_name"].value: op for op in self._top if op.name == "func.func"}
        self._constants: dict[Any, bytes] = {}
        self._calls: dict[tuple[str, Digests], tuple[Digests, Digests]] = {}

    def module(self) -> bytes:
        """Hash the module's attributes, its entry function, and what is neither (meshes)."""
        others = sorted(_digest(op.name, str(op)) for op in self._top if op.name != "func.func")
        main = self._functions["main"]
        body, results = self._function("main", _numbered("input", main.regions[0].blocks[0]))
        return _digest(
            "module", self._attributes(self._root), self._attributes(main), *body, "results", *results, *others
        )

    def _function(self, name: str, arguments: Digests) -> tuple[Digests, Digests]:
        """Follow a call: the digests of the body's operations, and those of the values it returns."""
        key = (name, arguments)
        if key not in self._calls:
            function = self._functions[name]
            self._calls[key] = self._block(function.regions[0].blocks[0], arguments, {})
        return self._calls[key]

    def _block(self, block: Any, arguments: Sequence[bytes], outer: Mapping[Any, bytes]) -> tuple[Digests, Digests]:
        """Hash a block: a bag of its operations, so that independent lines may change places.

        Returns:
            The sorted digests of the bag, and the digests of the values that end the block.
        """
        values = dict(outer)
        values.update(zip(block.arguments, arguments, strict=True))
        bag: list[bytes] = []
        returned: Digests = ()
        for op in block.operations:
            operation = op.operation
            if operation.name in ("func.return", "stablehlo.return", "sdy.return"):
                returned = tuple(values[operand] for operand in operation.operands)
                continue
            if operation.name == "func.call":
                operands = tuple(values[operand] for operand in operation.operands)
                inlined, results = self._function(operation.attributes["callee"].value, operands)
                bag += inlined
            else:
                digest, results = self._operation(operation, values)
                bag.append(digest)
            values.update(zip(operation.results, results, strict=True))
        return tuple(sorted(bag)), returned

    def _operation(self, operation: Any, values: Mapping[Any, bytes]) -> tuple[bytes, Digests]:
        name = operation.name
        operands = tuple(values[operand] for operand in operation.operands)
        if name == "stablehlo.while":
            return self._while(operation, operands, values)
        content = self._constant(operation) if name == "stablehlo.constant" else self._attributes(operation)
        inner = []
        for region in operation.regions:
            for block in region.blocks:
                bag, returned = self._block(block, _numbered("inner", block), values)
                inner += [_digest(*bag), *returned]
        types = [str(result.type) for result in operation.results]
        digest = _digest(name, content, *operands, "->", *types, *inner)
        return digest, tuple(_digest(digest, str(i)) for i in range(len(types)))

    def _while(self, operation: Any, operands: Digests, values: Mapping[Any, bytes]) -> tuple[bytes, Digests]:
        """Hash a loop whose carried values are coloured by their start and by how an iteration makes them.

        Colours are refined until no two more values can be distinguished (partition refinement, Hopcroft 1971);
        values of one colour then start equal and stay equal, so the colour may stand for the position.
        """
        condition, body = (region.blocks[0] for region in operation.regions)
        colours = tuple(
            _digest("carried", start, str(argument.type))
            for start, argument in zip(operands, body.arguments, strict=True)
        )
        while True:
            bag, following = self._block(body, colours, values)
            refined = tuple(_digest(colour, value) for colour, value in zip(colours, following, strict=True))
            settled = len(set(refined)) == len(set(colours))
            colours = refined
            if settled:
                break
        bag, _ = self._block(body, colours, values)
        test, decision = self._block(condition, colours, values)
        digest = _digest(
            "while", self._attributes(operation), _digest(*bag), _digest(*test), *decision, *sorted(colours)
        )
        return digest, tuple(_digest(digest, colour) for colour in colours)

    def _attributes(self, operation: Any) -> bytes:
        attributes = operation.attributes
        found = []
        for key in sorted(getattr(key, "name", key) for key in attributes):
            if key in _NAMES_ONLY or (key == "backend_config" and is_callback(operation)):
                continue  # a name, or an address in this process
            text = str(attributes[key])
            if key == "backend_config" and _calls(operation) == TARGET:
                text = without_locations(attributes[key].value)
            if key == "res_attrs":
                text = _RESULT_NAMES.sub("", text)
            found.append(_digest(key, _SYMBOL.sub(self._by_content, text)))
        return _digest(*found)

    def _by_content(self, match: re.Match[str]) -> str:
        """The hash of a function that an attribute names: by what it does."""
        name = match.group(1) or match.group(2)
        function = self._functions.get(name)
        if function is None or name == "main":
            return match.group(0)
        body, results = self._function(name, _numbered("input", function.regions[0].blocks[0]))
        return "@" + _digest(_digest(*body), *results).hex()

    def _constant(self, operation: Any) -> bytes:
        result = operation.results[0]
        if result not in self._constants:
            self._constants[result] = _digest(*_content(operation))
        return self._constants[result]


def _numbered(word: str, block: Any) -> Digests:
    """Digests of the arguments of a block, which are known by their places."""
    return tuple(_digest(word, str(i), str(argument.type)) for i, argument in enumerate(block.arguments))


def _content(constant: Any) -> tuple[bytes | str, ...]:
    try:
        value = constant.attributes["value"]
    except TypeError:  # complex elements: the bindings cannot hand the attribute over, its text has it all
        return (str(constant).partition("=")[2],)
    try:
        data = b"" if value.is_splat else memoryview(value).tobytes()
    except (AttributeError, TypeError, ValueError, BufferError):
        data = b""  # packed booleans and types that Python's buffers do not know: their text has it all
    return str(value.type), data or str(value)
