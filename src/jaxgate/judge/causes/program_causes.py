"""Causes in a program's own work: library routines, ``jax.checkpoint``, and matrix products of wider types."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Literal

from jaxgate.judge.causes.array_causes import copied_more, jumps_more
from jaxgate.judge.causes.growth import (
    BUFFERS,
    PHASES,
    RUN,
    WORK,
    Change,
    count_of,
    elements,
    grown,
    is_plumbing,
    more_of,
    regressed,
    shrunk,
    total_elements,
)
from jaxgate.model.baseline import Baseline
from jaxgate.model.machine import COMPILE_OPTIONS
from jaxgate.model.measurement import EACH_TURN, MAX_NAMED, Measurement
from jaxgate.model.numbers import WIDER_PRODUCTS
from jaxgate.model.verdict import Cause, Finding
from jaxgate.model.words import shortlist

_SOLVE = "triangular solve"
_ROUTINES: tuple[tuple[Literal["linear", "ordering"], str, str, float], ...] = (
    ("linear", _SOLVE, r"triangular_solve|trsm", 1.0),
    ("linear", "Cholesky factorisation", r"cholesky|potrf", 0.33),
    ("linear", "LU factorisation", r"getrf|lu_?decomposition", 0.67),
    ("linear", "QR factorisation", r"geqrf|geqp3|orgqr|ungqr|ormqr|householder|\bqr\b", 1.33),
    ("linear", "tridiagonal reduction", r"sytrd|hetrd|tridiagonal", 1.33),
    ("linear", "Hessenberg reduction", r"gehrd|hessenberg", 3.3),
    ("linear", "eigh", r"syev|heev|eigh", 9.0),
    ("linear", "SVD", r"gesdd|gesvd|svd", 20.0),
    ("linear", "eig", r"geev|gees|\beig\b|schur", 25.0),
    ("ordering", "approximate top_k", r"approx_?top_?k", 0.5),
    ("ordering", "top_k", r"top_?k", 1.0),
    ("ordering", "sort", r"stablehlo\.sort", 5.0),
)
"""Family, name, what its calls are called, and operations: of linear algebra for each ``n³`` of a matrix (Golub and Van Loan,
Matrix Computations), of an ordering for each element (a sort brings all of them into order)."""
_SIGNIFICANT = 8
"""A routine explains nothing if its arrays are smaller than what else grew by more than this factor."""
_OF_ROUTINES = WORK | PHASES | {"output_bytes", "constant_bytes"}


@dataclass(frozen=True, slots=True)
class _Calls:
    """Calls of one routine on arrays of one shape, as many more or fewer than before as ``cost`` counts."""

    family: Literal["linear", "ordering"]
    name: str
    label: str
    cost: float

    @property
    def shown(self) -> str:
        """``eigh 32x32xf32``."""
        return f"{self.name} {self.label.rpartition(' ')[2]}"


def exchanges_routines(change: Change) -> Iterator[Cause]:
    """A routine that does more of what another did before, or that nobody called before."""
    now, before, grew = change.now.operations, change.before.operations, change.more("operations")
    gained, lost = _calls(grew), _calls(change.less("operations"))
    rest = max((elements(label) for label in grew if not is_plumbing(label)), default=0)
    for family in ("linear", "ordering") if change.compared else ():
        come, gone = ([one for one in calls if one.family == family] for calls in (gained, lost))
        cost, less = (sum(one.cost for one in calls) for calls in (come, gone))
        if cost <= less or cost * _SIGNIFICANT < rest:
            continue
        first = come[0]
        if gone:
            text = f"a dearer library routine: {gone[0].shown} → {first.shown}{change.at(first.label)}"
        else:
            named = "; ".join(
                f"{one.shown} {before.get(one.label, 0)} → {now[one.label]}{change.at(one.label)}"
                for one in come[:MAX_NAMED]
            )
            text = f"a library routine that {'is called more often' if first.label in before else 'was not called before'}: {named}"
        products = {"matmul_flops"} if family == "linear" and _makes_products(first, change) else set()
        yield Cause(text=text, explains=_OF_ROUTINES | products, root=True)


def _calls(labels: Mapping[str, int]) -> list[_Calls]:
    """Routines among operations, dearest first; the triangular solves that belong to a factorisation come after it."""
    found = [one for label, count in labels.items() if (one := _routine(label, count))]
    return sorted(found, key=lambda one: (one.name == _SOLVE, -one.cost, one.label))


def _routine(label: str, count: int) -> _Calls | None:
    called, _, type_ = label.rpartition(" ")
    for family, name, pattern, each in _ROUTINES:
        if re.search(pattern, called, re.IGNORECASE):
            extents = [int(extent) for extent in re.findall(r"(\d+)x", type_)]
            size = prod(extents) * max(extents[-2:], default=1) if family == "linear" else elements(label)
            return _Calls(family, name, label, count * each * size)
    return None


def _makes_products(routine: _Calls, change: Change) -> bool:
    """Whether the products that there are more of can be the routine's own, or apply what it gives."""
    size = elements(routine.label)
    return all(min(map(elements, label.split(" x "))) <= size for label in change.more("matmuls"))


