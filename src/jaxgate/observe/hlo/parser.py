"""Optimised HLO as text, read into computations and instructions; whatever is not understood is kept and said."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from jaxgate.observe.hlo.shapes import SHAPE, Shape, read_shapes
from jaxgate.observe.source_lines import is_project_file, short_path

_TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")
_ROW = re.compile(r'([0-9]{1,9}) (?:"((?:[^"\\]|\\.)*)"|(\{[^{}]*\}))\s*')
_FIELD = re.compile(r"(\w+)=([0-9]{1,9})\b")
_FRAME_ID = re.compile(r"\bstack_frame_id=([0-9]{1,9})\b")
_BESIDE = re.compile(r'\bsource_file="((?:[^"\\]|\\.)*)" source_line=([0-9]{1,9})\b')


@dataclass(slots=True)
class _SourceTables:
    """The tables of one module that say where its instructions come from: of each, the rows by number."""

    files: dict[int, str] = field(default_factory=dict)
    rows: dict[str, dict[int, dict[str, int]]] = field(default_factory=lambda: {table: {} for table in _TABLES})
    open: str = ""  # the table that is being read
    known: dict[int, str] = field(default_factory=dict)  # lines of frames that were asked for

    def take(self, line: str) -> bool:
        """Read one line; whether it belongs to a table."""
        if line in _TABLES:
            self.open = line
            return True
        row = _ROW.fullmatch(line) if self.open else None
        if row is None:
            return False
        if self.open == "FileNames":
            self.files[int(row[1])] = row[2] or ""
        self.rows[self.open][int(row[1])] = {name: int(value) for name, value in _FIELD.findall(row[3] or "")}
        return True

    def project_line(self, attributes: str) -> str:
        """``file:line`` of the innermost frame of the project, by an instruction's attributes; empty if unknown."""
        if match := _FRAME_ID.search(attributes):
            number = int(match[1])
            if number not in self.known:
                self.known[number] = self._innermost(number)
            return self.known[number]
        match = _BESIDE.search(attributes)
        return _line(match[1], match[2]) if match else ""

    def _innermost(self, number: int) -> str:
        frames, places = self.rows["StackFrames"], self.rows["FileLocations"]
        # jaxlib 0.10 and 0.12 print the parent's number plus one, so that the outermost frame is its own parent.
        shift = any(fields.get("parent_frame_id") == frame for frame, fields in frames.items())
        passed: set[int] = set()
        while number in frames and number not in passed:
            passed.add(number)
            place = places.get(frames[number].get("file_location_id", 0), {})
            if line := _line(self.files.get(place.get("file_name_id", 0), ""), place.get("line", 0)):
                return line
            number = frames[number].get("parent_frame_id", 0) - shift
        return ""


def _line(path: str, line: object) -> str:
    return f"{short_path(path)}:{line}" if is_project_file(path) else ""


UNREAD_CHARACTERS = 120
"""Length of an unread line in a report."""

