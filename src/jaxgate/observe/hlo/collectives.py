"""The collectives of a compiled program: what moves between devices, how much, how often, and who asked for it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jaxgate.observe.hlo.parser import (
    COLLECTIVE_WORDS,
    HloText,
    Instruction,
    cut,
    find_holes,
    target_of,
    without_strings,
)
from jaxgate.observe.hlo.replica_groups import Groups, read_groups
from jaxgate.observe.hlo.shapes import Shape
from jaxgate.observe.hlo.totals import Runs, Siblings, count_runs

KINDS = frozenset(
    {
        "all-gather", "all-reduce", "all-to-all", "collective-broadcast", "collective-permute", "ragged-all-to-all",
        "reduce-scatter",
    }
)  # fmt: skip
"""Operations that move data between devices."""
COLLECTIVES = {
    "all_gather": "all-gather",
    "all_gather_invariant": "all-gather",
    "all_gather_reduced": "all-gather",
    "all_to_all": "all-to-all",
    "ragged_all_to_all": "all-to-all",
    "pbroadcast": "collective-broadcast",
    "ppermute": "collective-permute",
    "psend": "collective-permute",
    "pmax": "all-reduce",
    "pmin": "all-reduce",
    "psum": "all-reduce",
    "psum_invariant": "all-reduce",
    "unreduced_psum": "all-reduce",
    "reduce_scatter": "reduce-scatter",
    "unreduced_reduce_scatter": "reduce-scatter",
}
"""Primitive to the name that compilers give it. Asynchronous forms end in ``_start`` and ``_done``."""
_WRITTEN = {"pbroadcast_dynamic", "precv", "preduced", "psum_scatter", "unreduced_pmax", "unreduced_pmin", *COLLECTIVES}
"""Primitives of all collectives that a user writes, as jax 0.10 and 0.12 name them in ``op_name``."""

_LOOKS = re.compile(r"all-|collective|reduce-scatter")
_FOREIGN = re.compile(r"all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|collective|nccl|nvshmem", re.IGNORECASE)
_BOOKKEEPING = frozenset({"AsyncCollectiveStart", "AsyncCollectiveDone"})
"""Operations of a TPU that mark where a collective starts and ends which is printed beside them."""
_CHANNEL = re.compile(r"(?<![\w-])channel_id=([0-9]{1,18})\b")
_MOVES = re.compile(r"(?<![\w-])(?:replica_groups|source_target_pairs)=")
_STEPS = 4
"""Instructions on the way to the nearest line: a partitioner puts copies and slices around what it inserts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collective:
    """One collective of a program."""

    kind: str  # one of :data:`KINDS`
    shape: str  # what it gives on one device, such as `float32[64,64]`; several arrays are joined by `+`
    nbytes: int  # payload of one device and one execution: operands or results, whichever are larger
    runs: Runs  # executions in one call of the program
    groups: Groups | None  # devices that take part together (of a permutation: pairs); `None` if that could not be read
    explicit: bool  # whether the user wrote it; otherwise the partitioner put it there
    line: str  # `file:line` of the project, of its nearest neighbour where it has none; empty if unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Collectives:
    """All collectives that were found, in the order of the text."""

    found: tuple[Collective, ...]  # collectives that were understood
    unread: tuple[str, ...]  # lines that may be or hide one; while there are any, counts and bytes are unknown

    @property
    def inserted(self) -> tuple[Collective, ...]:
        """Those that the partitioner put there."""
        return tuple(collective for collective in self.found if not collective.explicit)


def read_collectives(hlo: HloText) -> Collectives:
    """Find what a compiled program moves between devices."""
    runs, broken = count_runs(hlo)
    unread = [line for line in hlo.unread if COLLECTIVE_WORDS.search(line)]
    unread += [] if hlo.entry else ["no entry computation: collectives are unknown"]
    unread += (*broken, *find_holes(hlo))
    printed: list[_Printed] = []
    for name, siblings in hlo.computations.items():
        starts = any(target_of(i) == "AsyncCollectiveStart" for i in siblings.values())
        for instruction in siblings.values():
            kind = instruction.opcode.removesuffix("-start")
            if kind in KINDS:
                collective, fault = _collective(kind, instruction, siblings, runs.get(name), hlo)
                unread += [f"{fault}: {instruction.opcode} %{instruction.name}"] if fault else []
                printed += [_printed(collective, instruction, starts=starts)] if collective else []
            elif _is_unknown(instruction):
                unread.append(cut(f"%{instruction.name} = {instruction.opcode}(…){instruction.attributes}"))
    return Collectives(found=tuple(_once(printed)), unread=tuple(unread))


@dataclass(frozen=True, slots=True)
class _Printed:
    """A collective as it stands in the text of one computation."""

    collective: Collective
    repeated: tuple[object, ...] | None  # what it shares with its repetitions; `None` where it has none
    starts: bool  # whether the computation is the one that starts it


def _printed(collective: Collective, instruction: Instruction, *, starts: bool) -> _Printed:
    if '"async_collective_fusion_config"' not in instruction.attributes:
        return _Printed(collective, None, starts)
    channel = _CHANNEL.search(instruction.attributes)
    # Without a channel nothing distinguishes two of them: each counts.
    number = channel[1] if channel else id(instruction)
    return _Printed(collective, (number, collective.kind, collective.shape, collective.groups), starts)


