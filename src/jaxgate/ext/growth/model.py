"""How facts follow a size: what was asked for, what each size has, and the law that its points obey."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from typing import Any

from jaxgate.model.numbers import Strict

TRACED = ("trace_calls", "trace_equations", "stablehlo_ops", "matmul_flops", "constant_bytes", "random_bits")
"""Facts that tracing and lowering decide."""
COMPILED = (
    "temp_bytes", "argument_bytes", "output_bytes", "xla_flops", "collectives", "collective_bytes", "kernels", "copied_bytes",
)  # fmt: skip
"""Facts that the compiler decides, too."""
FACTS = (*TRACED, *COMPILED)
OVER = "growth over"
"""Begins the name of what says the laws of a case."""
LEAST = 3
"""Sizes: two points obey every law."""
_EXACT, _PADDED = 0.01, 0.05
"""Share of the steepest slope within which slopes are equal: of what tracing decides, and of what compilers pad and tile."""


class Law(Enum):
    """How a fact follows a size; the value is its degree, by which laws are compared."""

    FALLS = -1.0, "falls"
    CONSTANT = 0.0, "constant"
    AT_MOST_LINEAR = 1.0, "at most linear"
    LINEAR = 1.0, "linear"
    N_LOG_N = 1.5, "n·log n"
    QUADRATIC = 2.0, "quadratic"
    CUBIC = 3.0, "cubic"
    STEEPER = 4.0, "steeper than cubic"

    @property
    def degree(self) -> float:
        """The power of the size; 4 for all that is steeper."""
        return self.value[0]

    def __str__(self) -> str:
        """The name."""
        return self.value[1]


def law_of(sizes: Sequence[int], counts: Sequence[int], *, padded: bool = False, noise: float = 0.0) -> Law | None:
    """The law that all points, three or more at rising sizes, obey; ``None`` where they rise and fall.

    Slopes between neighbours decide: equal ones are linear, shrinking ones at most linear. Of growing ones a quadratic has
    slopes that grow evenly, and more where lower powers are subtracted: the nearest power is taken.

    What a compiler decides is ``padded``: it pads and tiles, and memory is that of the largest moment, so that slopes are
    equal within more, and a step after a level is at most linear as long as the fact grows less than the size. ``noise`` is
    by how much a count may differ from one process to the next.
    """
    slopes = _slopes(sizes, counts)
    unsure = 2 * noise / min(large - small for small, large in pairwise(sizes))
    slack = (_PADDED if padded else _EXACT) * max(slopes) + unsure
    if max(counts) - min(counts) <= noise:
        return Law.CONSTANT
    if max(slopes) <= unsure and counts[-1] < counts[0]:
        return Law.FALLS
    if min(slopes) < -unsure:
        return None
    if max(slopes) - min(slopes) <= slack:
        return Law.LINEAR
    if all(later <= earlier + slack for earlier, later in pairwise(slopes)):
        return Law.AT_MOST_LINEAR
    if any(later < earlier - slack for earlier, later in pairwise(slopes)):
        return None
    if _obeys(sizes, counts, lambda size: size * math.log(size)):
        return Law.N_LOG_N
    power = _power(sizes[-3:], slopes[-2:])
    law = next((law for law in (Law.QUADRATIC, Law.CUBIC) if power <= law.degree + 0.5), Law.STEEPER)
    step = padded and law is Law.STEEPER and counts[-1] * sizes[0] <= counts[0] * sizes[-1]
    return Law.AT_MOST_LINEAR if step else law


def _obeys(sizes: Sequence[int], counts: Sequence[int], term: Callable[[int], float]) -> bool:
    """Whether ``a + b · term`` through the outer points meets the inner ones to a thousandth of what the fact grows by."""
    low, high = term(sizes[0]), term(sizes[-1])
    grown = counts[-1] - counts[0]
    meant = [counts[0] + grown * (term(size) - low) / (high - low) for size in sizes]
    return all(abs(count - wanted) <= grown / 1000 for count, wanted in zip(counts, meant, strict=True))


def _power(sizes: Sequence[int], slopes: Sequence[float]) -> float:
    """The power of the size whose slopes between three sizes have this ratio, to a hundredth; 4 at most."""
    small, middle, large = sizes
    wanted = slopes[1] / slopes[0] if slopes[0] else math.inf
    for hundredths in range(101, 400):
        power = hundredths / 100
        early, late = float(middle) ** power - float(small) ** power, float(large) ** power - float(middle) ** power
        if late / (large - middle) >= wanted * early / (middle - small):
            return power
    return 4.0


def at_size(
    law: Law | None, sizes: Sequence[int], counts: Sequence[int], size: int, *, padded: bool = False
) -> int | None:
    """What a fact will be at a larger size; ``None`` where its points, three or more at rising sizes, do not say.

    What a compiler decides is ``padded``: then the points must be on the line to a thousandth, as one that has begun to
    choose otherwise goes on; and a curve through three points, which no fourth confirms, foretells nothing.
    """
    slopes = _slopes(sizes, counts)
    last, slope = size - sizes[-1], slopes[-1]
    if law in (Law.CONSTANT, Law.LINEAR):
        return round(counts[-1] + slope * last) if not padded or _even(slopes) else None
    if law is not Law.QUADRATIC:
        return None
    bends = [(after - before) / (sizes[at + 2] - sizes[at]) for at, (before, after) in enumerate(pairwise(slopes))]
    if padded and (len(bends) == 1 or not _even(bends)):
        return None
    return round(counts[-1] + slope * last + bends[-1] * last * (size - sizes[-2]))


def noise_of(fact: str, counts: Sequence[int]) -> float:
    """What a fact may differ by between processes: objects' addresses decide how often tracing compares two, which is a call."""
    return 2 + max(counts) / 1000 if fact == "trace_calls" else 0.0


