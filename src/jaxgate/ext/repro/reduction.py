"""What two programs of a case show, and the smallest part of them that still shows it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from jaxgate.ext.opinion.ask import WITHOUT_LIBRARIES
from jaxgate.ext.repro import flat, modules
from jaxgate.ext.repro.compile_server import CompileServer, NoAnswerError
from jaxgate.ext.repro.delta_debugging import Move, Reduction, Step
from jaxgate.ext.repro.flat import FlatProgram
from jaxgate.ext.repro.jax_code import NotWrittenError, jax_code, lowered_again
from jaxgate.ext.repro.model import REDUCED_FACTS, AnonymousProgram, Reduced
from jaxgate.ext.repro.oracles import Oracle, Programs, Sides, call_ratios, find_worse, slower_call, wrong_result
from jaxgate.keep.machine import Machine
from jaxgate.model.outcome import UsageError

COARSE = 8
"""Into how many parts a program is divided to find where it can be cut: the middle is tried first."""
SLOWER = 1.2
"""From here on a longer call is something to reduce: less drowns in the noise of a few rounds."""


def moves() -> list[Move]:
    """Ways to make programs smaller, the boldest first. Both sides lose the same."""
    seats: dict[str, int] = {}  # the seat that each value gets where it becomes an input: no two share one

    def take(text: str, names: Sequence[str]) -> str | None:
        for name in names:
            seats.setdefault(name, 1000 + len(seats))
        return flat.taking(text, {name: seats[name] for name in names})

    def keep_less(text: str, parts: Sequence[str]) -> str | None:
        begin, end = map(int, parts[0].split(":"))
        kept = [number for number in range(FlatProgram(text).outputs) if not begin <= number < end]
        return flat.keeping(text, kept) if kept else None

    def resize(text: str, parts: Sequence[str]) -> str | None:
        one, other = map(int, parts[0].split(":"))
        return flat.resized(text, one, other)

    def move(
        name: str,
        parts: Callable[[Programs], list[str]],
        change: Callable[[str, Sequence[str]], str | None],
        *,
        one_by_one: bool = False,
    ) -> Move:
        def without(programs: Programs, parts: Sequence[str]) -> Programs | None:
            found = tuple(changed for text in programs if (changed := change(text, parts)) is not None)
            return found if len(found) == len(programs) else None

        return Move(name=name, parts=parts, without=without, one_by_one=one_by_one)

    return [
        move("has its constants written out", lambda _: ["all"], lambda text, _: flat.folded(text), one_by_one=True),
        move("is given values", _shared, take),
        move("returns less", _ranges, keep_less, one_by_one=True),
        move("returns one value", _coarse, lambda text, parts: flat.returning(text, parts[0]), one_by_one=True),
        move("leaves operations out", _shared, flat.bypassed),
        move("does a loop once", _loops, lambda text, parts: flat.without_loop(text, int(parts[0])), one_by_one=True),
        move("has smaller arrays", _sizes, resize, one_by_one=True),
        move(
            "counts less far",
            lambda programs: flat.numbers("\n".join(programs)),
            lambda text, parts: flat.renumbered(text, parts[0], int(parts[0]) // 2),
            one_by_one=True,
        ),
    ]


def size(programs: Programs) -> tuple[int, ...]:
    """What shall become small: operations, then results, then computed numbers, then bounds of loops."""
    found = [FlatProgram(text) for text in programs]
    return (
        sum(one.count for one in found),
        sum(one.outputs for one in found),
        sum(one.elements for one in found),
        sum(int(number) for text in programs for number in flat.numbers(text)),
    )


def reduce_programs(
    start: Programs, oracle: Oracle, *, budget_s: float, clock: Callable[[], float] = time.monotonic
) -> Iterator[Step]:
    """Make programs smaller while they show it; each step was verified."""
    end = clock() + budget_s

    def shows(programs: Programs) -> bool:
        try:
            return oracle(programs)[0]
        except (NoAnswerError, ValueError):  # it may end its compiler: what does not compile or run shows nothing
            return False

    search = Reduction(moves(), shows=shows, size=size, over=lambda: clock() >= end)
    yield from search.steps(start)


def _shared(programs: Programs) -> list[str]:
    """Values that all sides compute, in the first one's order."""
    first, *others = (FlatProgram(text).values for text in programs)
    return [name for name in first if all(name in other for other in others)]


