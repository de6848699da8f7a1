"""FLOPs of the matrix products and convolutions of a compiled program, by type of what is multiplied."""

from __future__ import annotations

import re
from collections import Counter
from math import prod

import numpy as np

from jaxgate.observe.hlo.custom_calls import is_opaque, is_product, target_of
from jaxgate.observe.hlo.parser import HloText, Instruction, without_strings
from jaxgate.observe.hlo.shapes import Shape
from jaxgate.observe.hlo.totals import CONTROL, Amounts, Siblings, add_up

_CONTRACTED = re.compile(r'lhs_contracting_dim(?:s=\{|ensions":\[)([0-9," ]*)[\]}]')
_LABELS = re.compile(r"\bdim_labels=(\w+)_(\w+)->(\w+)")
_WINDOW = re.compile(r"\bwindow=\{([^{}]*)\}")


def count_products(hlo: HloText) -> Amounts:
    """Count the products of one call on one device: two FLOPs for each multiply-add."""
    return add_up(hlo, _own, {*CONTROL, "fusion"})


def _own(instruction: Instruction, siblings: Siblings) -> Amounts:
    if is_opaque(instruction):
        return Amounts(more={f"{target_of(instruction)} is opaque": None})
    read = {"dot": _dot, "convolution": _convolution}.get(instruction.opcode)
    if is_product(instruction):
        read = _dot
    if read is None:
        unread = instruction.opcode in ("ragged-dot", "scaled-dot")
        return Amounts(more={f"{instruction.opcode} is not counted": None} if unread else {})
    operands = [siblings[name].shapes for name in instruction.operands[:2]]
    if len(operands) < 2 or any(len(shapes) != 1 for shapes in operands):  # noqa: PLR2004 - left, right
        return Amounts(more={f"%{instruction.name} is not understood": None})
    left, right = operands[0][0], operands[1][0]
    flops = read(instruction, left, right)
    if flops is None:
        return Amounts(more={f"%{instruction.name} is not understood": None})
    widest = max(left, right, key=lambda shape: shape.nbytes / max(prod(shape.dims), 1))
    return Amounts(Counter({widest.element: flops}))


def _dot(instruction: Instruction, left: Shape, right: Shape) -> int | None:
    """Of a dot or a call of cuBLAS, whose result comes first."""
    del right
    found = _CONTRACTED.search(instruction.attributes)
    if found is None or not instruction.shapes:
        return None
    axes = [int(axis) for axis in re.findall(r"[0-9]+", found[1])]
    if any(axis >= len(left.dims) for axis in axes):
        return None
    return 2 * prod(instruction.shapes[0].dims) * prod(left.dims[axis] for axis in axes)


def _convolution(instruction: Instruction, left: Shape, right: Shape) -> int | None:
    """Of a convolution, as TPUs multiply matrices too: taps that fall on padding or between inputs are none.

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
