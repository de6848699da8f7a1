"""What one call of a compiled program asks of one device of a target: products, memory, links.

Each operation reads its operands and writes its results once; a fusion is one operation. What lies in another memory
(VMEM of a TPU) is no traffic, and of what an operation only takes or replaces a part of, that part counts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from functools import partial
from math import prod

import numpy as np

from jaxgate.ext.targets.model import GPUS, Target
from jaxgate.model.roofline import RESOURCES, Demand, Resource
from jaxgate.observe.errors import describe
from jaxgate.observe.hlo.collectives import Collective, read_collectives
from jaxgate.observe.hlo.parser import HloText, Instruction, is_opaque, is_product, target_of, without_strings
from jaxgate.observe.hlo.shapes import Shape
from jaxgate.observe.hlo.totals import CONTROL, FREE, Amounts, Siblings, add_up, computation_of, root_of
from jaxgate.observe.trace.jaxpr_cost import Work

_CONTRACTED = re.compile(r'lhs_contracting_dim(?:s=\{|ensions":\[)([0-9," ]*)[\]}]')
_LABELS = re.compile(r"\bdim_labels=(\w+)_(\w+)->(\w+)")
_WINDOW = re.compile(r"\bwindow=\{([^{}]*)\}")


def count_products(hlo: HloText) -> Amounts:
    """Count the products of one call on one device: two FLOPs for each multiply-add."""
    return add_up(hlo, _own, {*CONTROL, "fusion"})


def _own(instruction: Instruction, siblings: Siblings) -> Amounts:
    opcode = instruction.opcode
    if is_opaque(instruction):
        return _uncounted(f"{target_of(instruction)} is opaque")
    if opcode in ("ragged-dot", "scaled-dot"):
        return _uncounted(f"{opcode} is not counted")
    if opcode not in ("dot", "convolution") and not is_product(instruction):
        return Amounts()
    operands = [siblings[name].shapes for name in instruction.operands[:2]]
    if [len(shapes) for shapes in operands] == [1, 1]:
        (left,), (right,) = operands
        flops = _convolution(instruction, left, right) if opcode == "convolution" else _dot(instruction, left)
        if flops is not None:
            widest = max(left, right, key=lambda shape: shape.nbytes / max(prod(shape.dims), 1))
            return Amounts(Counter({widest.element: flops}))
    return _uncounted(f"%{instruction.name} is not understood")


def _uncounted(reason: str) -> Amounts:
    return Amounts(more={reason: None})


def _dot(instruction: Instruction, left: Shape) -> int | None:
    """FLOPs of a dot, or of a call of cuBLAS, whose result comes first."""
    found = _CONTRACTED.search(instruction.attributes)
    if found is None or not instruction.shapes:
        return None
    axes = [int(axis) for axis in re.findall(r"[0-9]+", found[1])]
    if any(axis >= len(left.dims) for axis in axes):
        return None
    return 2 * prod(instruction.shapes[0].dims) * prod(left.dims[axis] for axis in axes)


def _convolution(instruction: Instruction, left: Shape, right: Shape) -> int | None:
    """FLOPs of a convolution, as TPUs multiply matrices too: taps that fall on padding or between inputs are none.

    Groups need no care: the kernel has the features of one group, and the result the batches of one.
    """
    attributes = without_strings(instruction.attributes)
    labels, window = _LABELS.search(attributes), _WINDOW.search(attributes)
    if labels is None or not instruction.shapes:
        return None
    image, kernel, result = labels.groups()
    out = instruction.shapes[0]
    ranks = (len(image), len(kernel), len(result)) == (len(left.dims), len(right.dims), len(out.dims))
    axes = {label for label in kernel if label.isdigit()}
    if not ranks or not axes | {"b", "f"} == set(image) == set(result) or axes | {"i", "o"} != set(kernel):
        return None
    taps = 1
    for axis in axes:
        extents = left.dims[image.index(axis)], right.dims[kernel.index(axis)], out.dims[result.index(axis)]
        taps *= _taps(*extents, _along(window[1] if window else "", int(axis)))
    outputs = out.dims[result.index("b")] * out.dims[result.index("f")]
    return 2 * outputs * right.dims[kernel.index("i")] * taps


def _along(window: str, axis: int) -> dict[str, tuple[int, ...]]:
    """The numbers of a window along one axis: ``size=8 stride=7 pad=0_0 lhs_dilate=8``."""
    found: dict[str, tuple[int, ...]] = {}
    for part in window.split():
        name, _, values = part.partition("=")
        each = values.split("x")
        if axis < len(each):
            found[name] = tuple(int(number) for number in each[axis].split("_") if number.lstrip("-").isdigit())
    return found


def _taps(size: int, taps: int, outputs: int, along: dict[str, tuple[int, ...]]) -> int:
    """How often a tap of the kernel falls on a number of the input, along one axis."""
    stride, before = along.get("stride", (1,))[0], along.get("pad", (0,))[0]
    between, apart = along.get("lhs_dilate", (1,))[0], along.get("rhs_dilate", (1,))[0]
    end = (size - 1) * between + 1
    starts = stride * np.arange(outputs) - before
    count = 0
    for tap in range(taps):
        places = starts + tap * apart
        count += int(np.count_nonzero((places >= 0) & (places < end) & (places % between == 0)))
    return count


_SLICES = frozenset({"dynamic-slice", "gather", "slice"})
"""Operations that take a part of their first operand."""
_UPDATES: Mapping[str, int] = {"dynamic-update-slice": 1, "scatter": 2}
"""Operations that replace a part of their first operand in place, with the place of the operand that says which part."""
BYTES = "bytes"


def count_traffic(hlo: HloText) -> Amounts:
    """Count the bytes that one call moves from and to the memory of one device, under the name ``bytes``."""
    return add_up(hlo, partial(_traffic, hlo), CONTROL)


def _size(shapes: tuple[Shape, ...]) -> int:
    """Bytes of arrays, with their padding."""
    return sum(shape.tiled_bytes for shape in shapes)


def _in_memory(shapes: tuple[Shape, ...]) -> int:
    """Bytes of those in the device's own memory."""
    return _size(tuple(shape for shape in shapes if shape.space == 0))