def sends(change: Change) -> Iterator[Cause]:
    """Communication that grew."""
    if text := change.grown("collectives"):
        sent = frozenset({"collectives", "collective_bytes"})
        moves = BUFFERS | {"transcendentals", "run_ns", "trace_calls"} if change.compared else frozenset()
        # As many that send as much were only put together otherwise, which follows from something else.
        yield Cause(text=text, explains=sent | moves, sure=not change.compared or change.rose(*sent))


def multiplies(change: Change) -> str:
    """Matrix products, where there is more such work."""
    return change.grown("matmuls") if change.rose("matmul_flops") or not change.compared else ""


def widens(change: Change) -> str:
    """Casts to wider floats, of more elements."""
    text, now, before = change.grown("widened"), change.now.widened, change.before.widened
    more = total_elements(now) > total_elements(before)  # not the same, cut into more pieces
    return f"wider floats: {text}" if text and more else ""


def same_program(change: Change) -> str:
    """The same program, compiled to something else: not the code."""
    now, before, difference = change.now, change.before, change.difference
    if now.eager and not (now.launched_programs and before.launched_programs):  # then names alone are compared
        return ""
    if not difference.same_program:
        return ""
    if difference.same_options is False:
        ours, theirs = now.fingerprints.options, before.fingerprints.options
        return f"the same program, other compiler options: {theirs or 'none'} → {ours or 'none'}"
    changed = difference.changed_environment
    if difference.only_settings:
        named = [line for line in changed if not line.startswith(f"{COMPILE_OPTIONS} ")] or changed
        return f"the same program under other settings: {shortlist(named, MAX_NAMED)}"
    if not changed:
        return ""
    made = jumps_more(change) or copied_more(change) or grown(now.kernels, before.kernels or now.kernels, {})
    text = "the same program in another environment: the compiler makes something else of it"
    return f"{text}: {made}" if made else text


def traced_otherwise(change: Change) -> str:
    """The same source, another program, and settings that act while JAX traces: no line of the project did it."""
    difference = change.difference
    if difference.same_program or not difference.changed_tracing_settings or not difference.same_source:
        return ""
    return f"traced under other settings: {shortlist(difference.changed_tracing_settings, MAX_NAMED)}"


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