def _coarse(programs: Programs) -> list[str]:
    shared = _shared(programs)
    places: list[int] = []
    parts = 2
    while parts <= COARSE:
        places += [len(shared) * part // parts for part in range(1, parts, 2)]
        parts *= 2
    return [shared[place] for place in dict.fromkeys(places) if place < len(shared)]


def _ranges(programs: Programs) -> list[str]:
    """Runs of results that could go: halves, quarters and so on."""
    count = FlatProgram(programs[0]).outputs
    length, found = count // 2, list[str]()
    while length:
        found += [f"{begin}:{min(begin + length, count)}" for begin in range(0, count, length)]
        length //= 2
    return found


def _loops(programs: Programs) -> list[str]:
    return [str(number) for number in range(min(len(FlatProgram(text).loops) for text in programs))]


def _sizes(programs: Programs) -> list[str]:
    found = flat.sizes("\n".join(programs))
    return [f"{one}:{other}" for one in found for other in dict.fromkeys((one // 8, one // 2)) if other]


def reduce_pair(
    baseline: AnonymousProgram,
    now: AnonymousProgram,
    *,
    python: Path | None,
    about: str,
    least: float | None,
    budget_s: float,
    progress: Callable[[str], None],
    clock: Callable[[], float] = time.monotonic,
) -> Reduced:
    """Find what both programs show, and make them smaller while they do.

    ``python`` is the interpreter of another environment, which compiles the baseline's side: today's program is then on both
    sides. ``about`` is one of ``ABOUT``, or empty for whatever is worst. ``least`` is how much worse a fact must stay;
    ``None`` takes a power of what it is. An interruption ends the budget, too, and keeps what was found.

    Raises:
        UsageError: If they show nothing, or run on several devices.
    """
    if now.devices > 1 or baseline.devices > 1:
        raise UsageError("programs for several devices are not reduced; the file without --reduce has them whole")
    one = python is not None or baseline.payload == now.payload
    if one and about == "time":
        raise UsageError("--about time needs two programs: one program in two processes would be two noises")
    start: Programs = (_text(now),) if one else (_text(baseline), _text(now))
    machine = Machine()
    machine.about = "jaxgate repro --reduce"

    def alone() -> None:
        machine.alone(lambda: progress(machine.awaited))

    with machine.hold(progress), _servers(python) as servers:
        sides = Sides(servers=servers, wholes=(now if python is not None else baseline, now))
        try:
            sides, oracle = _question(sides, start, about, least, alone)
            begin, before = clock(), size(start)[0]
            progress(f"{before} operations show it: {oracle(start)[1]}")
            best, tries, over = start, 0, False
            try:
                for step in reduce_programs(start, oracle, budget_s=budget_s, clock=clock):
                    best, tries = step.found, step.tries
                    progress(f"{clock() - begin:4.0f} s  {size(best)[0]:>5} operations, {tries} tries: it {step.move}")
            except KeyboardInterrupt:
                over = True
            took = clock() - begin
            return Reduced(
                baseline=sides.program(best, 0), now=sides.program(best, 1), before=before, after=size(best)[0],
                tries=tries, took_s=took, shows=oracle(best)[1], over=over or took >= budget_s, code=_code(best, oracle),
                versions=(servers[0].jax, servers[1].jax),
            )  # fmt: skip
        except NoAnswerError as error:
            raise UsageError(f"the programs do not compile as they are: {error}") from error


@contextmanager
def _servers(python: Path | None) -> Iterator[tuple[CompileServer, CompileServer]]:
    with ExitStack() as stack:
        here = CompileServer(Path(sys.executable))
        stack.callback(here.close)
        there = here if python is None else CompileServer(python)
        stack.callback(there.close)
        try:
            for server in (there, here):
                server.start()
        except NoAnswerError as error:
            raise UsageError(
                f"{error}; name an interpreter that has jax and NumPy: --python ENVIRONMENT/bin/python"
            ) from None
        yield there, here


def _question(
    sides: Sides, start: Programs, about: str, least: float | None, alone: Callable[[], None]
) -> tuple[Sides, Oracle]:
    """What shall be shown, and the sides that are compared for it."""
    one, here = len(start) == 1, sides.servers[0] is sides.servers[1]
    if about in ("", *REDUCED_FACTS):
        worse = find_worse(sides, start, (about,) if about else REDUCED_FACTS, least)
        if worse is not None:
            return sides, worse
    if about in ("", "time") and not one:
        middle = float(np.median(call_ratios(sides, start, alone)))
        if middle >= SLOWER:
            return sides, slower_call(sides, middle, alone)
    if about in ("", "results") and one:
        if here:  # the same environment, which leaves out what may make results wrong
            _, now = sides.wholes
            right = replace(now, options={**now.options, **WITHOUT_LIBRARIES["cpu"]})
            sides = replace(sides, wholes=(right, now))
        wrong = wrong_result(sides)
        if wrong(start)[0]:
            return sides, wrong
    raise UsageError(
        f"nothing to reduce: {_looked_at(about, one=one)}"
        + ("; compare with another environment: --python ENVIRONMENT/bin/python" if here else "")
    )


def _looked_at(about: str, *, one: bool) -> str:
    if about:
        return f"{about} of both sides agree as far as this can see"
    if one:
        return "facts and results of both sides agree as far as this can see; the time of one program is not compared"
    return "facts and time of both sides agree as far as this can see; results of two programs are not compared"


def _text(program: AnonymousProgram) -> str:
    return flat.prepared(modules.without_locations(program.payload), program.places)


def _code(best: Programs, oracle: Oracle) -> str:
    """Today's side as JAX code, if it can be written and the code shows it, too."""
    if len(best) > 1:
        return ""
    try:
        code = jax_code(best[0])
        inputs, _ = modules.array_types(modules.parse(best[0]))
        again = flat.prepared(lowered_again(code, inputs), FlatProgram(best[0]).seats)
        return code if oracle((again,))[0] else ""
    except (NotWrittenError, NoAnswerError, ValueError):
        return ""
