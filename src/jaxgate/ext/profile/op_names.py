"""Names of a compiled program's operations, as their author wrote them: JAX scopes, and the project's line."""

from __future__ import annotations

import re
from collections.abc import Mapping

import jax

from jaxgate.ext.profile.model import Operation
from jaxgate.observe.hlo.collectives import KINDS
from jaxgate.observe.hlo.parser import HloText, Instruction, read_hlo

_EXPORTED = "call_exported"
"""Stands before the names of a stored program, which jaxgate calls from a function of its own."""
_WRAPPED = re.compile(r"(?:jit|pjit|pmap|jvp|closed_call|shmap_body|shard_map)\((.*)\)")
_BACKWARD = re.compile(r"transpose\((.*)\)")
_OF_JAX = frozenset({"", "closed_call", "eval_jaxpr", "core_call", "pjit", "jit"})
"""Parts that JAX itself puts in between; releases differ in them."""
_THROUGH = frozenset({"tuple", "get-tuple-element", "bitcast", "parameter"})
"""What only hands on."""
_MOST_READERS = 100
_PHASE = re.compile(r"-(?:start|update|done)$")
_CALLED = re.compile(r"(?<![\w-])calls=%?([\w.\-]+)")
_NUMBER = re.compile(r"(\.\d+)+$")


def operations(executable: jax.stages.Compiled) -> dict[str, Operation]:
    """Every operation of an executable: ``{"ynn_fusion.2": Operation("attention/softmax/exp", "model.py:41")}``."""
    text = executable.as_text()
    hlo = read_hlo(text) if text else None
    found: dict[str, Operation] = {}
    for computation in hlo.computations.values() if hlo else ():
        users = _users(computation)
        for name, instruction in computation.items():
            scope, line = scope_of(instruction.op_name), instruction.line
            if not scope:  # a copy that the compiler put in: it is there for what reads it
                scope, line = _borrowed(name, computation, users)
            collective = hlo is not None and _moves(instruction, computation, hlo)
            found[name] = Operation(scope or plain(name), line, collective)
    return found


def _moves(instruction: Instruction, computation: Mapping[str, Instruction], hlo: HloText) -> bool:
    """Whether an operation is a collective, or starts or ends one that runs beside others."""
    kind = _PHASE.sub("", instruction.opcode)
    if kind != "async":
        return kind in KINDS
    called = _CALLED.search(instruction.attributes)
    if called:
        return any(each.opcode in KINDS for each in hlo.computations.get(called[1], {}).values())
    started = computation.get(next(iter(instruction.operands), ""))
    return started is not None and started is not instruction and _moves(started, computation, hlo)


def _users(computation: Mapping[str, Instruction]) -> dict[str, list[str]]:
    users: dict[str, list[str]] = {}
    for name, instruction in computation.items():
        for operand in instruction.operands:
            users.setdefault(operand, []).append(name)
    return users


def _borrowed(name: str, computation: Mapping[str, Instruction], users: Mapping[str, list[str]]) -> tuple[str, str]:
    """Name and line of the first operation that reads an operation, through tuples; else of one of its operands."""
    readers = list(users.get(name, ()))
    for reader in readers:  # grows while it is read
        if computation[reader].opcode in _THROUGH and len(readers) < _MOST_READERS:
            readers += users.get(reader, ())
    for other in (*readers, *computation[name].operands):
        instruction = computation.get(other)
        if instruction is not None and instruction.opcode not in _THROUGH and scope_of(instruction.op_name):
            return f"{scope_of(instruction.op_name)}/{plain(name)}", instruction.line
    return "", ""


def scope_of(op_name: str) -> str:
    """The part of a JAX name that its author wrote, and the primitive; empty if nothing is left.

    ``jit(step)/transpose(jvp(attention))/while/body/dot_general`` gives ``backward(attention)/while/body/dot_general``.
    """
    parts = op_name.split("/")
    if _EXPORTED in parts:
        parts = parts[len(parts) - parts[::-1].index(_EXPORTED) :]
    while parts and re.fullmatch(r"p?jit\(.*\)", parts[0]) and len(parts) > 1:
        parts = parts[1:]
    kept: list[str] = []
    for part in map(_unwrapped, parts):
        if part not in _OF_JAX and kept[-1:] != [part]:  # ``sort/sort``: a jitted helper of its primitive's name
            kept.append(part)
    return "/".join(kept)


def _unwrapped(part: str) -> str:
    backward = _BACKWARD.fullmatch(part)
    if backward:
        inner = _unwrapped(backward[1])
        return f"backward({inner})" if inner else "backward"
    wrapped = _WRAPPED.fullmatch(part)
    return _unwrapped(wrapped[1]) if wrapped else part


def plain(name: str) -> str:
    """A compiler's name without its number: ``copy.6`` is ``copy``."""
    return _NUMBER.sub("", name)


def lines_of(named: Mapping[str, Operation]) -> dict[str, str]:
    """Project lines by the author's names; of several the first."""
    lines: dict[str, str] = {}
    for name, line, _ in named.values():
        if line:
            lines.setdefault(name, line)
    return lines
