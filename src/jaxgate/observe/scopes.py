"""Names of a compiled program's operations, as their author wrote them: JAX scopes, and the project's line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from jaxgate.observe.hlo import read_hlo

_EXPORTED = "call_exported"
"""Stands before the names of a stored program, which jaxgate calls from a function of its own."""
_WRAPPED = re.compile(r"(?:jit|pjit|pmap|jvp|closed_call|shmap_body|shard_map)\((.*)\)")
_BACKWARD = re.compile(r"transpose\((.*)\)")
_OF_JAX = frozenset({"", "closed_call", "eval_jaxpr", "core_call", "pjit", "jit"})
"""Parts that JAX itself puts in between; releases differ in them."""
_NUMBER = re.compile(r"(\.\d+)+$")


def operations(executable: Any) -> dict[str, tuple[str, str]]:
    """Name and project line of every operation of an executable, by the compiler's name for it.

    Args:
        executable: A ``jax.stages.Compiled``.

    Returns:
        ``{"ynn_fusion.2": ("attention/softmax/exp", "model.py:41")}``; lines are empty where none is known.
    """
    text = executable.as_text()
    found: dict[str, tuple[str, str]] = {}
    for computation in read_hlo(text).computations.values() if text else ():
        for name, instruction in computation.items():
            found[name] = scope_of(instruction.op_name) or plain(name), instruction.line
    return found


def scope_of(op_name: str) -> str:
    """The part of a JAX name that its author wrote, and the primitive.

    Args:
        op_name: ``jit(step)/jit(main)/transpose(jvp(attention))/while/body/dot_general``.

    Returns:
        ``backward(attention)/while/body/dot_general``; empty if nothing is left.
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


def lines_of(named: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """Project lines by the author's names; of several the first."""
    lines: dict[str, str] = {}
    for name, line in named.values():
        if line:
            lines.setdefault(name, line)
    return lines
