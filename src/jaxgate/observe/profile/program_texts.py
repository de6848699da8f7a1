"""Both programs as text, before and after the compiler, and what differs: for a bundle, never for a verdict."""

from __future__ import annotations

from collections.abc import Sequence

from jaxgate.model import Demand, Side
from jaxgate.observe.hlo import program_diff, read_hlo
from jaxgate.observe.observation import Observation
from jaxgate.observe.profile.profiled_programs import Profiled
from jaxgate.observe.program import read_demand, read_program, readable

DIFF_LINES = 500
MAX_CHARACTERS = 300_000
"""Of one file: an unrolled loop goes on for more, and nobody reads that far."""


def texts_of(observed: Observation, sides: Sequence[Profiled]) -> dict[str, str]:
    """The files of a bundle that hold text, of today's side, which comes first, and perhaps of another.

    Returns:
        Contents by name: ``now.stablehlo.txt``, ``now.hlo.txt``, likewise of the other side, the two differences of
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
    """What calls of the other sides ask of one device, of programs that were compiled for a target."""
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