COLLECTIVE_WORDS = re.compile(r"all-|collective|reduce-scatter|replica_groups|source_target_pairs")
"""What a line says that may move data between devices."""
_START = re.compile(r"\s+(ROOT )?%?([\w.\-]+) = ")
_OPCODE = re.compile(r" ([a-z][\w\-]*)(?=\()")
_HEADER = re.compile(r"(ENTRY )?%?([\w.\-]+) (?:\(.*\) -> .+ )?\{")
_FLAT = re.compile(r'\([^()"]*\)')
_PARENTHESIS = re.compile(r'"(?:[^"\\]|\\.)*"|[()]')
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_OPERAND = re.compile(r"%([\w.\-]+)")
_DEFINED = re.compile(r"%([\w.\-]+) = (?:.* )?[a-z][\w\-]*\(")
"""An unread line that still shows which operation it applies: it would say so if that were a collective."""
_OP_NAME = re.compile(r'op_name="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """One line of a computation."""

    name: str  # its name, without `%`
    opcode: str  # any word, known or not
    shapes: tuple[Shape, ...]  # the arrays of its result; tuples flattened
    operands: tuple[str, ...]  # names of the instructions it reads
    arguments: str  # what stands between its parentheses, as written
    attributes: str  # what follows, as written
    op_name: str  # the JAX name stack it came from; empty if it has none
    line: str  # `file:line` of the innermost frame that belongs to the project; empty if none does
    root: bool  # whether it is the result of its computation


@dataclass(frozen=True, slots=True, kw_only=True)
class HloText:
    """A module as far as it was understood."""

    # computation to its instructions by name, both in the order of the text
    computations: Mapping[str, Mapping[str, Instruction]]
    entry: str  # name of the computation that runs; empty if there is none
    num_partitions: int  # devices that share the work of one replica
    replica_count: int  # replicas
    unread: tuple[str, ...]  # lines that were not understood, cut


def read_hlo(text: str) -> HloText:
    """Read ``compiled.as_text()`` of any backend; any text is taken, and what is no HLO ends in ``unread``."""
    reader = _Reader()
    for line in text.split("\n"):
        if not line.strip():
            reader.tables.open = ""  # an empty line stands between two
        elif not reader.take(line):
            reader.unread.append(cut(line))
    if reader.current is not None:
        within = next(reversed(reader.computations))
        reader.unread.append(f"the text ends within {within}: later collectives are unknown")
    return HloText(
        computations=reader.computations,
        entry=reader.entry,
        num_partitions=_number(reader.module, "num_partitions"),
        replica_count=_number(reader.module, "replica_count"),
        unread=tuple(reader.unread),
    )


@dataclass(slots=True, kw_only=True)
class _Reader:
    """What the lines so far gave."""

    computations: dict[str, dict[str, Instruction]] = field(default_factory=dict)
    current: dict[str, Instruction] | None = None  # the computation that is being read
    entry: str = ""
    module: str = ""
    tables: _SourceTables = field(default_factory=_SourceTables)
    unread: list[str] = field(default_factory=list)

    def take(self, line: str) -> bool:
        """Read one line; whether it was understood."""
        if self.current is None:
            return self._outside(line)
        if line == "}" or line.startswith("}, "):
            self.current = None
            return True
        if line[0] not in " \t":
            self._outside(line)  # what it begins is read, but something is missing before it
            return False
        instruction = _instruction(line, self.tables)
        return instruction is not None and self.current.setdefault(instruction.name, instruction) is instruction

    def _outside(self, line: str) -> bool:
        if line.startswith("HloModule ") and not self.module:
            self.module = line
            return True
        header = _HEADER.fullmatch(line)
        if header is None:
            return self.tables.take(line)
        self.current = None  # where a name comes twice, the lines that follow are unread, each with what it mentions
        if header[2] in self.computations or (header[1] and self.entry):
            return False
        self.current = self.computations[header[2]] = {}
        self.entry = header[2] if header[1] else self.entry
        return True


def _instruction(line: str, tables: _SourceTables) -> Instruction | None:
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
    if not closes or (attributes and not attributes.startswith(", ")) or "(%" in attributes:  # two lines run together
        return None
    name = _OP_NAME.search(attributes)
    return Instruction(
        name=start[2],
        opcode=opcode[1],
        shapes=shapes,
        operands=tuple(_OPERAND.findall(arguments)),
        arguments=arguments,
        attributes=attributes,
        op_name=name[1].replace("\\'", "'") if name else "",
        line=tables.project_line(attributes),
        root=start[1] is not None,
    )


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
        roots = sum(instruction.root for instruction in instructions.values())
        if roots != 1 and not any(line.startswith("ROOT ") for line in hlo.unread):
            yield f"%{name} has not one result"
        for instruction in instructions.values():
            for operand in instruction.operands:
                if operand not in instructions and operand not in known:
                    yield f"%{operand} is read by %{instruction.name} and defined nowhere"


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


_HLO_TARGET = re.compile(r'\bcustom_call_target="((?:[^"\\]|\\.)*)"')
_NOTHING = frozenset(
    {
        "AllocateBuffer", "AssumeGatherIndicesInBound", "AsyncCollectiveDone", "AsyncCollectiveStart",
        "ConcatBitcast", "GatherScatterIndicesBitpacked", "PartitionId", "Sharding", "SPMDFullToShardShape",
        "SPMDShardToFullShape",
    }
)  # fmt: skip
"""Marks and views that compilers leave in a program, as seen of TPUs with libtpu 0.0.42 and 0.0.50."""
_PRODUCTS = re.compile(r"__cublas\$(?:gemm|lt\$matmul)")


def target_of(instruction: Instruction) -> str:
    """What a custom call calls; empty for any other operation."""
    if instruction.opcode != "custom-call":
        return ""
    found = _HLO_TARGET.search(instruction.attributes)
    return found[1] if found else "a custom call without a target"


def is_opaque(instruction: Instruction) -> bool:
    """Whether an operation calls what a compiler does not show: a kernel, a library."""
    target = target_of(instruction)
    return bool(target) and target not in _NOTHING and not _PRODUCTS.match(target)


def is_product(instruction: Instruction) -> bool:
    """Whether an operation is a call of cuBLAS, which says what it multiplies."""
    return bool(_PRODUCTS.match(target_of(instruction)))
