"""Matrix products of the same shapes and wider floats than before: slower on every accelerator, also if memory shrinks."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from jaxgate.judge.causes.growth import at, more_of
from jaxgate.judge.causes.quantities import RUN
from jaxgate.model import MAX_NAMED, WIDER_PRODUCTS, Baseline, Cause, Finding, Measurement, Status

_FLOAT = re.compile(r"\b(bfloat16|float\d+|complex\d+|float8_\w+)\[")
_FOLLOWS = RUN | {"widened_bytes", "output_bytes"}
_BITS = re.compile(r"float(\d+)|complex(\d+)")


@dataclass(frozen=True, slots=True)
class WiderProduct:
    """A product of the same shapes as before, of a wider type.

    Attributes:
        before: Its label then.
        now: Its label now.
        count: How many there are.
    """

    before: str
    now: str
    count: int


def wider_products(now: Mapping[str, int], before: Mapping[str, int]) -> list[WiderProduct]:
    """Find products of which there are fewer than before, and as many more of the same shapes and a wider type.

    Args:
        now: Products of one call, by their operands: ``float32[8,64] x float32[64,64]``.
        before: Those of the baseline.
    """
    fewer: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for label, less in more_of(before, now).items():
        fewer[_shapes(label)][label] = less
    found = []
    for label, count in more_of(now, before).items():
        more = count
        for old, left in fewer[_shapes(label)].items():
            moved = min(more, left)
            if moved > 0 and _bits(label) > _bits(old):
                found.append(WiderProduct(old, label, moved))
                fewer[_shapes(label)][old] -= moved
                more -= moved
    return sorted(found, key=lambda one: (-one.count, one.now))


def compare_products(now: Measurement, baseline: Baseline) -> Iterator[Finding]:
    """Red where a product became wider."""
    found = sum(one.count for one in wider_products(now.matmuls, baseline.matmuls))
    if found:
        yield Finding(
            kind="fact",
            name=WIDER_PRODUCTS,
            status=Status.REGRESSED,
            now=found,
            against=0,
            allowed=0,
            detail="matrix products of the same shapes and of wider numbers than before",
        )


def multiplies_wider(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    """Which ones, with the source line of each; the casts around them follow.

    Where one operand alone became wider, the cast that widens it is the cause, and named by itself.
    """
    found = [] if baseline is None else wider_products(now.matmuls, baseline.matmuls)
    if found:
        text = "; ".join([f"{one.before} → {one.now}{at(one.now, now.culprits.lines)}" for one in found[:MAX_NAMED]])
        whole = any(len(set(_FLOAT.findall(one.now))) == 1 for one in found)
        explains = {WIDER_PRODUCTS} | (_FOLLOWS if whole else set())
        yield Cause(text=f"products of wider floats: {text}", explains=frozenset(explains))


def _shapes(label: str) -> str:
    return _FLOAT.sub("[", label)


def _bits(label: str) -> int:
    """Those of the widest operand; of a complex number each part."""
    return max((int(real or 0) or int(both) // 2 for real, both in _BITS.findall(label)), default=0)
