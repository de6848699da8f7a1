"""What a smaller program must still show: a fact that is as bad, a wrong result, a call that takes as much longer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from jaxgate.ext.opinion.agreement import compare
from jaxgate.ext.opinion.process import Values
from jaxgate.ext.opinion.traits import read_traits
from jaxgate.ext.repro import modules, standalone
from jaxgate.ext.repro.compile_server import CompileServer
from jaxgate.ext.repro.flat import FlatProgram, unmarked
from jaxgate.ext.repro.model import REDUCED_FACTS, AnonymousProgram

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
Oracle = Callable[[Programs], tuple[bool, str]]
"""Says whether programs show it, and what they show, for people. Raises ``NoAnswerError`` if one does not compile or run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """The baseline's side and today's."""

    servers: tuple[CompileServer, CompileServer]  # who compiles each; both may be one
    wholes: tuple[AnonymousProgram, AnonymousProgram]  # as they were at first: options, and what may be reused

    def program(self, programs: Programs, side: int) -> AnonymousProgram:
        """One side as a program that can be compiled; of one program that is both, with this side's options."""
        text, whole = programs[min(side, len(programs) - 1)], self.wholes[side]
        inputs, outputs = modules.array_types(modules.parse(text))
        seats = FlatProgram(text).seats
        reused = {whole.places[at] for at in whole.donated}
        return replace(
            whole,
            payload=modules.portable(unmarked(text)),
            inputs=tuple(inputs),
            places=tuple(seats),
            outputs=tuple(outputs),
            donated=tuple(at for at, seat in enumerate(seats) if seat in reused),
        )

    def facts(self, programs: Programs) -> tuple[dict[str, float], dict[str, float]]:
        """What the compilers say of both.

        Raises:
            NoAnswerError: If one does not compile.
        """
        both = [self.program(programs, side) for side in (0, 1)]
        if self.servers[0] is self.servers[1]:
            theirs, ours = self.servers[0].facts(both)
            return theirs, ours
        with ThreadPoolExecutor(2) as pool:  # two processes compile at the same time
            theirs, ours = pool.map(lambda server, one: server.facts([one])[0], self.servers, both)
        return theirs, ours


def inputs_of(program: AnonymousProgram, seed: int) -> list[Values]:
    """Arguments, as the file draws them."""
    draw: Callable[..., Values] = standalone.draw
    return [draw(seat, kind.dtype, kind.shape, seed) for seat, kind in zip(program.places, program.inputs, strict=True)]


def worse_fact(sides: Sides, fact: str, least: float) -> Oracle:
    """Whether a fact of today's side is worse: ``least`` times, above 1."""

    def oracle(programs: Programs) -> tuple[bool, str]:
        theirs, ours = (facts[fact] for facts in sides.facts(programs))
        said = f"{fact} {theirs:,.0f} on the baseline's side, {ours:,.0f} on today's (at least {least:.2f} x)"
        return _is_worse(fact, theirs, ours, least), said

    return oracle


def find_worse(
    sides: Sides, programs: Programs, facts: Sequence[str] = REDUCED_FACTS, least: float | None = None
) -> Oracle | None:
    """Look for the fact that is worst on today's side; ``None`` if none is worse by a twentieth.

    ``least`` is how much worse a smaller program must be; a power of the ratio by default.
    """
    theirs, ours = sides.facts(programs)
    found: list[tuple[float, str, float]] = []
    for fact in facts:
        less, more = (ours, theirs) if fact in LESS_IS_WORSE else (theirs, ours)
        ratio = more[fact] / max(less[fact], 1.0)
        left = least or ratio**AS_BAD
        if ratio > WORSE and _is_worse(fact, theirs[fact], ours[fact], left):
            found.append((min(ratio, 1e6), fact, left))
    if not found:
        return None
    _, fact, left = max(found, key=lambda one: one[0])
    return worse_fact(sides, fact, left)


def _is_worse(fact: str, theirs: float, ours: float, least: float) -> bool:
    less, more = (ours, theirs) if fact in LESS_IS_WORSE else (theirs, ours)
    if fact.endswith("bytes") and more - less < LEAST_BYTES:
        return False
    return more >= max(less, 1.0) * least


def wrong_result(sides: Sides) -> Oracle:
    """Whether a result differs by more than float error explains, with two sets of inputs; the baseline's is the right one.

    What float error explains comes from the program's own types and sums, and from inputs that are off by one rounding:
    a sum near zero does not pass for a wrong one. The text is of the place of the largest difference.
    """

    def wrong(programs: Programs, seed: int) -> str | None:
        right, judged = (sides.program(programs, side) for side in (0, 1))
        traits = read_traits(modules.parse(unmarked(programs[-1])), sides.servers[1].platform)
        inputs = inputs_of(judged, seed)
        ours = sides.servers[1].results(judged, inputs)
        found = compare(
            ours,
            lambda given: sides.servers[0].results(right, given),
            inputs,
            eps=traits.eps,
            longest_sum=traits.longest_sum,
            in_order=False,
        )
        if found.wrong is None:
            return None
        worst = found.distance
        return (
            f"result {found.wrong}: {worst.ours!s} where {worst.theirs!s} is right; float error explains {found.allowed:.1g} "
            f"of the largest value, {worst.count:,} of {worst.size:,} elements are further off"
        )

    def oracle(programs: Programs) -> tuple[bool, str]:
        said = wrong(programs, _SEEDS[0])
        return said is not None and wrong(programs, _SEEDS[1]) is not None, said or "no result differs"

    return oracle


def slower_call(sides: Sides, ratio: float, alone: Callable[[], None]) -> Oracle:
    """Whether a call of today's program takes longer than the baseline's, by most of the ``ratio`` that it did at first.

    The middle round takes longer, and three of four rounds are slower at all. ``alone`` waits until nobody else works on
    this machine.
    """

    def oracle(programs: Programs) -> tuple[bool, str]:
        low, quarter, middle, high = np.quantile(call_ratios(sides, programs, alone), [0.1, 0.25, 0.5, 0.9])
        said = f"a call takes {middle:.2f} x as long; 8 in 10 rounds lie between {low:.2f} x and {high:.2f} x"
        return bool(quarter > 1.0 and middle >= 1 + AS_SLOW * (ratio - 1)), said

    return oracle


def call_ratios(sides: Sides, programs: Programs, alone: Callable[[], None]) -> list[float]:
    """How much longer a call takes today, in each round: in one process, as two are two noises."""
    alone()
    both = [sides.program(programs, side) for side in (0, 1)]
    return sides.servers[1].ratios(both, [inputs_of(one, _SEEDS[0]) for one in both], ROUNDS)
