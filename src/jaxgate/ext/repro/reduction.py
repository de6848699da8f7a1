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
from jaxgate.ext.repro import contents, edit, modules
from jaxgate.ext.repro.compile_server import CompileServer, NoAnswerError
from jaxgate.ext.repro.delta_debugging import Move, Reduction, Step
from jaxgate.ext.repro.jax_code import NotWrittenError, jax_code, lowered_again
from jaxgate.ext.repro.model import REDUCED_FACTS, AnonymousProgram, Reduced
from jaxgate.ext.repro.oracles import Oracle, Programs, ResultOracle, Served, TimeOracle, find_worse
from jaxgate.keep.machine import Machine
from jaxgate.model.outcome import UsageError

COARSE = 8
"""Into how many parts a program is divided to find where it can be cut: the middle is tried first."""


def moves() -> list[Move[Programs]]:
    """Ways to make programs smaller, the boldest first. Both sides lose the same."""
    seats: dict[str, int] = {}  # the seat that each value gets where it becomes an input: no two share one

    def give(programs: Programs, parts: Sequence[str]) -> Programs | None:
        for name in parts:
            seats.setdefault(name, 1000 + len(seats))
        return _all(programs, lambda text: edit.cut(text, inputs=parts, seats=seats))

    def return_one(programs: Programs, parts: Sequence[str]) -> Programs | None:
        return _all(programs, lambda text: edit.cut(text, output=parts[0]))

    return [
        Move(name="has its constants written out", parts=lambda _: ["all"], without=_fold, one_by_one=True),
        Move(name="is given values", parts=_shared, without=give),
        Move(name="returns less", parts=_ranges, without=_return_less, one_by_one=True),
        Move(name="returns one value", parts=_coarse, without=return_one, one_by_one=True),
        Move(name="leaves operations out", parts=_shared, without=_bypass),
        Move(name="does a loop once", parts=_loops, without=_unloop, one_by_one=True),
        Move(name="has smaller arrays", parts=_sizes, without=_resize, one_by_one=True),
        Move(name="counts less far", parts=_numbers, without=_renumber, one_by_one=True),
    ]


def size(programs: Programs) -> tuple[int, ...]:
    """What shall become small: operations, then results, then computed numbers, then bounds of loops."""
    return (
        sum(contents.count(text) for text in programs),
        sum(contents.outputs_of(text) for text in programs),
        sum(contents.elements(text) for text in programs),
        sum(int(number) for text in programs for number in contents.numbers(text)),
    )


def reduce_programs(
    start: Programs, oracle: Oracle, *, budget_s: float, clock: Callable[[], float] = time.monotonic
) -> Iterator[Step[Programs]]:
    """Make programs smaller while they show it; each step was verified."""
    end = clock() + budget_s

    def shows(programs: Programs) -> bool:
        try:
            return oracle(programs)
        except (NoAnswerError, ValueError):  # it may end its compiler: what does not compile or run shows nothing
            return False

    search = Reduction(moves(), shows=shows, size=size, over=lambda: clock() >= end)
    yield from search.steps(start)


def _all(programs: Programs, change: Callable[[str], str | None]) -> Programs | None:
    """All sides, changed; ``None`` if a side cannot be."""
    found: list[str] = []
    for text in programs:
        changed = change(text)
        if changed is None:
            return None
        found.append(changed)
    return tuple(found)


def _shared(programs: Programs) -> list[str]:
    """Values that all sides compute, in the first one's order."""
    first, *others = (contents.values(text) for text in programs)
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
    count = contents.outputs_of(programs[0])
    length, found = count // 2, list[str]()
    while length:
        found += [f"{begin}:{min(begin + length, count)}" for begin in range(0, count, length)]
        length //= 2
    return found


def _return_less(programs: Programs, parts: Sequence[str]) -> Programs | None:
    begin, end = map(int, parts[0].split(":"))
    kept = [number for number in range(contents.outputs_of(programs[0])) if not begin <= number < end]
    return _all(programs, lambda text: edit.cut(text, kept=kept)) if kept else None


def _fold(programs: Programs, _: Sequence[str]) -> Programs | None:
    found = tuple(edit.folded(text) or text for text in programs)
    return found if found != programs else None


def _bypass(programs: Programs, parts: Sequence[str]) -> Programs | None:
    return _all(programs, lambda text: edit.bypassed(text, parts))


def _loops(programs: Programs) -> list[str]:
    return [str(number) for number in range(min(contents.loops(text) for text in programs))]


def _unloop(programs: Programs, parts: Sequence[str]) -> Programs | None:
    return _all(programs, lambda text: edit.without_loop(text, int(parts[0])))


