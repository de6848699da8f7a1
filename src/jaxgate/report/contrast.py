"""The sides of contrasts as tables: a step's time, rate, memory and first step, each against the first side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from jaxgate.model.computation import Amount
from jaxgate.model.decision import Status
from jaxgate.model.verdict import Verdict
from jaxgate.model.workloads.contrast import ContrastResult, ContrastSide
from jaxgate.report.printable import aligned, printable_line
from jaxgate.report.units import show, show_rate

HEAD = ("", "a step", "rate", "in one process", "alone", "memory", "first step")
_RIGHT = {1, 2, 3, 4, 5, 6}


def contrast_lines(verdicts: Sequence[Verdict]) -> list[str]:
    """A table for each contrast whose sides do the same; the figures of others would mean nothing."""
    lines: list[str] = []
    for verdict in verdicts:
        if verdict.contrast is None or verdict.status is Status.INVALID:
            continue
        lines += [_title(verdict.case, verdict.contrast), *aligned(_rows(verdict.contrast), right=_RIGHT)]
        lines += [f"  {printable_line(note)}" for note in verdict.contrast.notes]
    return lines


def contrast_json(contrast: ContrastResult) -> dict[str, Any]:
    """The same for machines: each side with its traits, times in nanoseconds, ratios to the first side."""
    return {
        "steps": contrast.steps,
        "differences": [
            asdict(one) | {"error": one.error if math.isfinite(one.error) else None} for one in contrast.differences
        ],
        "sides": [_side_json(side, contrast.sides[0]) for side in contrast.sides],
        "notes": list(contrast.notes),
    }


def _side_json(side: ContrastSide, first: ContrastSide) -> dict[str, Any]:
    launch, base, ratio = side.launch, first.launch, side.ratio
    alone = None if launch is None or base is None else launch.ratio(base)
    return {
        "side": side.name,
        "matmul_flops": side.traits.matmul_flops,
        "products": sorted(side.traits.products),
        "run_ns": side.run_ns,
        "ratio": ratio and ratio.ratio,
        "low": ratio and ratio.low,
        "high": ratio and ratio.high,
        "alone_ns": launch and launch.run_ns,
        "alone_ratio": alone,
        "first_step_ns": launch and launch.first_step_s * 1e9,
        "peak_bytes": launch and launch.peak_bytes,
        "peak_of_device": launch and launch.of_device,
    }


def _title(case: str, contrast: ContrastResult) -> str:
    """What the sides agree on, and how well."""
    apart = max(one.error for one in contrast.differences)
    work = f"{show('matmul_flops', contrast.sides[0].traits.matmul_flops)} of products"
    kinds = ", ".join(sorted(contrast.sides[0].traits.products))
    return printable_line(
        f"{case}: {kinds}, {work} a step; results of {contrast.steps} steps at most {apart:.1g} apart"
    )


def _rows(contrast: ContrastResult) -> list[tuple[str, ...]]:
    first = contrast.sides[0]
    return [HEAD, *(_row(side, first, contrast.amount) for side in contrast.sides)]


def _row(side: ContrastSide, first: ContrastSide, amount: Amount) -> tuple[str, ...]:
    launch, base = side.launch, first.launch
    alone_ns = None if launch is None else launch.run_ns
    together = "1 ×" if side is first else ""
    if side.ratio is not None:
        together = f"{side.ratio.ratio:.2f} × [{side.ratio.low:.2f}, {side.ratio.high:.2f}]"
    alone = "" if launch is None or base is None else f"{launch.ratio(base):.2f} ×"
    return (
        f"  {side.name}",
        "" if alone_ns is None else show("run_ns", alone_ns),
        "" if alone_ns is None else show_rate(amount, alone_ns),
        together if side.run_ns is not None else "",
        "1 ×" if side is first and alone else alone,
        "" if launch is None else show("peak_bytes", launch.peak_bytes),
        "" if launch is None else show("first_step_ns", launch.first_step_s * 1e9),
    )
