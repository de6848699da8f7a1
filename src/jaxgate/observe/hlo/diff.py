"""Programs as text without what means nothing, and their difference, for people; nothing here makes a verdict."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from jaxgate.model.program import StoredProgram
from jaxgate.observe.program.export import NotReplayableError, read_program

DIFF_LIMIT = 40
"""Lines of a difference that fit in a report."""
CONTEXT = 2
"""Equal lines around a difference."""
MOST_PAIRS = 400_000
"""Most pairs of equal lines for ``difflib``: it takes up to 0.3 s for them on two cores, and time grows faster than their square."""

_BRACED = r'\{(?:"(?:[^"\\]|\\.)*"|[^{}"])*\}'
_DROPPED_FROM_HLO = re.compile(rf", metadata={_BRACED}|, channel_id=[0-9]+|/\*index=[0-9]+\*/")
_CONFIG = re.compile(r', backend_config=[{"].*$')
_TRIPS = re.compile(r'"known_trip_count":\{"n":"([0-9]+)"\}')
_TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")
_HEADER = re.compile(r"(ENTRY )?%?([\w.\-]+) .*\{$")
_HLO_NAME = re.compile(r"%([\w.\-]+)")
_HLO_SUFFIX = re.compile(r"\.(?:[0-9]+|clone|sunk|remat[0-9]*)(?![0-9a-z])|(?<=region)_[0-9]+")
_PARAMETER = re.compile(r"([\w.\-]+)(?=: )")

_LOCATION = re.compile(r'\s*loc\((?:"(?:[^"\\]|\\.)*"|[^()"]|\((?:"(?:[^"\\]|\\.)*"|[^()"]|\([^()]*\))*\))*\)')
_RESULT_INFO = re.compile(r'jax\.result_info = "(?:[^"\\]|\\.)*"(?:, )?')
_FUNCTION = re.compile(r"\s*func\.func (?:\w+ )?@([\w.$\-]+)")
_MLIR_NAME = re.compile(r'"(?:[^"\\]|\\.)*"|([%@])([\w.$\-]+)')
_MLIR_SUFFIX = re.compile(r"_?[0-9]+$")
_NUMBERED = re.compile(r"(%[\w.\-$]+|@[\w.\-$]+|\b[\w.\-]+(?=: \(?[a-z0-9]+\[))")


@dataclass(slots=True)
class _Names:
    """Names in the order of their first use: ``%add.17`` becomes ``%add.0``."""

    given: dict[str, str] = field(default_factory=dict)
    used: Counter[str] = field(default_factory=Counter)

    def of(self, name: str, base: str) -> str:
        if name not in self.given:
            self.given[name] = f"{base}.{self.used[base]}"
            self.used[base] += 1
        return self.given[name]


def normalise(text: str) -> str:
    """Drop from ``lowered.as_text()`` or ``compiled.as_text()`` what changes without a meaning.

    Locations, metadata, channel numbers and the module's name go; values, functions and computations are numbered in
    the order of the text, within their function or computation. Shapes, layouts and attributes stay. Of the backend's
    configuration only the length of loops stays: the rest is estimates and identifiers.
    """
    lines = text.split("\n")
    return "\n".join(_hlo(lines) if text.startswith("HloModule") else _mlir(lines))


def program_diff(before: str, now: str, *, limit: int = DIFF_LIMIT) -> tuple[str, ...]:
    """Show what differs between two programs in one language: the baseline's and today's.

    Lines are matched without the numbers of their values, so that one new operation does not mark every later line;
    only where nothing else differs do the numbers count.

    Returns:
        Lines of a unified difference, and one that counts those left out; none if the normalised programs are equal.
    """
    old, new = normalise(before).split("\n"), normalise(now).split("\n")
    if old == new:
        return ()
    keys = [_unnumbered(line) for line in old], [_unnumbered(line) for line in new]
    found = _difference(old, new, *(keys if keys[0] != keys[1] else (old, new)))
    if len(found) <= limit:
        return tuple(found)
    left = len(found) - limit
    return (*found[:limit], f"… {left:,} more {'line' if left == 1 else 'lines'} of this difference")


def _hlo(lines: Sequence[str]) -> Iterator[str]:
    headers = [match[2] for line in lines if (match := _HEADER.fullmatch(line))]
    computations = _Names()
    for name in headers:
        computations.of(name, _HLO_SUFFIX.sub("", name))
    table, names = False, _Names()

    def renamed(match: re.Match[str]) -> str:
        name = match[1]
        known = computations.given.get(name)
        return match[0].removesuffix(name) + (known or names.of(name, _HLO_SUFFIX.sub("", name)))

    for line in lines:
        table = line in _TABLES or (table and bool(line.strip()))
        if table or not line.strip():
            continue
        if line.startswith("HloModule "):
            yield "HloModule" + line[len("HloModule ") :].removeprefix(line.split(" ")[1].rstrip(","))
            continue
        if _HEADER.fullmatch(line):
            names = _Names()
            line = _PARAMETER.sub(renamed, line)  # noqa: PLW2901 - the same line, renamed
        trips = _TRIPS.search(line)
        line = _CONFIG.sub("", _DROPPED_FROM_HLO.sub("", line))  # noqa: PLW2901 - the same line, shorter
        yield _HLO_NAME.sub(renamed, line) + (f", known_trip_count={trips[1]}" if trips else "")


def _mlir(lines: Sequence[str]) -> Iterator[str]:
    functions = {match[1] for line in lines if (match := _FUNCTION.match(line))}
    names: defaultdict[str, _Names] = defaultdict(_Names)

    def renamed(match: re.Match[str]) -> str:
        kind, name = match[1], match[2]
        if kind is None or (kind == "@" and name not in functions):
            return match[0]  # a quoted text, or a custom call's target
        return kind + names[kind].of(name, _MLIR_SUFFIX.sub("", name) or "v")

    for line in lines:
        if not line.strip() or line.startswith("#loc"):
            continue
        if line.lstrip().startswith("module @"):
            yield re.sub(r"module @[\w.$\-]+", "module", _LOCATION.sub("", line))
            continue
        if line.lstrip().startswith("func.func"):
            names["%"] = _Names()
        yield _MLIR_NAME.sub(renamed, _RESULT_INFO.sub("", _LOCATION.sub("", line)))


def _unnumbered(line: str) -> str:
    return _NUMBERED.sub(lambda match: match[0].rpartition(".")[0] or match[0], line)


def _difference(old: Sequence[str], new: Sequence[str], keys_old: Sequence[str], keys_new: Sequence[str]) -> list[str]:
    """A unified difference of lines that match by their keys; without alignment where that would take too long."""
    both = list(zip(keys_old, keys_new, strict=False))
    first = next((n for n, (a, b) in enumerate(both) if a != b), len(both))
    rest = len(both) - first
    same = next((n for n in range(rest) if keys_old[-1 - n] != keys_new[-1 - n]), rest)
    begin, end = max(first - CONTEXT, 0), max(same - CONTEXT, 0)
    keys_old, keys_new = keys_old[begin : len(old) - end], keys_new[begin : len(new) - end]
    counted_old, counted_new = Counter(keys_old), Counter(keys_new)
    if sum(count * counted_new[line] for line, count in counted_old.items()) <= MOST_PAIRS:
        matcher = difflib.SequenceMatcher(None, keys_old, keys_new, autojunk=False)
        return list(_unified(matcher, old[begin:], new[begin:], begin))
    gone, come = counted_old - counted_new, counted_new - counted_old
    return [
        f"too many equal lines to align ({len(old):,} against {len(new):,}): lines that one side has more often",
        *(f"-{count:,} × {line.strip()}" for line, count in gone.most_common()),
        *(f"+{count:,} × {line.strip()}" for line, count in come.most_common()),
    ]


def _unified(
    matcher: difflib.SequenceMatcher[str], old: Sequence[str], new: Sequence[str], begin: int
) -> Iterator[str]:
    """The lines that ``difflib.unified_diff`` would write, but it does not match lines that repeat."""
    for group in matcher.get_grouped_opcodes(CONTEXT):
        (_, a, _, b, _), (_, _, a_end, _, b_end) = group[0], group[-1]
        yield f"@@ -{begin + a + 1},{a_end - a} +{begin + b + 1},{b_end - b} @@"
        for tag, i, i_end, j, j_end in group:
            if tag == "equal":
                yield from (f" {line}" for line in new[j:j_end])
                continue
            yield from (f"-{line}" for line in old[i:i_end])
            yield from (f"+{line}" for line in new[j:j_end])


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
    """The hash of a long table of numbers: it may differ, and nobody reads it."""
    return f"dense<{len(constant[0]):,} characters, sha256 {hashlib.sha256(constant[0].encode()).hexdigest()[:8]}>"
