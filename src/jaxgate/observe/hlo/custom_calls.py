"""Custom calls of compiled programs: which of them compute nothing, and which are products that can be counted."""

from __future__ import annotations

import re

from jaxgate.observe.hlo.parser import Instruction

_TARGET = re.compile(r'\bcustom_call_target="((?:[^"\\]|\\.)*)"')
_NOTHING = frozenset(
    {
        "AllocateBuffer",
        "AssumeGatherIndicesInBound",
        "AsyncCollectiveDone",
        "AsyncCollectiveStart",
        "ConcatBitcast",
        "GatherScatterIndicesBitpacked",
        "PartitionId",
        "Sharding",
        "SPMDFullToShardShape",
        "SPMDShardToFullShape",
    }
)
"""Marks and views that compilers leave in a program, as seen of TPUs with libtpu 0.0.42 and 0.0.50."""
_PRODUCTS = re.compile(r"__cublas\$(?:gemm|lt\$matmul)")


def target_of(instruction: Instruction) -> str:
    """What a custom call calls; empty for any other operation."""
    if instruction.opcode != "custom-call":
        return ""
    found = _TARGET.search(instruction.attributes)
    return found[1] if found else "a custom call without a target"


def is_opaque(instruction: Instruction) -> bool:
    """Whether an operation calls what a compiler does not show: a kernel, a library."""
    target = target_of(instruction)
    return bool(target) and target not in _NOTHING and not _PRODUCTS.match(target)


def is_product(instruction: Instruction) -> bool:
    """Whether an operation is a call of cuBLAS, which says what it multiplies."""
    return bool(_PRODUCTS.match(target_of(instruction)))
