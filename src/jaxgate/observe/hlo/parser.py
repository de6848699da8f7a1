"""Optimised HLO as text, read into computations and instructions; whatever is not understood is kept and said."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from jaxgate.observe.hlo.shapes import SHAPE, Shape, read_shapes
from jaxgate.observe.hlo.source_tables import SourceTables

UNREAD_CHARACTERS = 120
"""Length of an unread line in a report."""

COLLECTIVE_WORDS = re.compile(r"all-|collective|reduce-scatter|replica_groups|source_target_pairs")
"""What a line says that may move data between devices."""
_MENTION = re.compile(r"(?:all-|collective-|reduce-scatter|ragged-)[\w-]*\(")
"""A collective being applied. No valid line holds a second one: two would be two lines run together."""
_START = re.compile(r"\s+(ROOT )?%?([\w.\-]+) = ")
_OPCODE = re.compile(r" ([a-z][\w\-]*)(?=\()")
_HEADER = re.compile(r"(ENTRY )?%?([\w.\-]+) (?:\(.*\) -> .+ )?\{")
_FLAT = re.compile(r'\([^()"]*\)')
_PARENTHESIS = re.compile(r'"(?:[^"\\]|\\.)*"|[()]')
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_OPERAND = re.compile(r"%([\w.\-]+)")
_DEFINED = re.compile(r"%([\w.\-]+) = (?:.* )?[a-z][\w\-]*\(")
"""An unread line that still shows which operation it applies: if that were a collective, the line would say so."""
_OP_NAME = re.compile(r'op_name="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """One line of a computation.

    Attributes:
        name: Its name, without ``%``.
        opcode: Any word, known or not.
        shapes: The arrays of its result; tuples flattened.
        operands: Names of the instructions it reads.
        arguments: What stands between its parentheses, as written.
        attributes: What follows, as written.
        op_name: The JAX name stack it came from; empty if it has none.
        line: ``file:line`` of the innermost frame that belongs to the project; empty if none does.
        root: Whether it is the result of its computation.
    """

    name: str
    opcode: str
    shapes: tuple[Shape, ...]
    operands: tuple[str, ...]
    arguments: str
    attributes: str
    op_name: str
    line: str
    root: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class HloText:
    """A module as far as it was understood.

    Attributes:
        computations: Computation to its instructions by name, both in the order of the text.
        entry: Name of the computation that runs; empty if there is none.
        num_partitions: Devices that share the work of one replica.
        replica_count: Replicas.
        unread: Lines that were not understood, cut.
    """

    computations: Mapping[str, Mapping[str, Instruction]]
    entry: str
    num_partitions: int
    replica_count: int
    unread: tuple[str, ...]


def read_hlo(text: str) -> HloText:
    """Read ``compiled.as_text()`` of any backend; any text is taken, and what is no HLO ends in ``unread``."""
    reader = _Reader()
    for line in text.split("\n"):
        if line.strip():
            reader.take(line)
        else:
            reader.tables.close()
    return reader.finish()


@dataclass(slots=True, kw_only=True)
class _Reader:
    """What the lines so far gave."""

    computations: dict[str, dict[str, Instruction]] = field(default_factory=dict)
    current: dict[str, Instruction] | None = None
    entry: str = ""
    module: str = ""
    tables: SourceTables = field(default_factory=SourceTables)
    unread: list[str] = field(default_factory=list)

    def take(self, line: str) -> None:
        if line[0] == "}" and (line == "}" or line.startswith("}, ")) and self.current is not None:
            self.current = None
        elif self.current is not None and line[0] in " \t":
            self._instruction(line)
        elif not self._outside(line) or _MENTION.search(line):
            self.unread.append(cut(line))

    def finish(self) -> HloText:
        if self.current is not None:
            self.unread.append(
                f"the text ends within {next(reversed(self.computations))}: later collectives are unknown"
            )
        module = self.module
        return HloText(
            computations=self.computations,
            entry=self.entry,
            num_partitions=_number(module, "num_partitions"),
            replica_count=_number(module, "replica_count"),
            unread=tuple(self.unread),
        )

    def _outside(self, line: str) -> bool:
        """Read a line that is no instruction; whether it was understood."""
        if match := _HEADER.fullmatch(line):
            name, closed = match[2], self.current is None
            if name in self.computations or (match[1] and self.entry):
                self.current = None  # the lines that follow are unread, each with what it mentions
                return False
            self.current = self.computations[name] = {}
            self.entry = name if match[1] else self.entry
            return closed
        if line.startswith("HloModule ") and not self.module:
            self.module = line
            return True
        return self.tables.take(line)

    def _instruction(self, line: str) -> None:
        instruction = _instruction(line, self.tables)
        current = self.current
        if instruction is None or current is None or instruction.name in current:
            self.unread.append(cut(line))
        else:
            current[instruction.name] = instruction


def _instruction(line: str, tables: SourceTables) -> Instruction | None:
    """Read one line of a computation, or nothing if any part of it is not as expected."""
    start = _START.match(line)
    if start is None:
        return None
    at = start.end()
    shape = _FLAT.match(line, at) or SHAPE.match(line, at)
    end = shape.end() if shape else _closing(line, at)
    opcode = _OPCODE.match(line, end)
    shapes = read_shapes(line[at:end])
    if opcode is None or shapes is None:
        return None
    opens = opcode.end()
    flat = _FLAT.match(line, opens)
    closes = flat.end() if flat else _closing(line, opens)
    arguments, attributes = line[opens + 1 : closes - 1], line[closes:]
    if not closes or (attributes and not attributes.startswith(", ")) or _is_run_on(line, opcode[1], attributes):
        return None
    name = _OP_NAME.search(attributes)
    return Instruction(
        name=start[2],
        opcode=opcode[1],
        shapes=shapes,
        operands=tuple(_OPERAND.findall(arguments)) if "%" in arguments else (),
        arguments=arguments,
        attributes=attributes,
        op_name=name[1].replace("\\'", "'") if name else "",
        line=tables.project_line(attributes),
        root=start[1] is not None,
    )


def _is_run_on(line: str, opcode: str, attributes: str) -> bool:
    """Whether a second instruction hides in a line: a lost line break must not lose a collective."""
    if len(_MENTION.findall(line)) != (_MENTION.fullmatch(f"{opcode}(") is not None) or "(%" in attributes:
        return True
    if " = " not in attributes and attributes.count('"') % 2 == 0:
        return False
    outside = without_strings(attributes)
    return " = " in outside or outside.count('"') % 2 == 1


def without_strings(attributes: str) -> str:
    """Attributes with every quoted text emptied, so that a search finds names of HLO only."""
    return _STRING.sub('""', attributes)


def _closing(text: str, start: int) -> int:
    """Position after the parenthesis that closes the one at ``start``; 0 if there is none."""
    depth = 0
    for match in _PARENTHESIS.finditer(text, start):
        depth += {"(": 1, ")": -1}.get(match[0], 0)
        if depth <= 0:
            return match.end() if match[0] == ")" else 0
    return 0


def find_holes(hlo: HloText) -> Iterator[str]:
    """What shows that a line was lost, which may have been a collective: results that nothing gives."""
    known = {name for line in hlo.unread for name in _DEFINED.findall(line)}
    for name, instructions in hlo.computations.items():
        if sum(instruction.root for instruction in instructions.values()) != 1 and not any(map(_is_root, hlo.unread)):
            yield f"%{name} has not one result"
        for instruction in instructions.values():
            for operand in instruction.operands:
                if operand not in instructions and operand not in known:
                    yield f"%{operand} is read by %{instruction.name} and defined nowhere"


def _is_root(line: str) -> bool:
    return line.startswith("ROOT ")


def cut(line: str) -> str:
    """Shorten a line for a report; a collective that it mentions stays in sight."""
    text = line.strip()
    if len(text) <= UNREAD_CHARACTERS:
        return text
    word = COLLECTIVE_WORDS.search(text)
    if word is None or word.end() < UNREAD_CHARACTERS:
        return text[: UNREAD_CHARACTERS - 1] + "…"
    half = UNREAD_CHARACTERS // 2
    return f"{text[: half - 1]}…{text[word.start() :][:half]}"


def _number(module: str, name: str) -> int:
    match = re.search(rf"\b{name}=([0-9]{{1,9}})\b", module)
    return int(match[1]) if match else 1
