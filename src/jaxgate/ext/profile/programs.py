"""The two sides that are profiled, and both programs as text with what differs: for a bundle, never for a verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import jax

from jaxgate.ext.profile.model import Side
from jaxgate.model.program import StoredProgram
from jaxgate.model.roofline import Demand
from jaxgate.observe.arguments.carry import advance
from jaxgate.observe.arguments.feeder import Call
from jaxgate.observe.duel.duel import Contender, prepare
from jaxgate.observe.execute.subjects import EagerSubject, JittedSubject
from jaxgate.observe.hlo.demand import read_demand
from jaxgate.observe.hlo.diff import program_diff, readable
from jaxgate.observe.hlo.parser import read_hlo
from jaxgate.observe.observation import Observation
from jaxgate.observe.program.export import NotReplayableError, read_program, split_call
from jaxgate.observe.trace.lowering import Lowered


def _refuse(*_: Any) -> Any:
    raise NotReplayableError("a program that was compiled for a target cannot be called here")


@dataclass(frozen=True, slots=True, kw_only=True)
class Profiled:
    """A program that can be stepped, unless it was compiled for a target."""

    side: Side  # whose it is
    fresh: Callable[[], Any] = _refuse  # makes arguments that a step may consume
    step: Callable[[Any], Any] = _refuse  # calls it once and waits; gives the result
    # the arguments of the next step, from the last ones and the result
    following: Callable[[Any, Any], Any] = _refuse
    # makes it compile again at its next call; `None` where that is not asked for
    forget: Callable[[], None] | None = None
    executable: jax.stages.Compiled | None = None  # what was compiled; `None` for plain Python around programs
    stablehlo: str = ""  # its program as text; empty if there is none
    jaxpr: str = ""  # what JAX traced, as text; empty where that is not known


def today(observed: Observation, *, cold: bool) -> Profiled:
    """Today's program; ``cold`` makes its steps compile what they compile after the first one, as a retrace does."""
    if observed.lowered is None:
        return _on_host(observed, "now", observed.function)
    return _lowered(observed, observed.lowered, observed.feeds, "now", cold=cold)


def reference(observed: Observation) -> Profiled | None:
    """The case's naive way, if it has one."""
    if observed.reference is not None:
        return _lowered(observed, observed.reference, observed.reference_feeds, "reference", cold=False)
    function = observed.reference_function
    return None if function is None else _on_host(observed, "reference", function)


def stored(program: StoredProgram, observed: Observation, contender: Contender | None = None) -> Profiled:
    """The baseline's program, compiled here for the arguments of the case, unless it was for their duel.

    Raises:
        NotReplayableError: If it cannot be read, compiled or called with them.
    """
    stablehlo = read_program(program).mlir_module()
    if observed.target is not None and observed.lowered is not None:
        recompiled: Any = observed.target.recompile(program, observed.lowered)
        return Profiled(side="baseline", executable=recompiled, stablehlo=stablehlo)
    there = contender or prepare(program, observed.leaves(), observed.contract)

    def following(leaves: Sequence[Any], output: Sequence[Any]) -> Sequence[Any]:
        return cast("Sequence[Any]", there.feeder.fresh()[0]) if there.consumed else there.following(leaves, output)

    return Profiled(
        side="baseline",
        fresh=lambda: there.feeder.fresh()[0],
        step=lambda leaves: jax.block_until_ready(there.call(leaves)),
        following=following,
        executable=there.function,
        stablehlo=stablehlo,
    )


def _lowered(
    observed: Observation, lowered: Lowered, feeds: tuple[int | None, ...] | None, side: Side, *, cold: bool
) -> Profiled:
    stablehlo, jaxpr = lowered.stage.as_text(), str(lowered.traced.jaxpr)
    if observed.target is not None:
        compiled: Any = observed.executable
        return Profiled(side=side, executable=compiled, stablehlo=stablehlo, jaxpr=jaxpr)
    subject = JittedSubject.of(lowered, observed.call)
    function: Any = lowered.function

    def following(call: Call, output: Any) -> Call:
        if cold and observed.next_args is not None:
            threaded = advance(observed.next_args, output, call)
            return subject.fresh() if threaded is None else subject.placed(threaded)
        if feeds is None:
            return subject.fresh()
        leaves, rebuild = split_call(lowered, call)
        results = jax.tree.leaves(output)
        return rebuild([leaf if feed is None else results[feed] for leaf, feed in zip(leaves, feeds, strict=True)])

    return Profiled(
        side=side,
        fresh=subject.fresh,
        step=subject.call,
        following=following,
        forget=function.clear_cache if cold else None,
        executable=lowered.stage.compile(),  # JAX has that of today's program since it was observed
        stablehlo=stablehlo,
        jaxpr=jaxpr,
    )


def _on_host(observed: Observation, side: Side, function: Callable[..., Any] | None) -> Profiled:
    if function is None:
        raise ValueError("expected a function, found none")
    subject = EagerSubject(function, observed.call, side)
    return Profiled(side=side, fresh=subject.fresh, step=subject.call, following=lambda *_: subject.fresh())


DIFF_LINES = 500
MAX_CHARACTERS = 300_000
"""Of one file: an unrolled loop goes on for more, and nobody reads that far."""


def texts_of(observed: Observation, sides: Sequence[Profiled]) -> dict[str, str]:
    """The files of a bundle that hold text, of today's side, which comes first, and perhaps of another.

    Returns:
        Contents by name: ``now.stablehlo.txt``, ``now.hlo.txt``, the other side's, the two differences of
        normalised text, ``now.jaxpr.txt``, and ``retraces.txt`` where something was traced or compiled again.
    """
    found: dict[str, str] = {}
    programs, optimised = [], []
    for side in sides:
        stablehlo = readable(_comparable(observed, side, sides))
        hlo = side.executable.as_text() if side.executable is not None else ""
        programs.append(stablehlo)
        optimised.append(hlo)
        for name, text in (("stablehlo", stablehlo), ("hlo", hlo), ("jaxpr", side.jaxpr if side.side == "now" else "")):
            if text:
                found[f"{side.side}.{name}.txt"] = _cut(text)
    for name, texts in (("stablehlo", programs), ("hlo", optimised)):
        if len(texts) > 1 and all(texts):
            now, other = texts
            lines = program_diff(other, now, limit=DIFF_LINES) or (
                "the two are equal once names and numbers are normalised",
            )
            found[f"{name}.diff"] = _cut("\n".join(lines) + "\n")
    if observed.measurement.culprits.retraces:
        found["retraces.txt"] = "\n".join(observed.measurement.culprits.retraces) + "\n"
    return found


def demands_of(observed: Observation, sides: Sequence[Profiled]) -> dict[Side, Demand]:
    """What a call of each other side asks of one device; nothing without a target."""
    if observed.target is None or observed.lowered is None:
        return {}
    target, devices = observed.target.target, observed.measurement.hardware.devices
    return {
        side.side: read_demand(read_hlo(side.executable.as_text()), None, target, devices)
        for side in sides
        if side.side != "now" and side.executable is not None
    }


def _comparable(observed: Observation, side: Profiled, sides: Sequence[Profiled]) -> str:
    """Today's program in the form in which the baseline's is stored, where that is the other side."""
    exported = side.side == "now" and any(other.side == "baseline" for other in sides) and observed.export()
    return read_program(exported).mlir_module() if exported and exported.record.stored else side.stablehlo


def _cut(text: str) -> str:
    if len(text) <= MAX_CHARACTERS:
        return text
    return f"{text[:MAX_CHARACTERS]}\n… {len(text) - MAX_CHARACTERS:,} more characters\n"
