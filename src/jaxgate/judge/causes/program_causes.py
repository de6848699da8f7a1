"""Causes in a program's own work: library routines, ``jax.checkpoint``, and matrix products of wider types."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Literal

from jaxgate.judge.causes.growth import (
    BUFFERS,
    PHASES,
    RUN,
    WORK,
    at,
    count_of,
    elements,
    grown,
    is_plumbing,
    more_of,
    shrunk,
)
from jaxgate.model.baseline import Baseline
from jaxgate.model.decision import Status
from jaxgate.model.measurement import EACH_TURN, MAX_NAMED, Measurement
from jaxgate.model.numbers import WIDER_PRODUCTS
from jaxgate.model.verdict import Cause, Finding

_LINEAR = (
    ("triangular solve", r"triangular_solve|trsm", 1.0),
    ("Cholesky factorisation", r"cholesky|potrf", 0.33),
    ("LU factorisation", r"getrf|lu_?decomposition", 0.67),
    ("QR factorisation", r"geqrf|geqp3|orgqr|ungqr|ormqr|householder|\bqr\b", 1.33),
    ("tridiagonal reduction", r"sytrd|hetrd|tridiagonal", 1.33),
    ("Hessenberg reduction", r"gehrd|hessenberg", 3.3),
    ("eigh", r"syev|heev|eigh", 9.0),
    ("SVD", r"gesdd|gesvd|svd", 20.0),
    ("eig", r"geev|gees|\beig\b|schur", 25.0),
)
"""Name, what its calls are called, and operations for each ``n³`` of a matrix: Golub and Van Loan, Matrix Computations."""
_ORDERING = (
    ("approximate top_k", r"approx_?top_?k", 0.5),
    ("top_k", r"top_?k", 1.0),
    ("sort", r"stablehlo\.sort", 5.0),
)
"""Name, what its calls are called, and operations for each element: a sort brings all of them into order."""
_SIGNIFICANT = 8
"""A routine explains nothing if its arrays are smaller than what else grew by more than this factor."""
_OF_ROUTINES = WORK | PHASES | {"output_bytes", "constant_bytes"}


@dataclass(frozen=True, slots=True)
class _Calls:
    """Calls of one routine on arrays of one shape, as many more or fewer than before as ``cost`` counts."""

    name: str
    label: str
    family: Literal["linear", "ordering"]
    cost: float

    @property
    def shown(self) -> str:
        """``eigh 32x32xf32``."""
        return f"{self.name} {self.label.rpartition(' ')[2]}"


def exchanges_routines(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    """A routine that does more of what another did before, or that nobody called before."""
    if baseline is None:
        return
    grew = more_of(now.operations, baseline.operations)
    gained, lost = _calls(grew), _calls(more_of(baseline.operations, now.operations))
    rest = max((elements(label) for label in grew if not is_plumbing(label)), default=0)
    for family in ("linear", "ordering"):
        come = [one for one in gained if one.family == family]
        gone = [one for one in lost if one.family == family]
        cost, less = sum(one.cost for one in come), sum(one.cost for one in gone)
        if cost <= less or cost * _SIGNIFICANT < rest:
            continue
        where = at(come[0].label, now.culprits.lines)
        if gone:
            text = f"a dearer library routine: {gone[0].shown} → {come[0].shown}{where}"
        else:
            named = "; ".join(
                f"{one.shown} {baseline.operations.get(one.label, 0)} → {now.operations[one.label]}"
                f"{at(one.label, now.culprits.lines)}"
                for one in come[:MAX_NAMED]
            )
            known = come[0].label in baseline.operations
            text = f"a library routine that {'is called more often' if known else 'was not called before'}: {named}"
        products = {"matmul_flops"} if family == "linear" and _makes_products(come[0], now, baseline) else set()
        yield Cause(text=text, explains=_OF_ROUTINES | products, root=True)


def _calls(labels: Mapping[str, int]) -> list[_Calls]:
    """Routines among operations, dearest first; the triangular solves that belong to a factorisation come after it."""
    found = [one for label, count in labels.items() if (one := _routine(label, count))]
    return sorted(found, key=lambda one: (one.name == _LINEAR[0][0], -one.cost, one.label))


def _routine(label: str, count: int) -> _Calls | None:
    called = label.rpartition(" ")[0]
    for name, pattern, each in _LINEAR:
        if re.search(pattern, called, re.IGNORECASE):
            extents = [int(extent) for extent in re.findall(r"(\d+)x", label.rpartition(" ")[2])]
            return _Calls(name, label, "linear", count * each * prod(extents) * max(extents[-2:], default=1))
    for name, pattern, each in _ORDERING:
        if re.search(pattern, called, re.IGNORECASE):
            return _Calls(name, label, "ordering", count * each * elements(label))
    return None


def _makes_products(routine: _Calls, now: Measurement, baseline: Baseline) -> bool:
    """Whether the products that there are more of can be the routine's own, or apply what it gives."""
    size = elements(routine.label)
    more = more_of(now.matmuls, baseline.matmuls)
    return all(min(map(elements, label.split(" x "))) <= size for label in more)


