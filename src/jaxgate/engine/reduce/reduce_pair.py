"""What two programs of a case show, and the smallest part of them that still shows it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from jaxgate.engine.reduce.oracles import Oracle, Programs, ResultOracle, Served, TimeOracle, find_worse
from jaxgate.engine.reduce.reduction import reduce_programs, size
from jaxgate.keep import Machine
from jaxgate.model import REDUCED_FACTS, AnonymousProgram, Reduced, UsageError
from jaxgate.observe.opinion import WITHOUT_LIBRARIES
from jaxgate.observe.repro import NotWrittenError, contents, edit, jax_code, lowered_again, modules
from jaxgate.processes.compile_server import CompileServer, NoAnswerError

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

    Args:
        baseline: The accepted program.
        now: Today's.
        python: The interpreter of another environment, which compiles the baseline's side: today's program is then on
            both sides.
        about: What they shall show, of ``ABOUT``; empty for whatever is worst.
        least: How much worse a fact must stay; ``None`` for a power of what it is.
        budget_s: Seconds. An interruption ends it, too, and keeps what was found.
        progress: Called with what is being done.
        clock: Seconds of some day.

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
    """Of the baseline's side, and of today's."""
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
