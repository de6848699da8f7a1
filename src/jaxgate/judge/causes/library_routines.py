"""Library routines, such as factorisations and sorts: one that is called anew, or in the place of a cheaper one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Literal

from jaxgate.judge.causes.growth import at, elements, is_plumbing, more_of
from jaxgate.judge.causes.quantities import PHASES, WORK
from jaxgate.model import MAX_NAMED, Baseline, Cause, Measurement

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
"""The same for each element: a sort brings all of them into order."""
_SIGNIFICANT = 8
"""A routine on arrays that are smaller by more than this than what else grew explains nothing."""
_EXPLAINS = WORK | PHASES | {"output_bytes", "constant_bytes"}


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
            text = f"a library routine that was not called before: {named}"
        products = {"matmul_flops"} if family == "linear" and _makes_products(come[0], now, baseline) else set()
        yield Cause(text=text, explains=_EXPLAINS | products, root=True)


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