def keeps_more(change: Change) -> str:
    """Less is computed than before: what remat recomputed is kept now.

    Fewer matrix products show it, if each product of the baseline is still made: what is gone altogether is computed in another
    way. Where they are as many, fewer dear operations show it, if the baseline held something back by a barrier or today's loops
    keep more arrays for later.

    Whether memory grew is not asked here: a cause is shown only where a quantity that it explains is red.
    """
    now, before = change.now, change.before
    if None in (now.facts.matmul_flops, before.facts.matmul_flops):
        return ""
    in_turns = [any(label.endswith(EACH_TURN) for label in side.matmuls) for side in (now, before)]
    fewer = ""
    if in_turns[0] == in_turns[1] and change.growth("matmul_flops") < 0:
        fewer = shrunk(now.matmuls, before.matmuls) if all(now.matmuls.get(label) for label in before.matmuls) else ""
    elif change.growth("matmul_flops") == 0 and (change.counts(_BARRIER)[1] or _carries_more(change)):
        ours, theirs = ({kind: count_of(side.operations, kind) for kind in sorted(_DEAR)} for side in (now, before))
        fewer = "" if more_of(ours, theirs) else shrunk(ours, theirs)
    if not fewer:
        return ""
    seen = f" ({_barriers(change)})" if change.added(_BARRIER) < 0 else ""
    return f"less is recomputed, so more is kept: remat is lost or keeps more{seen}; {fewer}"


def recomputes_more(change: Change) -> str:
    """The same products more often, and more barriers or fewer arrays that loops keep: what was kept is made again."""
    barriers = change.added(_BARRIER)
    less_is_kept = barriers > 0 or (barriers == 0 < change.counts(_BARRIER)[0] and change.added(_STORE) < 0)
    again = change.grown("matmuls")
    same = change.now.matmuls.keys() == change.before.matmuls.keys() and not change.less("matmuls")
    if not (again and same and less_is_kept):
        return ""
    seen = f" ({_barriers(change)})" if barriers > 0 else ""
    return f"more is recomputed, so less is kept: remat is new or keeps less{seen}; {again}"


def held_back_no_more(change: Change) -> str:
    """The same products and fewer barriers: nothing keeps a recomputation from being merged, or done at once."""
    flops = change.before.facts.matmul_flops
    if change.now.facts.matmul_flops != flops or change.added(_BARRIER) >= 0:
        return ""
    recomputes = flops or any(count_of(change.before.operations, kind) for kind in _DEAR)
    held = "a recomputation is not held back until it is needed"
    what = held if recomputes else "what a loop carries may be copied, as nothing holds it back"
    return f"{what}: {_barriers(change)}"


def _barriers(change: Change) -> str:
    now, before = change.counts(_BARRIER)
    return f"optimization_barrier {before} → {now}"


def _carries_more(change: Change) -> bool:
    """Whether loops store more, and as much more is read again: by the loop that goes back."""
    return 0 < change.added(_STORE) <= change.added(_READ)


_FLOAT = re.compile(r"\b(bfloat16|float\d+|complex\d+|float8_\w+)\[")
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
    if found := sum(one.count for one in wider_products(now.matmuls, baseline.matmuls)):
        yield regressed(WIDER_PRODUCTS, found, 0, "matrix products of the same shapes and of wider numbers than before")


def multiplies_wider(change: Change) -> Iterator[Cause]:
    """Products that became wider, each with its source line; the casts around them follow.

    Where one operand alone became wider, the cast that widens it is the cause, and named by itself.
    """
    if found := wider_products(change.now.matmuls, change.before.matmuls):
        text = "; ".join([f"{one.before} → {one.now}{change.at(one.now)}" for one in found[:MAX_NAMED]])
        whole = any(len(set(_FLOAT.findall(one.now))) == 1 for one in found)
        follows = RUN | {"widened_bytes", "output_bytes"} if whole else frozenset()
        yield Cause(text=f"products of wider floats: {text}", explains=follows | {WIDER_PRODUCTS})


def _shapes(label: str) -> str:
    return _FLOAT.sub("[", label)


def _bits(label: str) -> int:
    """Bits of the widest operand; of a complex number those of each part."""
    return max((int(real or 0) or int(both) // 2 for real, both in _BITS.findall(label)), default=0)