def _once(printed: Sequence[_Printed]) -> Iterator[Collective]:
    """Leave out the repetitions of TPU's asynchronous collectives.

    There a collective that overlaps with computation is printed in the fusion that starts it, in each that it overlaps
    with, and in the one that waits for it, under one channel. Elsewhere one channel may serve several collectives.
    """
    started = {each.repeated for each in printed if each.starts}
    seen: set[object] = set()
    for each in printed:
        again = not each.starts if each.repeated in started else each.repeated in seen
        if each.repeated is None or not again:
            seen.add(each.repeated)
            yield each.collective


def _collective(
    kind: str, instruction: Instruction, siblings: Siblings, runs: Runs | None, hlo: HloText
) -> tuple[Collective | None, str]:
    """One collective, and why it is not known in full; an unknown payload or number of runs leaves it out."""
    if runs is None:
        return None, "not reached from the entry"
    payload = _payload(kind, instruction, siblings)
    if payload is None:
        return None, "operands unknown"
    shapes, nbytes = payload
    attributes = without_strings(instruction.attributes)
    groups = read_groups(attributes, kind=kind, replicas=hlo.replica_count, partitions=hlo.num_partitions)
    collective = Collective(
        kind=kind,
        shape=" + ".join(shape.label for shape in shapes),
        nbytes=nbytes,
        runs=runs,
        groups=groups,
        explicit=_is_explicit(instruction, hlo),
        line=line_near(instruction, siblings),
    )
    return collective, "groups not understood" if groups is None else ""


def _payload(kind: str, instruction: Instruction, siblings: Siblings) -> tuple[tuple[Shape, ...], int] | None:
    """The results of a collective and the bytes that one device gives or takes, whichever is more."""
    sources = instruction.operands[:1] if kind == "ragged-all-to-all" else instruction.operands
    if not sources or not all(name in siblings for name in sources):
        return None
    given = [shape for name in sources for shape in siblings[name].shapes]
    taken = instruction.shapes
    if instruction.opcode.endswith("-start"):
        # The result holds the operands, the results and maybe contexts: what waits for it names the results alone.
        waits = (i.shapes for i in siblings.values() if i.opcode == f"{kind}-done" and instruction.name in i.operands)
        count = sum(len(siblings[name].shapes) for name in instruction.operands if name in siblings)
        taken = next(waits, taken[count : 2 * count] if len(taken) >= 2 * count else taken)
    return taken, max(sum(shape.nbytes for shape in given), sum(shape.nbytes for shape in taken))


def line_near(instruction: Instruction, siblings: Siblings) -> str:
    """Its own line, else that of the nearest instruction that it reads or that reads it; empty if none is near."""
    if instruction.line:
        return instruction.line
    seen, front = {instruction.name}, [instruction]
    for _ in range(_STEPS):
        names = [name for one in front for name in one.operands]
        names += [name for name, other in siblings.items() if any(one.name in other.operands for one in front)]
        front = [siblings[name] for name in dict.fromkeys(names) if name in siblings and name not in seen]
        found = next((one.line for one in front if one.line), "")
        if found or not front:
            return found
        seen.update(one.name for one in front)
    return ""


def _is_explicit(instruction: Instruction, hlo: HloText) -> bool:
    """Whether the user wrote a collective, by the primitive it came from."""
    if 'is_spmd_generated="true"' in instruction.attributes:
        return False
    if "/" in instruction.op_name:
        return _is_primitive(instruction.op_name)
    # XLA forgot the name (an all-reduce for a reduce-scatter, say): the parameters of its reduction have it too.
    reduction = re.search(r"(?<![\w-])to_apply=%([\w.\-]+)", instruction.attributes)
    inside = hlo.computations.get(reduction[1], {}) if reduction and not instruction.op_name else {}
    return any(i.opcode == "parameter" and _is_primitive(i.op_name) for i in inside.values())


def _is_primitive(op_name: str) -> bool:
    """Whether all that XLA merged into one operation, ``a/(psum:b/psum)`` or ``a/psum;a/psum``, are collectives."""
    _, merged, rest = op_name.rpartition("/(")
    names = rest.removesuffix(")").split(":") if merged and rest.endswith(")") else op_name.split(";")
    last = [re.sub(r"(\.[0-9]+)$", "", name.rpartition("/")[2]) for name in names]
    return all(re.sub(r"_(start|done)$", "", name) in _WRITTEN for name in last)


def _is_unknown(instruction: Instruction) -> bool:
    """Whether an instruction may move data between devices in a way that is not known here."""
    opcode = instruction.opcode
    if opcode in ("send", "recv"):
        return "is_host_transfer=true" not in instruction.attributes
    if opcode == "custom-call":
        target = target_of(instruction)
        return target not in _BOOKKEEPING and bool(_FOREIGN.search(target) or _MOVES.search(instruction.attributes))
    ends = opcode.removesuffix("-done").removesuffix("-update")
    return ends not in KINDS and bool(_LOOKS.search(opcode) or _MOVES.search(instruction.attributes))