def _traffic(hlo: HloText, instruction: Instruction, siblings: Siblings) -> Amounts:
    if is_opaque(instruction):
        return _uncounted(f"{target_of(instruction)} is opaque")
    opcode = instruction.opcode
    if opcode in FREE or opcode == "async-update" or (opcode == "custom-call" and not is_product(instruction)):
        return Amounts()
    nbytes = _moved(hlo, instruction, siblings)
    return Amounts(Counter({BYTES: nbytes})) if nbytes else Amounts()


def _moved(hlo: HloText, instruction: Instruction, siblings: Siblings) -> int:
    """What one operation reads and writes."""
    opcode = instruction.opcode
    if opcode.endswith("-start"):
        return 0 if opcode.removesuffix("-start") in _SLICES else _read(hlo, instruction, siblings)
    if opcode.endswith("-done"):
        started = siblings[instruction.operands[0]].opcode if instruction.operands else ""
        read = _size(instruction.shapes) if started.removesuffix("-start") in _SLICES else 0
        return read + (0 if opcode == "async-done" else _in_memory(instruction.shapes))
    read = _read(hlo, instruction, siblings)
    if opcode == "fusion":
        return read + _written(instruction, computation_of(instruction, hlo), hlo)
    if is_product(instruction):
        return read + _in_memory(instruction.shapes[:1])
    whole, replaced = _in_memory(instruction.shapes), _replaced(instruction, siblings)
    return read + (whole if replaced is None else min(whole, replaced))


def _read(hlo: HloText, instruction: Instruction, siblings: Siblings) -> int:
    """What an operation reads of its operands, each once."""
    total = 0
    for name in dict.fromkeys(instruction.operands):
        whole = _in_memory(siblings[name].shapes)
        places = [place for place, other in enumerate(instruction.operands) if other == name]
        total += min(whole, sum(_taken(hlo, instruction, place, whole) for place in places))
    return total


def _taken(hlo: HloText, user: Instruction, place: int, whole: int) -> int:
    """What an operation reads of the operand at a place."""
    if user.opcode == "fusion":
        inside = computation_of(user, hlo)
        return _part(hlo, _parameter(inside, place), inside, whole)
    if place == 0 and user.opcode in _SLICES:
        return _size(user.shapes)
    return 0 if place == 0 and user.opcode in _UPDATES else whole


def _part(hlo: HloText, value: Instruction | None, inside: Siblings, whole: int) -> int:
    """What a fused computation reads of a value: all of it, or what is sliced from it."""
    if value is None:
        return whole
    total = 0
    for user in inside.values():
        for place, name in enumerate(user.operands):
            if name == value.name and user.opcode in ("bitcast", "copy") and not user.root:
                total += _part(hlo, user, inside, whole)
            elif name == value.name:
                total += _taken(hlo, user, place, whole)
    return min(total, whole)


