"""Whether two results of one program, computed in two ways, differ by more than the error of their floats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf, sqrt
from typing import Any

import ml_dtypes
import numpy as np

Values = np.ndarray[Any, Any]
Run = Callable[[Sequence[Values]], Sequence[Values]]
"""Computes the results of a program for other arguments."""

ROUNDINGS = 32
"""Roundings, each as large as it can be, that are always allowed. Of 198 stored programs none differed by more, and two by
more than 16 (2026-11-23; ``docs/opinions.md``)."""
PER_TERM = 0.25
"""Roundings for each number of a sum that is added up in its order: ten million times 0.1 in float32 is off by 0.2."""
PER_ROOT = 4.0
"""Roundings for the root of a sum's length, where both sides add parts side by side."""
SUMMED_EPS = 2.0**-23
"""XLA adds up narrow floats in float32; the interpreter adds them up in their own type."""
PERTURBED = 8.0
"""How many times as far as arguments that are off by one rounding may move a result."""
CHAOS = 0.05
"""A result that one rounding of the arguments moves by more than this share says nothing."""
BEYOND_CHAOS = 100.0
"""Times its largest value that such a result is not off by, if one rounding does not move it as far: memory never written."""
COARSE = 0.5
"""Floats and sums for which this share would have to be allowed say nothing either."""
_SEEDS = (1, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Distance:
    """How far two arrays are apart, where it is worst."""

    # the largest difference, as a share of the largest value of the second; infinite where only one is finite
    relative: float
    place: tuple[int, ...] = ()  # where
    ours: Any = None  # the value there
    theirs: Any = None  # the other one
    count: int = 0  # how many elements differ by more than what is allowed
    size: int = 0  # of how many


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """What came of a comparison."""

    apart: float | None  # the largest distance of all results that were compared; `None` if none was
    wrong: int | None = None  # the first result that differs by more than float error: its number
    distance: Distance = Distance(relative=0.0)  # how far that one is apart
    allowed: float = 0.0  # what float error explains there
    left_alone: tuple[int, ...] = ()  # results, by their numbers, that could not be compared


def compare(
    ours: Sequence[Values], run: Run, inputs: Sequence[Values], *, eps: float, longest_sum: int, in_order: bool
) -> Agreement:
    """Compare a program's results with those of another way to compute them.

    Only where they differ by more than a few roundings the other way is run again, on arguments that are off by one
    rounding: what that moves far is left alone. The program itself is not asked for that, as a wrong one may move far.

    ``eps`` is the distance from 1 to the next number, of the coarsest float in the program; 0 without floats. With
    ``in_order`` the other way adds the numbers of a sum one after another.
    """
    theirs = run(inputs)
    if [found.shape for found in ours] != [found.shape for found in theirs]:
        raise ValueError(f"expected results of the shapes {[found.shape for found in theirs]}, found others")
    least = _largest_float(inputs) or 1.0
    floor = allowed_error(eps, longest_sum, in_order=in_order)
    floors = [floor if is_float(found) else 0.0 for found in theirs]  # of whole numbers nothing is allowed
    far = [distance(a, b, allowed=each, least=least) for a, b, each in zip(ours, theirs, floors, strict=True)]
    left = {number for number, each in enumerate(floors) if each > COARSE}
    suspects = [number for number, found in enumerate(far) if found.relative > floors[number] and number not in left]
    wrong = None
    if suspects:
        moved = _moved(run, inputs, theirs, eps=eps, least=least)
        allowed = [_allowed(each, move) for each, move in zip(floors, moved, strict=True)]
        wrong = next((number for number in suspects if far[number].relative > allowed[number]), None)
        left |= {number for number in suspects if moved[number] > CHAOS and far[number].relative <= allowed[number]}
    compared = [found.relative for number, found in enumerate(far) if number not in left]
    agreement = Agreement(apart=max(compared, default=None if left else 0.0), left_alone=tuple(sorted(left)))
    if wrong is None:
        return agreement
    worst = distance(ours[wrong], theirs[wrong], allowed=allowed[wrong], least=least)
    return replace(agreement, wrong=wrong, distance=worst, allowed=allowed[wrong])


def _largest_float(inputs: Sequence[Values]) -> float:
    """The largest finite float among arguments: seeds, counters and masks are no measure of a result."""
    floats = [_numbers(one) for one in inputs if is_float(one)]
    return max((float(np.max(np.abs(one), where=np.isfinite(one), initial=0.0)) for one in floats), default=0.0)


def _moved(run: Run, inputs: Sequence[Values], theirs: Sequence[Values], *, eps: float, least: float) -> list[float]:
    """How far each result moves where the arguments are off by one rounding."""
    moved = [0.0] * len(theirs)
    for seed in _SEEDS:
        others = run(perturbed(inputs, eps, seed))
        moves = [distance(a, b, allowed=0.0, least=least).relative for a, b in zip(others, theirs, strict=True)]
        moved = list(map(max, moved, moves))
    return moved


def _allowed(floor: float, moved: float) -> float:
    """What float error explains of a result that one rounding of the arguments moves so far."""
    if moved <= CHAOS:
        return max(floor, PERTURBED * moved)
    return BEYOND_CHAOS if moved < BEYOND_CHAOS else inf


def allowed_error(eps: float, longest_sum: int, *, in_order: bool) -> float:
    """The share of a result's largest value that float error alone may explain."""
    of_sums = eps * PER_TERM * longest_sum if in_order else min(eps, SUMMED_EPS) * PER_ROOT * sqrt(longest_sum)
    return max(eps * ROUNDINGS, of_sums)


def distance(ours: Values, theirs: Values, *, allowed: float, least: float = 0.0) -> Distance:
    """How far an array is from another one of its shape, which is the measure.

    A difference up to ``allowed``, a share of the other's largest value, does not count; ``least`` takes the place of that
    value where all of the other are zero.
    """
    exact = ours.dtype.kind in "biu" and theirs.dtype.kind in "biu"
    a, b = _numbers(ours), _numbers(theirs)
    if not a.size:
        return Distance(relative=0.0)
    with np.errstate(all="ignore"):
        same = (
            (ours == theirs) if exact else (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) < _flushed(theirs))
        )
        gap = np.where(same, 0.0, np.abs(a - b))
        largest = float(np.max(np.abs(b), where=np.isfinite(b), initial=0.0)) or least
        relative = np.where(same, 0.0, np.where(np.isfinite(gap) & (largest > 0), gap / (largest or 1.0), inf))
    flat = int(np.argmax(relative))
    place = tuple(int(index) for index in np.unravel_index(flat, a.shape))
    return Distance(
        relative=float(relative.flat[flat]),
        place=place,
        ours=ours[place],
        theirs=theirs[place],
        count=int((relative > allowed).sum()),
        size=a.size,
    )


