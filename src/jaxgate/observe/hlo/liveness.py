"""Which arrays of a scheduled program are alive when it needs most memory, worked out from its text.

For compilers that keep no list of their allocations. Where one lays an array on another that is no longer needed is not in
the text and is guessed (``in_place.py``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from jaxgate.observe.hlo.in_place import SAME, replaced, works_in_place
from jaxgate.observe.hlo.parser import HloText, Instruction
from jaxgate.observe.hlo.shapes import Shape
from jaxgate.observe.hlo.trip_counts import called

Kind = Literal["argument", "output", "temp"]

_INDEX = re.compile(r"\bindex=([0-9]{1,9})\b")
_ALIAS = re.compile(r"\{([0-9]{0,9})\}: \(([0-9]{1,9}), ")
_ALIASES = re.compile(r"\binput_output_alias=\{((?:[^{}]|\{[^{}]*\})*)\}")


class UnreadableScheduleError(Exception):
    """The text does not say when its arrays live; the message says why."""


@dataclass(eq=False, slots=True)
class Buffer:
    """A place in the device's memory.

    Attributes:
        nbytes: Its size, in tiles.
        kind: What lies there.
        makers: The operations that make arrays there, in order.
        start: When it is first written.
        end: When it is last read.
        may_follow: Operands of its maker that are as large: it takes the place of one that nothing reads later.
    """

    nbytes: int
    kind: Kind
    makers: list[Instruction]
    start: int
    end: int
    may_follow: tuple[Buffer, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak:
    """A program when it needs most.

    Attributes:
        alive: What is alive then, largest first: all arguments, results that were written, and what is temporary.
    """

    alive: tuple[Buffer, ...]

    @property
    def nbytes(self) -> int:
        """Of all that is alive."""
        return sum(buffer.nbytes for buffer in self.alive)


Leaf = Buffer | None
"""An array of a value; ``None`` where it lies in another memory."""


def find_peak(hlo: HloText, head: str) -> Peak:
    """Follow the arrays of a program through its schedule.

    Args:
        hlo: The program.
        head: The first line of its text.

    Raises:
        UnreadableScheduleError: If it is not scheduled, or not understood.
    """
    if "is_scheduled=true" not in head:
        raise UnreadableScheduleError("the program is not scheduled")
    if hlo.unread or not hlo.entry:
        raise UnreadableScheduleError("the program has what is not understood")
    run = _Run(hlo)
    run.entry(head)
    return _peak(run.buffers)


def _peak(buffers: Sequence[Buffer]) -> Peak:
    """When most is alive, and what that is."""
    taken: set[int] = set()
    for buffer in buffers:
        before = next((b for b in buffer.may_follow if b.end == buffer.start and id(b) not in taken), None)
        if before is not None:
            taken.add(id(before))
            buffer.start += 1
    held = [buffer for buffer in buffers if buffer.kind == "argument"]
    others = [buffer for buffer in buffers if buffer.kind != "argument"]
    events = sorted([(b.start, b.nbytes) for b in others] + [(b.end + 1, -b.nbytes) for b in others])
    level = most = when = 0
    for moment, change in events:
        level += change
        if level > most:
            most, when = level, moment
    alive = [buffer for buffer in others if buffer.start <= when <= buffer.end]
    return Peak(alive=tuple(sorted((*held, *alive), key=lambda buffer: -buffer.nbytes)))


@dataclass(slots=True)
class _Run:
    """One run through the schedule; each computation once wherever it is called."""

    hlo: HloText
    buffers: list[Buffer] = field(default_factory=list)
    now: int = 0

    def entry(self, head: str) -> None:
        """Run the program: its arguments and results have places of their own, those that share one excepted."""
        instructions = self.hlo.computations[self.hlo.entry]
        given = [i for i in instructions.values() if i.opcode == "parameter"]
        arguments = {
            int(made.arguments): [self.new(shape, made, "argument") for shape in made.shapes] for made in given
        }
        root = next(i for i in instructions.values() if i.root)
        aliases = _ALIASES.search(head)
        shared = {
            int(place or 0): arguments[int(argument)][0]
            for place, argument in (_ALIAS.findall(aliases[1]) if aliases else ())
        }
        outputs = [
            shared[place] if place in shared else self.new(shape, root, "output")
            for place, shape in enumerate(root.shapes)
        ]
        for leaf in outputs:
            if leaf is not None and leaf.kind == "output":
                leaf.start = -1
        self.computation(instructions, arguments, outputs)

    def computation(
        self, instructions: Mapping[str, Instruction], arguments: Mapping[int, list[Leaf]], results: list[Leaf]
    ) -> None:
        """Run one computation.

        Args:
            instructions: In the order of its schedule.
            arguments: What it is given.
            results: Where its results are to lie.
        """
        scope = _Scope(run=self, instructions=instructions, arguments=arguments)
        root = next(i for i in instructions.values() if i.root)
        for place, leaf in enumerate(results):
            if leaf is not None:
                scope.put(root.name, place, leaf)
        for instruction in instructions.values():
            self.now += 1
            scope.take(instruction)
        self.read(results)
        self.read(scope.values[root.name])

    def new(self, shape: Shape, maker: Instruction, kind: Kind = "temp") -> Leaf:
        """A new place for an array, if it lies in the device's memory."""
        if shape.space != 0 or not shape.tiled_bytes:
            return None
        self.buffers.append(Buffer(shape.tiled_bytes, kind, [maker] if kind != "output" else [], self.now, self.now))
        return self.buffers[-1]

    def write(self, leaves: Sequence[Leaf], maker: Instruction) -> None:
        """What lies there is written now; a result of the program takes no room before."""
        for leaf in leaves:
            if leaf is None:
                continue
            if leaf.start < 0:
                leaf.start = self.now
            if leaf.kind != "argument" and maker not in leaf.makers[-1:]:
                leaf.makers.append(maker)
        self.read(leaves)

    def read(self, leaves: Sequence[Leaf]) -> None:
        """What lies there is needed until now."""
        for leaf in leaves:
            if leaf is not None:
                leaf.end = self.now