def _slopes(sizes: Sequence[int], counts: Sequence[int]) -> list[float]:
    """Slopes between neighbours."""
    points = zip(sizes, counts, strict=True)
    return [(after - before) / (large - small) for (small, before), (large, after) in pairwise(points)]


def _even(slopes: Sequence[float]) -> bool:
    """Whether slopes are equal to a thousandth of the steepest."""
    return max(slopes) - min(slopes) <= max(map(abs, slopes)) / 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Grown(Strict):
    """What a case has at each of some sizes."""

    sizes: tuple[int, ...]
    facts: Mapping[str, tuple[int, ...]]  # by name, one for each size; what is not known at all sizes is left out
    # what makes up a fact, by a kind of parts and a name: operations, bytes of their results, functions that tracing calls
    parts: Mapping[str, Mapping[str, tuple[int, ...]]] = field(default_factory=dict)
    # fingerprint of what was compiled where, at each size; empty where that cannot be read
    programs: tuple[str, ...] = ()

    def law(self, fact: str) -> Law | None:
        """The law of a fact."""
        return law_of(self.sizes, self.facts[fact], padded=fact in COMPILED, noise=noise_of(fact, self.facts[fact]))

    def at(self, fact: str, size: int) -> int | None:
        """What a fact will be at a larger size; ``None`` where its points do not say."""
        return at_size(self.law(fact), self.sizes, self.facts[fact], size, padded=fact in COMPILED)

    def differs(self, other: Grown, fact: str) -> bool:
        """Whether a fact is something else there, at any of the same sizes, by more than two processes may differ."""
        pairs = zip(self.facts[fact], other.facts[fact], strict=True)
        return any(abs(ours - theirs) > noise_of(fact, self.facts[fact]) for ours, theirs in pairs)


@dataclass(frozen=True, slots=True)
class GrowthClaim:
    """A fact grows no faster with a size than a power of it, on any hardware and without a baseline."""

    fact: str
    size: str
    degree: float

    def __str__(self) -> str:
        """Read as a formula."""
        return f"{self.fact} over {self.size} ≤ {self.degree:g}"


@dataclass(frozen=True, slots=True)
class grows:  # noqa: N801 - read as a verb
    """``grows("trace_calls", "layers") <= 1``: no faster than linear; 0 is constant, 2 quadratic."""

    fact: str
    size: str

    def __le__(self, degree: float) -> GrowthClaim:
        """Claim it."""
        if self.fact not in FACTS:
            raise ValueError(f"grows({self.fact!r}, …) cannot be checked; expected one of: {', '.join(FACTS)}")
        return GrowthClaim(self.fact, self.size, degree)


class Growth:
    """Sizes to compile a case at, and what must hold between them.

    Args:
        at: Gives the positional arguments of the function at a size, which it gets by keyword: ``at(layers=4)``; arrays or
            ``jax.ShapeDtypeStruct``. Where another size has another function, an ``Alternative`` with both.
        claims: What must hold on any hardware: ``grows("temp_bytes", "seq") <= 1``.
        until: The size for which each fact is foretold, by name.
        sizes: By name three sizes or more, rising.
    """

    def __init__(
        self,
        at: Callable[..., Any],
        /,
        *,
        claims: Sequence[GrowthClaim] = (),
        until: Mapping[str, int] | None = None,
        **sizes: Sequence[int],
    ) -> None:
        self.at, self.claims, self.until = at, tuple(claims), dict(until or {})
        self.sizes = {name: tuple(found) for name, found in sizes.items()}
        if not self.sizes:
            raise ValueError("Growth(at, …) expects sizes by name, such as layers=[2, 4, 8]")
        for name, found in self.sizes.items():
            rising = all(isinstance(size, int) and size > 0 for size in found) and all(
                a < b for a, b in pairwise(found)
            )
            if len(found) < LEAST or not rising:
                raise ValueError(f"{name}= expects {LEAST} sizes or more, whole numbers that rise, found {list(found)}")
        unknown = {claim.size for claim in self.claims} | set(self.until)
        if unknown := unknown - set(self.sizes):
            raise ValueError(f"no sizes were given for {', '.join(sorted(unknown))}; expected {', '.join(self.sizes)}")

    def through(self, change: Callable[[Any], Any]) -> Growth:
        """A copy that changes what ``at`` gives."""

        def at(**size: int) -> Any:
            return change(self.at(**size))

        return Growth(at, claims=self.claims, until=self.until, **self.sizes)