def perturbed(inputs: Sequence[Values], eps: float, seed: int) -> list[Values]:
    """Arguments whose floats are each off by one rounding of the coarsest type, up or down by chance."""
    chance = np.random.default_rng(seed)
    found = []
    for values in inputs:
        if is_float(values):
            own = float(ml_dtypes.finfo(values.dtype).eps)  # type: ignore[no-untyped-call]  # ml_dtypes has no types
            step = max(eps, own) * chance.choice((-1.0, 1.0), size=values.shape)
            wide = np.complex128 if values.dtype.kind == "c" else np.float64
            with np.errstate(all="ignore"):
                values = (values.astype(wide) * (1 + step)).astype(values.dtype)  # noqa: PLW2901 - the moved ones
        found.append(values)
    return found


def is_float(values: Values) -> bool:
    """Whether values are floats of any width, or complex."""
    return values.dtype.kind in "fc" or (values.dtype.kind == "V" and "int" not in values.dtype.name)


def _flushed(values: Values) -> float:
    """The smallest normal number: XLA makes zeros of smaller ones, others compute with them."""
    return min(float(ml_dtypes.finfo(values.dtype).tiny), 2.0**-126) if is_float(values) else 0.0  # type: ignore[no-untyped-call]  # ml_dtypes has no types


def _numbers(values: Values) -> Values:
    return values.astype(np.complex128 if values.dtype.kind == "c" else np.float64)
