"""Whether two programs were compiled to the same executable: then their times cannot differ."""

from __future__ import annotations

import re

import jax

from jaxgate.observe.machine.environment import fingerprint

_METADATA = re.compile(r', metadata=\{(?:"[^"]*"|[^{}"])*\}')
_NAME = re.compile(r"%[\w.\-]+")
_SIGNATURE = re.compile(r"((?:ENTRY )?%\S+ \()(.*)(\) -> .*)")
_FIRST = re.compile(r"(ENTRY )?%")
ELIDED = "{...}"
"""Stands for a constant that is too large to be printed."""


def executable_fingerprint(executable: jax.stages.Compiled) -> str | None:
    """Hash an executable by its optimised, scheduled program.

    The text holds all that the backend's code generator is given: instructions in their order, layouts, aliasing,
    backend settings. Names and source locations are left out. Seen on both JAX lines: a function and its export,
    compiled in one process, have the same text but for these, or in another order.

    Returns:
        The hash; ``None`` where two executables could not be distinguished: constants are not printed, or there is no text.
    """
    text = executable.as_text()
    if not text or ELIDED in text:
        return None
    return fingerprint(*canonical(text))


def same_executable(one: jax.stages.Compiled, other: jax.stages.Compiled) -> bool:
    """Whether two executables are known to be the same."""
    first = executable_fingerprint(one)
    return first is not None and first == executable_fingerprint(other)


def canonical(text: str) -> list[str]:
    """Optimised HLO without names and locations: values are numbered in the order in which they are met.

    Raises:
        ValueError: If it has no computation: two texts without one would look alike.
    """
    head, *rest = _METADATA.sub("", text).splitlines()
    begin = next((place for place, line in enumerate(rest) if _FIRST.match(line)), None)
    if begin is None:
        raise ValueError(f"expected a computation in the optimised program, found none after {head[:60]!r}")
    numbers: dict[str, str] = {}

    def number(name: re.Match[str]) -> str:
        return numbers.setdefault(name[0], f"%{len(numbers)}")

    lines = [re.sub(r"^HloModule [^\s,]+", "HloModule", head)]
    # Before the first computation stand tables of files and functions.
    return lines + [_NAME.sub(number, _SIGNATURE.sub(_without_parameters, line)) for line in rest[begin:]]


def _without_parameters(signature: re.Match[str]) -> str:
    """The first line of a computation: types of its parameters, not their names."""
    return signature[1] + re.sub(r"[\w.\-]+: ", "", signature[2]) + signature[3]