_BARRIER = "stablehlo.optimization_barrier"
_STORE = "stablehlo.dynamic_update_slice"
_READ = "stablehlo.dynamic_slice"
_DEAR = frozenset(
    {
        "stablehlo.cosine", "stablehlo.sine", "stablehlo.tanh", "stablehlo.exponential", "stablehlo.log", "stablehlo.logistic",
        "stablehlo.exponential_minus_one", "stablehlo.log_plus_one", "stablehlo.power", "stablehlo.sqrt", "stablehlo.rsqrt",
        "stablehlo.cbrt", "stablehlo.tan", "stablehlo.atan2", "chlo.erf", "stablehlo.sort", "stablehlo.fft",
        "stablehlo.reduce_window",
    }
)  # fmt: skip
"""What remat is used to compute twice, besides products. Cheap operations come and go with what is kept."""


def keeps_more(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    """Less is computed than before: what remat recomputed is kept now.

    Fewer matrix products show it, if each product of the baseline is still made. Where they are as many, fewer dear operations
    show it, if the baseline held something back by a barrier or today's loops keep more arrays for later.

    Whether memory grew is not asked here: a cause is shown only where a quantity that it explains is red.
    """
    if baseline is None or None in (now.facts.matmul_flops, baseline.facts.matmul_flops):
        return
    turns = [any(label.endswith(EACH_TURN) for label in side.matmuls) for side in (now, baseline)]
    before, after = (count_of(side.operations, _BARRIER) for side in (baseline, now))
    fewer = ""
    if turns[0] == turns[1] and (now.facts.matmul_flops or 0) < (baseline.facts.matmul_flops or 0):
        fewer = shrunk(now.matmuls, baseline.matmuls) if _still_computes(now, baseline) else ""
    elif now.facts.matmul_flops == baseline.facts.matmul_flops and (before or _carries_more(now, baseline)):
        kinds = [{name: count_of(side.operations, name) for name in sorted(_DEAR)} for side in (now, baseline)]
        fewer = shrunk(*kinds) if all(kinds[0][name] <= kinds[1][name] for name in _DEAR) else ""
    if fewer:
        seen = f" (optimization_barrier {before} → {after})" if before > after else ""
        text = f"less is recomputed, so more is kept: remat is lost or keeps more{seen}; {fewer}"
        # the cost model counts what a loop keeps
        yield Cause(text=text, explains=BUFFERS | {"xla_flops", "output_bytes", "kernels"}, root=True)


def recomputes_more(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    """The same products more often, and more barriers or fewer arrays that loops keep: what was kept is made again."""
    if baseline is None or more_of(baseline.matmuls, now.matmuls):
        return
    before, after = (count_of(side.operations, _BARRIER) for side in (baseline, now))
    stored, kept = (count_of(side.operations, _STORE) for side in (baseline, now))
    again = grown(now.matmuls, baseline.matmuls, now.culprits.lines)
    less_is_kept = after > before or (0 < after == before and kept < stored)
    if again and less_is_kept and now.matmuls.keys() == baseline.matmuls.keys():
        seen = f" (optimization_barrier {before} → {after})" if after > before else ""
        text = f"more is recomputed, so less is kept: remat is new or keeps less{seen}; {again}"
        yield Cause(text=text, explains=WORK | PHASES | {"matmul_flops"}, root=True)


def keeps_no_name(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    """Names of a policy of ``jax.checkpoint`` that no array has."""
    if baseline is not None and (now.facts.unmatched_names or 0) > (baseline.facts.unmatched_names or 0):
        names = ", ".join(map(repr, now.culprits.unmatched[:MAX_NAMED]))
        text = f"no array has the name that a policy of jax.checkpoint says: {names}"
        yield Cause(text=text, explains=WORK | {"unmatched_names", "matmul_flops"}, root=True)


def holds_larger_blocks(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    """A kernel that holds more in the fast memory beside a core."""
    if baseline is not None and (now.facts.block_bytes or 0) > (baseline.facts.block_bytes or 0):
        text = f"a kernel holds more at once: {now.culprits.blocks}"
        yield Cause(text=text, explains=WORK | {"block_bytes"})


def held_back_no_more(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    """The same products and fewer barriers: nothing keeps a recomputation from being merged, or done at once."""
    if baseline is None or now.facts.matmul_flops != baseline.facts.matmul_flops:
        return
    before, after = (count_of(side.operations, _BARRIER) for side in (baseline, now))
    if before > after:
        recomputes = baseline.facts.matmul_flops or any(count_of(baseline.operations, name) for name in _DEAR)
        what = (
            "a recomputation is not held back until it is needed"
            if recomputes
            else "what a loop carries may be copied, as nothing holds it back"
        )
        text = f"{what}: optimization_barrier {before} → {after}"
        yield Cause(text=text, explains=BUFFERS | {"largest_batch", "kernels"}, root=True)


def _carries_more(now: Measurement, baseline: Baseline) -> bool:
    """Whether loops store more, and as much more is read again: by the loop that goes back."""
    stored, read = (count_of(now.operations, name) - count_of(baseline.operations, name) for name in (_STORE, _READ))
    return 0 < stored <= read


def _still_computes(now: Measurement, baseline: Baseline) -> bool:
    """Whether each product that is made less often is still made: what is gone altogether is computed in another way."""
    return all(now.matmuls.get(label) for label in baseline.matmuls)


_FLOAT = re.compile(r"\b(bfloat16|float\d+|complex\d+|float8_\w+)\[")
_OF_WIDER = RUN | {"widened_bytes", "output_bytes"}
_BITS = re.compile(r"float(\d+)|complex(\d+)")


@dataclass(frozen=True, slots=True)
class WiderProduct:
    """A product of the same shapes as before, of a wider type."""

    before: str  # its label then
    now: str  # its label now
    count: int  # how many there are


def wider_products(now: Mapping[str, int], before: Mapping[str, int]) -> list[WiderProduct]:
    """Find products of which there are fewer than before, and as many more of the same shapes and a wider type.

    Labels are the operands of a product: ``float32[8,64] x float32[64,64]``.
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
    """Products that became wider, each with its source line; the casts around them follow.

    Where one operand alone became wider, the cast that widens it is the cause, and named by itself.
    """
    found = [] if baseline is None else wider_products(now.matmuls, baseline.matmuls)
    if found:
        text = "; ".join([f"{one.before} → {one.now}{at(one.now, now.culprits.lines)}" for one in found[:MAX_NAMED]])
        whole = any(len(set(_FLOAT.findall(one.now))) == 1 for one in found)
        explains = {WIDER_PRODUCTS} | (_OF_WIDER if whole else set())
        yield Cause(text=f"products of wider floats: {text}", explains=frozenset(explains))


def _shapes(label: str) -> str:
    return _FLOAT.sub("[", label)


def _bits(label: str) -> int:
    """Bits of the widest operand; of a complex number those of each part."""
    return max((int(real or 0) or int(both) // 2 for real, both in _BITS.findall(label)), default=0)
