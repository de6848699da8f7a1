"""Shapes of arrays as HLO writes them, with their layouts: which memory they lie in, and what fills up their tiles."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from math import prod

SHAPE = re.compile(r"([a-z]\w*)\[([^\]]*)\](?:\{([^{}]*)\})?")
"""Element type, extents, layout."""
_BETWEEN = re.compile(r"/\*[^*]*\*/|[(), ]")
_ELEMENT = re.compile(r"(bf|[fsuc])(\d{1,3})(e\d\w*)?")
_NAMES = {"bf": "bfloat", "f": "float", "s": "int", "u": "uint", "c": "complex"}
_WIDTHS = {"pred": 8, "token": 0, "opaque": 0}
_SPACE = re.compile(r"S\(([0-9]{1,3})\)")
_TILES = re.compile(r"T(?:\([1-9][0-9]{0,8}(?:,[1-9][0-9]{0,8})*\))+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One array of a result."""

    dtype: str  # element type as XLA writes it, such as `f32`
    dims: tuple[int, ...]  # extents; of a bounded dynamic dimension its bound
    nbytes: int  # size in bytes on one device, without the padding of its layout
    tiled_bytes: int  # size in bytes with that padding, as far as tiles are printed
    space: int = 0  # number of the memory that it lies in: 0 is the device's own, on TPUs 1 is VMEM
    fastest: int | None = None  # the axis whose elements lie side by side; `None` of a single number

    @property
    def element(self) -> str:
        """Its element type as JAX writes it, such as ``float32``."""
        return self.label.partition("[")[0]

    @property
    def label(self) -> str:
        """The shape as JAX writes it, such as ``float32[64,64]``."""
        match = _ELEMENT.fullmatch(self.dtype)
        name = "bool" if self.dtype == "pred" else self.dtype
        if match:
            name = f"{_NAMES[match[1]]}{match[2]}" + (f"_{match[3]}" if match[3] else "")
        return f"{name}[{','.join(map(str, self.dims))}]"


@lru_cache(maxsize=4096)
def read_shapes(text: str) -> tuple[Shape, ...] | None:
    """Read a shape or a tuple of them, nested or not; nothing if a part is not understood."""
    if not text or _BETWEEN.sub("", SHAPE.sub("", text)):
        return None
    shapes = [_shape(*match.groups()) for match in SHAPE.finditer(text)]
    known = tuple(shape for shape in shapes if shape)
    return known if len(known) == len(shapes) else None


def _shape(dtype: str, extents: str, layout: str | None) -> Shape | None:
    dims = [extent.strip().removeprefix("<=") for extent in extents.split(",")] if extents else []
    match = _ELEMENT.fullmatch(dtype)
    if not (match or dtype in _WIDTHS) or not all(re.fullmatch(r"[0-9]{1,18}", extent) for extent in dims):
        return None
    sizes = tuple(map(int, dims))
    # Elements under one byte take a whole one, unless the layout packs them (``E(4)``).
    packed = re.search(r"E\(([0-9]{1,3})\)", layout or "")
    bits = int(packed[1]) if packed else max(int(match[2]), 8) if match else _WIDTHS[dtype]
    space = _SPACE.search(layout or "")
    order = re.match(r"[0-9]{1,9}", layout or "")
    return Shape(
        dtype=dtype,
        dims=sizes,
        nbytes=-(-prod(sizes) * bits // 8),
        tiled_bytes=-(-_tiled(sizes, layout or "") * bits // 8),
        space=int(space[1]) if space else 0,
        fastest=int(order[0]) if order else len(sizes) - 1 if sizes else None,
    )


def _tiled(dims: tuple[int, ...], layout: str) -> int:
    """Elements of an array with those that fill up its tiles: ``{1,0:T(8,128)(2,1)}``, the fastest axis first.

    Each tile divides the last axes that the one before it left; an axis that is no multiple is filled up.
    """
    order, _, rest = layout.partition(":")
    tiles = _TILES.search(rest)
    if tiles is None:
        return prod(dims)
    axes = [int(axis) for axis in re.findall(r"[0-9]{1,9}", order)]
    extents = [dims[axis] for axis in reversed(axes)] if sorted(axes) == list(range(len(dims))) else list(dims)
    for tile in re.findall(r"\(([0-9,]+)\)", tiles[0]):
        edges = [int(edge) for edge in tile.split(",")]
        extents = [1] * (len(edges) - len(extents)) + extents
        cut_off = len(extents) - len(edges)
        counts = [-(-extent // edge) for extent, edge in zip(extents[cut_off:], edges, strict=True)]
        extents = extents[:cut_off] + counts + edges
    return prod(extents)
