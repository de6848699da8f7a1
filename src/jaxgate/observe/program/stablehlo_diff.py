"""What changed in a program, as text for people: the stored program beside today's, without what means nothing."""

from __future__ import annotations

import hashlib
import re

from jaxgate.model import StoredProgram
from jaxgate.observe.hlo import program_diff
from jaxgate.observe.program.export import NotReplayableError, read_program

_LONG_CONSTANT = re.compile(r'dense<"0x[0-9A-Fa-f]{65,}">|dense<\[[^>]{160,}\]>|dense_resource<[^>]*>')
_WIDTH = 240
"""Columns of a line; a call with many operands goes on for thousands."""


def program_changes(before: StoredProgram, now: StoredProgram) -> tuple[str, ...]:
    """Show how a baseline's program and today's differ. Explains a verdict, never makes one.

    Returns:
        Lines of a unified difference of their StableHLO, or one line that says why there is none.
    """
    try:
        texts = [readable(read_program(program).mlir_module()) for program in (before, now)]
    except NotReplayableError as error:
        return (f"not shown: {error}",)
    lines = program_diff(*texts)
    if not lines:
        return ("the two programs are equal as text",)
    return tuple(line if len(line) <= _WIDTH else f"{line[: _WIDTH - 1]}…" for line in lines)


def readable(program: str) -> str:
    """A program as text, its long constants as hashes."""
    return _LONG_CONSTANT.sub(_digest, program)


def _digest(constant: re.Match[str]) -> str:
    """A long table of numbers by its hash: it may differ, and nobody reads it."""
    return f"dense<{len(constant[0]):,} characters, sha256 {hashlib.sha256(constant[0].encode()).hexdigest()[:8]}>"