@dataclass(slots=True, kw_only=True)
class _Scope:
    """One computation while it runs."""

    run: _Run
    instructions: Mapping[str, Instruction]
    arguments: Mapping[int, list[Leaf]]
    values: dict[str, list[Leaf]] = field(default_factory=dict)
    placed: dict[tuple[str, int], Buffer] = field(default_factory=dict)
    started: dict[str, list[Leaf]] = field(default_factory=dict)

    def put(self, name: str, place: int, leaf: Buffer) -> None:
        """Say where an array of a value is to lie: there its maker puts it."""
        made = self.instructions[name]
        if made.opcode in SAME:
            self.put(made.operands[0], place, leaf)
        elif made.opcode == "tuple":
            for operand in made.operands:
                count = len(self.instructions[operand].shapes)
                if place < count:
                    self.put(operand, place, leaf)
                    break
                place -= count
        elif made.opcode == "get-tuple-element":
            self.put(made.operands[0], self._offset(made) + place, leaf)
        elif made.opcode.endswith(("-done", "-update")):
            self.put(made.operands[0], place, leaf)
        elif made.opcode != "parameter":
            self.placed[name, place] = leaf
            if made.opcode == "while":
                self.put(made.operands[0], place, leaf)
            elif (source := replaced(made, self.run.hlo).get(place)) is not None:
                self.put(source, 0, leaf)

    def _offset(self, read: Instruction) -> int:
        """Which array of a tuple an operation reads first."""
        whole, index = self.instructions[read.operands[0]], _INDEX.search(read.attributes)
        if index is None:
            raise UnreadableScheduleError(f"%{read.name} names no element")
        if len(read.shapes) == 1 and whole.opcode != "tuple":
            return int(index[1])
        if whole.opcode == "tuple":
            return sum(len(self.instructions[name].shapes) for name in whole.operands[: int(index[1])])
        raise UnreadableScheduleError(f"%{read.name} reads a tuple of tuples")

    def take(self, instruction: Instruction) -> None:
        """Run one operation."""
        given = [self.values.get(name, []) for name in instruction.operands]
        opcode = instruction.opcode
        if opcode == "parameter":
            self.values[instruction.name] = self.arguments.get(int(instruction.arguments), [])
        elif opcode in SAME:
            self.values[instruction.name] = given[0]
        elif opcode == "tuple":
            self.values[instruction.name] = [leaf for leaves in given for leaf in leaves]
        elif opcode == "get-tuple-element":
            first = self._offset(instruction)
            self.values[instruction.name] = given[0][first : first + len(instruction.shapes)]
        elif opcode in ("constant", "after-all"):
            self.values[instruction.name] = [None] * len(instruction.shapes)
        else:
            for leaves in given:
                self.run.read(leaves)
            self.values[instruction.name] = self._made(instruction, given)
            self.run.write(self.values[instruction.name], instruction)

    def _made(self, instruction: Instruction, given: list[list[Leaf]]) -> list[Leaf]:
        opcode = instruction.opcode
        if opcode.endswith(("-done", "-update")):
            self.run.read(self.started.get(instruction.operands[0], []))
            self.started[instruction.name] = self.started.get(instruction.operands[0], [])
            return given[0][: len(instruction.shapes)] if opcode.endswith("-done") else given[0]
        if opcode.endswith("-start"):
            self.started[instruction.name] = [leaf for leaves in given for leaf in leaves]
            done = (i for i in self.instructions.values() if i.opcode.endswith("-done"))
            waits = next((i for i in done if self._begin(i) == instruction.name), instruction)
            return self._new(instruction, waits.shapes)
        if opcode == "while":
            state = [self.placed.get((instruction.name, place), leaf) for place, leaf in enumerate(given[0])]
            for name, _ in called(instruction, self.instructions, self.run.hlo):
                body = self.run.hlo.computations[name]
                is_body = len(next(i for i in body.values() if i.root).shapes) == len(state)
                self.run.computation(body, {0: state}, state if is_body else [None])
                self.run.read(state)
            return state
        made = self._new(instruction, instruction.shapes)
        if opcode in ("call", "conditional"):
            inner = [name for name, _ in called(instruction, self.instructions, self.run.hlo)]
            for place, name in enumerate(inner):
                arguments = dict(enumerate(given)) if opcode == "call" else {0: given[place + 1]}
                self.run.computation(self.run.hlo.computations[name], arguments, made)
                for leaves in given:
                    self.run.read(leaves)
        return made

    def _begin(self, done: Instruction) -> str:
        """What an operation waits for."""
        name = done.operands[0] if done.operands else ""
        while name in self.instructions and self.instructions[name].opcode.endswith("-update"):
            name = self.instructions[name].operands[0]
        return name

    def _new(self, instruction: Instruction, shapes: Sequence[Shape]) -> list[Leaf]:
        """Places for what an operation makes: where it is to lie, on what it replaces, or new."""
        instead = replaced(instruction, self.run.hlo)
        found: list[Leaf] = []
        for place, shape in enumerate(shapes):
            leaf: Leaf = self.placed.get((instruction.name, place))
            if leaf is None and place in instead:
                leaf = next(iter(self.values.get(instead[place], [])), None)
            if leaf is None:
                leaf = self.run.new(shape, instruction)
                if leaf is not None and works_in_place(instruction):
                    read = [each for name in instruction.operands for each in self.values.get(name, ())]
                    leaf.may_follow = tuple(
                        each for each in read if each is not None and each.nbytes == leaf.nbytes and each.kind == "temp"
                    )
            found.append(leaf)
        return found