def _parameter(inside: Siblings, number: int) -> Instruction | None:
    return next((i for i in inside.values() if i.opcode == "parameter" and i.arguments == str(number)), None)


def _replaced(update: Instruction, siblings: Siblings) -> int | None:
    """Bytes of the part that an operation replaces in place; ``None`` if it is no such operation."""
    place = _UPDATES.get(update.opcode)
    if place is None or place >= len(update.operands):
        return None
    return _size(siblings[update.operands[place]].shapes)


def _written(fusion: Instruction, inside: Siblings, hlo: HloText) -> int:
    """What a fusion writes."""
    root = root_of(inside)
    makers = [] if root is None else [inside[name] for name in root.operands] if root.opcode == "tuple" else [root]
    if len(makers) != len(fusion.shapes):
        return _in_memory(fusion.shapes)
    pairs = zip(makers, fusion.shapes, strict=True)
    return sum(min(_in_memory((shape,)), _made(maker, inside, hlo, shape)) for maker, shape in pairs)


def _made(maker: Instruction, inside: Siblings, hlo: HloText, shape: Shape) -> int:
    """What is new of a fusion's result: all of it, or what is replaced in an operand."""
    replaced = _replaced(maker, inside)
    if replaced is not None:
        return replaced
    if maker.opcode == "fusion" and len(maker.shapes) == 1:
        return _written(maker, computation_of(maker, hlo), hlo)
    if maker.opcode == "bitcast" and maker.operands:
        return _made(inside[maker.operands[0]], inside, hlo, shape)
    return shape.tiled_bytes


_TYPES = re.compile(r"(\w+)\[")


def read_demand(hlo: HloText, work: Work | None, target: Target, devices: int) -> Demand:
    """Count what a program asks for; whatever it does not show is said to be unknown.

    ``work`` is what JAX traced, on all devices together; ``None`` of a stored program, of which that is not known.
    """
    try:
        products, traffic = count_products(hlo), count_traffic(hlo)
        sent, why = (0, "") if devices == 1 else _sent(hlo, target)
    except Exception as error:  # noqa: BLE001 - a text that nobody promises: a verdict must not be lost over an estimate
        return Demand(unknown=dict.fromkeys(RESOURCES, f"the optimised program cannot be read: {describe(error)}"))
    reasons: dict[Resource, str] = {"compute": _one(products.more), "memory": _one(traffic.more), "communication": why}
    labels = work.matmuls if work else ()
    return Demand(
        flops=dict(products.counts),
        memory_bytes=traffic.counts[BYTES],
        sent_bytes=sent,
        traced_flops=work.matmul_flops // devices if work else 0,
        traced_types=frozenset(name for label in labels for name in _TYPES.findall(label)),
        unknown={resource: reason for resource, reason in reasons.items() if reason},
    )


def _one(reasons: dict[str, None]) -> str:
    first = next(iter(reasons), "")
    return f"{first}, and {len(reasons) - 1} more" if len(reasons) > 1 else first


def _sent(hlo: HloText, target: Target) -> tuple[int, str]:
    """What one device sends at least in one call, and why it may be more."""
    found = read_collectives(hlo)
    if found.unread:
        return 0, f"the optimised program has what is not understood: {found.unread[0]}"
    if any(_leaves_machine(collective, target) for collective in found.found):
        return 0, "the network between machines is not known"
    sure = [one for one in found.found if not one.runs.in_branch and one.kind != "ragged-all-to-all"]
    doubts = {
        "a collective in a branch of a conditional does not count": any(one.runs.in_branch for one in found.found),
        "what a ragged all-to-all sends depends on values": any(one.kind.startswith("ragged") for one in found.found),
        "a loop of unknown length counts once": any(one.runs.unknown_trips for one in sure),
    }
    sent = round(sum(_crossing(one) * one.runs.times for one in sure))
    return sent, "; ".join(reason for reason, holds in doubts.items() if holds)


def _crossing(collective: Collective) -> float:
    """Bytes that a device sends for one execution, whatever the algorithm, where switches do not compute."""
    members = max((len(group) for group in collective.groups or ()), default=1)
    if collective.kind in ("collective-permute", "collective-broadcast"):
        return collective.nbytes
    return (2 if collective.kind == "all-reduce" else 1) * collective.nbytes * (members - 1) / members


def _leaves_machine(collective: Collective, target: Target) -> bool:
    """Whether GPUs of several machines take part together; chips of a slice are all linked."""
    each = int(target.topology.rpartition("x")[2]) if target.chip in GPUS else target.devices
    return any(len({device // each for device in group}) > 1 for group in collective.groups or ())
