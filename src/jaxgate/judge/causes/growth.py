"""What there is more of than before, in words and with its line; and the sets of quantities that a cause can explain."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import prod

from jaxgate.model.measurement import MAX_NAMED

_PLUMBING = re.compile(r"stablehlo\.(broadcast_in_dim|reshape|bitcast_convert|iota|slice) ")
"""Operations that seldom cost anything by themselves: named only where nothing else grew."""


_FITS = 220
"""Characters of a line that a person still reads, less what is said around it: what does not fit is left out."""
_FOLDERS = re.compile(r"(?<= at )\S*/")
"""The folders of a source line: where a project lies does not decide what is said of it."""


def more_of(now: Mapping[str, int], before: Mapping[str, int]) -> dict[str, int]:
    """How much more there is of each entry than before; what did not grow is left out."""
    return {name: count - before.get(name, 0) for name, count in now.items() if count > before.get(name, 0)}


def counted(name: str, now: Mapping[str, int], before: Mapping[str, int], lines: Mapping[str, str]) -> str:
    """An entry with its two counts: ``name 2 → 64 at file:line``."""
    return f"{name} {before.get(name, 0)} → {now[name]}{at(name, lines)}"


def grown(now: Mapping[str, int], before: Mapping[str, int] | None, lines: Mapping[str, str]) -> str:
    """The entries that grew most, as ``name 2 → 64 at file:line``; empty if none did.

    Entries weigh as much as the arrays that they make, where their names say it. With nothing to compare with
    (``None``) it is what weighs most, as ``64 × name at file:line``.
    """
    if before is None:
        most = sorted(now, key=lambda name: (is_plumbing(name), -now[name] * elements(name), name))
        return "; ".join([f"{now[name]} × {name}{at(name, lines)}" for name in most[:MAX_NAMED]])
    growth = more_of(now, before)
    worst = sorted(growth, key=lambda name: (is_plumbing(name), -growth[name] * elements(name), name))
    gone = sorted(set(before) - set(now), key=lambda name: (-elements(name), name))
    parts = [counted(name, now, before, lines) for name in worst[:MAX_NAMED]]
    text = "; ".join(_fitting(parts, 0))
    left = _fitting(gone[:MAX_NAMED], len(_FOLDERS.sub("", text))) if text else []
    return f"{text}; gone: {', '.join(left)}" if left else text


def _fitting(parts: Sequence[str], length: int) -> list[str]:
    """The first parts of a line that has some length already, as many as a person reads; of a new line one at least."""
    return [
        part
        for place, part in enumerate(parts)
        if length + len(_FOLDERS.sub("", "; ".join(parts[: place + 1]))) < _FITS or not (length or place)
    ]


def shrunk(now: Mapping[str, int], before: Mapping[str, int]) -> str:
    """The entries of which there are fewer, as ``name 3 → 2``; empty if there are none."""
    loss = more_of(before, now)
    most = sorted(loss, key=lambda name: (-loss[name] * elements(name), name))
    return "; ".join([f"{name} {before[name]} → {now.get(name, 0)}" for name in most[:MAX_NAMED]])


def heaviest(now: Mapping[str, int], lines: Mapping[str, str]) -> str:
    """What most of a program is, where there is nothing to compare it with."""
    counts: dict[str, int] = {}
    for name, count in now.items():
        counts[name.partition(" ")[0]] = counts.get(name.partition(" ")[0], 0) + count
    if not counts:
        return ""
    most = min(counts, key=lambda name: (-counts[name], name))
    one = max((name for name in now if name.partition(" ")[0] == most), key=now.__getitem__)
    return f"most of the program: {counts[most]} × {most}{at(one, lines)}"


def count_of(operations: Mapping[str, int], name: str) -> int:
    """How many operations there are of one name, whatever their types."""
    return sum(count for label, count in operations.items() if label.partition(" ")[0] == name)


def total_elements(counts: Mapping[str, int]) -> int:
    """Elements of all arrays that a histogram names, each as often as it is counted."""
    return sum(count * elements(name) for name, count in counts.items())


def at(name: str, lines: Mapping[str, str]) -> str:
    """`` at file:line`` where it is known."""
    return f" at {lines[name]}" if lines.get(name) else ""


def is_plumbing(name: str) -> bool:
    """Whether an operation seldom costs anything by itself."""
    return bool(_PLUMBING.match(name))


def elements(name: str) -> int:
    """Elements of the first array that a label names: ``8x64xf32`` or ``float32[8,64]``; 1 where there is none."""
    found = re.search(r"(?:^| )((?:\d+x)+)[a-z]", name) or re.search(r"\[(\d+(?:,\d+)*)\]", name)
    return prod(int(extent) for extent in re.findall(r"\d+", found[1])) if found else 1


BUFFERS = frozenset({"temp_bytes", "peak_bytes", "xla_bytes", "copied_bytes", "scattered_bytes"})
"""What a program keeps while it runs, and what it writes, reads, copies and picks."""
ARITHMETIC = frozenset({"xla_flops", "transcendentals"})
RUN = BUFFERS | ARITHMETIC | {"run_ns"}
"""What one run of a program takes."""
WORK = RUN | {"random_bits", "stablehlo_ops", "trace_equations", "trace_calls", "kernels"}
"""What one run of a program takes, and its length as a text."""
MEMORY = frozenset({"peak_bytes", "state_bytes"})
"""Sums over arguments, results and temporaries."""
COMPILED = BUFFERS | ARITHMETIC | MEMORY | {"aliased_bytes", "argument_bytes", "output_bytes", "kernels"}
"""What the compiler says of its executable."""
PHASES = frozenset({"trace_ns", "lower_ns", "compile_ns", "first_call_ns"})