def _sizes(programs: Programs) -> list[str]:
    found = sorted({size for text in programs for size in contents.sizes(text)}, reverse=True)
    return [f"{one}:{other}" for one in found for other in dict.fromkeys((one // 8, one // 2)) if other]


def _resize(programs: Programs, parts: Sequence[str]) -> Programs | None:
    one, other = map(int, parts[0].split(":"))
    return _all(programs, lambda text: edit.resized(text, one, other))


def _numbers(programs: Programs) -> list[str]:
    return sorted({number for text in programs for number in contents.numbers(text)}, key=int, reverse=True)


def _renumber(programs: Programs, parts: Sequence[str]) -> Programs | None:
    return _all(programs, lambda text: edit.renumbered(text, parts[0], int(parts[0]) // 2))


SLOWER = 1.2
"""From here on a longer call is something to reduce: less drowns in the noise of a few rounds."""


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
        try:
            oracle = _oracle(
                servers, start, baseline, now, about=about, least=least, other=python is not None, alone=alone
            )
            begin, before = clock(), size(start)[0]
            progress(f"{before} operations show it: {oracle.describe(start)}")
            best, tries, over = start, 0, False
            try:
                for step in reduce_programs(start, oracle, budget_s=budget_s, clock=clock):
                    best, tries = step.found, step.tries
                    progress(f"{clock() - begin:4.0f} s  {size(best)[0]:>5} operations, {tries} tries: it {step.move}")
            except KeyboardInterrupt:
                over = True
            took = clock() - begin
            code = _code(best, oracle)
            theirs, ours = _programs(best, oracle.served, baseline, now)
            return Reduced(
                baseline=theirs, now=ours, before=before, after=size(best)[0], tries=tries, took_s=took,
                shows=oracle.describe(best), over=over or took >= budget_s, code=code,
                versions=(servers[0].jax, servers[1].jax),
            )  # fmt: skip
        except NoAnswerError as error:
            raise UsageError(f"the programs do not compile as they are: {error}") from error


@contextmanager
def _servers(python: Path | None) -> Iterator[tuple[CompileServer, CompileServer]]:
    """Servers of the baseline's side, and of today's."""
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


def _oracle(
    servers: tuple[CompileServer, CompileServer],
    start: Programs,
    baseline: AnonymousProgram,
    now: AnonymousProgram,
    *,
    about: str,
    least: float | None,
    other: bool,
    alone: Callable[[], None],
) -> Oracle:
    """What shall be shown.

    Raises:
        UsageError: If the programs do not show it.
    """
    options = (now.options if other else baseline.options, now.options)
    served = Served(servers=servers, options=options, donated=(_donated(baseline), _donated(now)))
    if about in ("", *REDUCED_FACTS):
        found = find_worse(served, start, (about,) if about else REDUCED_FACTS, least)
        if found is not None:
            return found
    if about in ("", "time") and len(start) > 1:  # two processes would be two noises
        timed = TimeOracle(served=served, ratio=1.0, alone=alone)
        middle = float(np.median(timed.ratios(start)))
        if middle >= SLOWER:
            return replace(timed, ratio=middle)
    if about in ("", "results"):
        without = {**now.options, **WITHOUT_LIBRARIES.get("cpu", {})}
        wrong = ResultOracle(served=served if other else replace(served, options=(without, now.options)))
        if (len(start) == 1) and wrong(start):
            return wrong
    raise UsageError(
        f"nothing to reduce: {_looked_at(about, one=len(start) == 1)}"
        + ("" if other else "; compare with another environment: --python ENVIRONMENT/bin/python")
    )


def _looked_at(about: str, *, one: bool) -> str:
    """What both sides agree in, and what could not be looked at."""
    if about:
        return f"{about} of both sides agree as far as this can see"
    if one:
        return "facts and results of both sides agree as far as this can see; the time of one program is not compared"
    return "facts and time of both sides agree as far as this can see; results of two programs are not compared"


def _donated(program: AnonymousProgram) -> frozenset[int]:
    return frozenset(program.places[at] for at in program.donated)


def _text(program: AnonymousProgram) -> str:
    return edit.prepared(modules.without_locations(program.payload), program.places)


def _programs(
    best: Programs, served: Served, baseline: AnonymousProgram, now: AnonymousProgram
) -> tuple[AnonymousProgram, AnonymousProgram]:
    """Both sides as programs that a file can hold."""
    found = []
    for side, whole in ((0, baseline), (1, now)):
        small, text = served.program(best, side), best[side] if len(best) > 1 else best[0]
        arrays = replace(
            whole, payload=small.payload, inputs=small.inputs, outputs=small.outputs, donated=small.donated
        )
        found.append(replace(arrays, places=tuple(contents.seats_of(text)), options=dict(small.options)))
    return found[0], found[1]


def _code(best: Programs, oracle: Oracle) -> str:
    """Today's side as JAX code, if it can be written and the code shows it, too."""
    if len(best) > 1:
        return ""
    try:
        code = jax_code(best[0])
        inputs, _ = modules.array_types(modules.parse(best[0]))
        again = edit.prepared(lowered_again(code, inputs), contents.seats_of(best[0]))
        return code if oracle((again,)) else ""
    except (NotWrittenError, NoAnswerError, ValueError):
        return ""
