"""What a smaller program must still show: a fact that is as bad, a wrong result, a call that takes as much longer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jaxgate.ext.opinion.agreement import compare
from jaxgate.ext.opinion.traits import read_traits
from jaxgate.ext.repro import contents, modules, standalone
from jaxgate.ext.repro.compile_server import CompileServer, ServedProgram
from jaxgate.ext.repro.model import REDUCED_FACTS

LESS_IS_WORSE = frozenset({"aliased_bytes"})
AS_BAD = 0.5
"""The power of the ratio that must be left, where nobody says otherwise: of 5.8 x there must be 2.4 x. Parts of a program
that are alike add up to its ratio, and one of them alone shows less."""
WORSE = 1.05
"""A fact is looked at from here on: less comes and goes."""
LEAST_BYTES = 4096
"""A fact that differs by less is another difference: buffers of a few numbers come and go with every edit."""
ROUNDS, AS_SLOW = 15, 0.7
_SEEDS = (1, 2)

Programs = tuple[str, ...]
"""The text of one program, of both sides where they are two: the baseline's first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """Gives the first program to the first server, and the last to the last; both may be one."""

    servers: tuple[CompileServer, CompileServer]  # of the baseline's side and of today's
    options: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {})  # compiler options of each
    # seats of the inputs that each may reuse
    donated: tuple[frozenset[int], frozenset[int]] = (frozenset(), frozenset())

    def program(self, programs: Programs, side: int) -> ServedProgram:
        """One side, as a server takes it."""
        text = programs[side] if len(programs) > 1 else programs[0]
        inputs, outputs = modules.array_types(modules.parse(text))
        seats = contents.seats_of(text)
        return ServedProgram(
            payload=modules.portable(contents.unmarked(text)),
            inputs=tuple(inputs),
            outputs=tuple(outputs),
            donated=tuple(at for at, seat in enumerate(seats) if seat in self.donated[side]),
            options=tuple(sorted(self.options[side].items())),
        )

    def inputs(self, programs: Programs, side: int, seed: int) -> list[np.ndarray[Any, Any]]:
        """Arguments of one side."""
        text = programs[side] if len(programs) > 1 else programs[0]
        kinds, _ = modules.array_types(modules.parse(text))
        draw: Callable[..., np.ndarray[Any, Any]] = standalone.draw  # the file draws them, too
        return [
            draw(seat, kind.dtype, kind.shape, seed) for seat, kind in zip(contents.seats_of(text), kinds, strict=True)
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class FactOracle:
    """A fact of today's side is worse."""

    served: Served  # who compiles
    fact: str  # its name
    least: float  # how much worse it must be: above 1

    def __call__(self, programs: Programs) -> bool:
        """Whether today's fact is worse."""
        theirs, ours = (facts[self.fact] for facts in both_facts(self.served, programs))
        less, more = (ours, theirs) if self.fact in LESS_IS_WORSE else (theirs, ours)
        if self.fact.endswith("bytes") and more - less < LEAST_BYTES:
            return False
        return more >= max(less, 1.0) * self.least

    def describe(self, programs: Programs) -> str:
        """The fact on both sides."""
        theirs, ours = (facts[self.fact] for facts in both_facts(self.served, programs))
        return f"{self.fact} {theirs:,.0f} on the baseline's side, {ours:,.0f} on today's (at least {self.least:.2f} x)"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultOracle:
    """A result differs by more than float error explains, with two sets of inputs.

    What float error explains comes from the program's own types and sums, and from inputs that are off by one rounding:
    a sum near zero does not pass for a wrong one.
    """

    served: Served  # who compiles; the baseline's side is the right one

    def __call__(self, programs: Programs) -> bool:
        """Whether a result differs with each set of inputs."""
        return all(self._wrong(programs, seed) is not None for seed in _SEEDS)

    def describe(self, programs: Programs) -> str:
        """The place of the largest difference."""
        return self._wrong(programs, _SEEDS[0]) or "no result differs"

    def _wrong(self, programs: Programs, seed: int) -> str | None:
        text = programs[-1]
        traits = read_traits(modules.parse(contents.unmarked(text)), self.served.servers[1].platform)
        inputs = self.served.inputs(programs, -1, seed)
        ours = self.served.servers[1].results([self.served.program(programs, 1)], [inputs])[0][0]

        def run(given: Sequence[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
            return self.served.servers[0].results([self.served.program(programs, 0)], [given])[0][0]

        found = compare(ours, run, inputs, eps=traits.eps, longest_sum=traits.longest_sum, in_order=False)
        if found.wrong is None:
            return None
        worst = found.distance
        return (
            f"result {found.wrong}: {worst.ours!s} where {worst.theirs!s} is right; float error explains {found.allowed:.1g} "
            f"of the largest value, {worst.count:,} of {worst.size:,} elements are further off"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeOracle:
    """A call of today's program takes longer than the baseline's, by most of what it did."""

    served: Served  # who compiles; one process, as two are two noises
    ratio: float  # how much longer it took: above 1
    alone: Callable[[], None]  # waits until nobody else works on this machine

    def __call__(self, programs: Programs) -> bool:
        """Whether the middle round takes longer, and three of four rounds are slower at all."""
        low, middle = np.quantile(self.ratios(programs), [0.25, 0.5])
        return bool(low > 1.0 and middle >= 1 + AS_SLOW * (self.ratio - 1))

    def describe(self, programs: Programs) -> str:
        """The middle ratio, with its spread."""
        low, middle, high = np.quantile(self.ratios(programs), [0.1, 0.5, 0.9])
        return f"a call takes {middle:.2f} x as long; 8 in 10 rounds lie between {low:.2f} x and {high:.2f} x"

    def ratios(self, programs: Programs) -> list[float]:
        """The ratio of each round."""
        self.alone()
        sides = [replace(self.served.program(programs, side), quick=False) for side in (0, 1)]
        inputs = [self.served.inputs(programs, side, _SEEDS[0]) for side in (0, -1)]
        return self.served.servers[1].ratios(sides, inputs, ROUNDS)


Oracle = FactOracle | ResultOracle | TimeOracle


def both_facts(served: Served, programs: Programs) -> tuple[dict[str, float], dict[str, float]]:
    """What the compilers say of both sides.

    Raises:
        NoAnswerError: If one does not compile.
    """
    programs_of = [served.program(programs, side) for side in (0, 1)]
    if served.servers[0] is served.servers[1]:
        theirs, ours = served.servers[0].facts(programs_of)
        return theirs, ours
    with ThreadPoolExecutor(2) as pool:  # two processes compile at the same time
        theirs, ours = pool.map(lambda server, one: server.facts([one])[0], served.servers, programs_of)
    return theirs, ours


def find_worse(
    served: Served, programs: Programs, facts: Sequence[str] = REDUCED_FACTS, least: float | None = None
) -> FactOracle | None:
    """The fact that is worst on today's side; ``None`` if none is worse by a twentieth.

    ``least`` is how much worse a smaller program must be; a power of the ratio by default.
    """
    theirs, ours = both_facts(served, programs)
    found: list[tuple[float, FactOracle]] = []
    for fact in facts:
        less, more = (ours, theirs) if fact in LESS_IS_WORSE else (theirs, ours)
        ratio = more[fact] / max(less[fact], 1.0)
        oracle = FactOracle(served=served, fact=fact, least=least or ratio**AS_BAD)
        if ratio > WORSE and oracle(programs):
            found.append((min(ratio, 1e6), oracle))
    return max(found, key=lambda one: one[0])[1] if found else None
