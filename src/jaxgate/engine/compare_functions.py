"""Compare two functions here and now, without pytest: ``jaxgate.compare(f, g, *args)``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jaxgate.judge.causes.suspects import rank_causes
from jaxgate.judge.difference import Difference
from jaxgate.judge.facts import compare_facts
from jaxgate.judge.order import red_quantities
from jaxgate.judge.timing.duel import LOOKS, decide, is_settled
from jaxgate.keep.cache import ReferenceCache
from jaxgate.model.baseline import Baseline, Provenance
from jaxgate.model.computation import Computation
from jaxgate.model.decision import Decision, Status
from jaxgate.model.measurement import NOT_CALLED
from jaxgate.model.verdict import Cause, Finding
from jaxgate.observe.duel.duel import agree, prepare, run_duel
from jaxgate.observe.measure import observe
from jaxgate.observe.observation import Observation
from jaxgate.observe.program.export import NotReplayableError
from jaxgate.observe.tools import Tools
from jaxgate.report.text import describe_finding
from jaxgate.report.units import show


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionComparison:
    """What two functions differ in."""

    facts: tuple[Finding, ...]  # every fact of the first against the second
    decision: Decision | None  # what the duel said; `None` if none could be run
    why_no_duel: str  # why not; an identical program needs none
    agrees: bool | None  # whether they give the same numbers; `None` if that is unknown
    causes: tuple[Cause, ...] = ()  # what made facts of the first worse, the cause that explains most first

    def __str__(self) -> str:
        """A few lines: time first, then the facts that differ."""
        lines = [f"time   {self._time()}"]
        if self.agrees is not None:
            lines.append("result the same within tolerance" if self.agrees else "result DIFFERENT beyond tolerance")
        moved = [finding for finding in self.facts if finding.status is not Status.SAME]
        lines += [f"fact   {finding.status:<9} {describe_finding(finding)}" for finding in moved]
        if not moved:
            lines.append("fact   all the same within tolerance")
        lines += [f"cause  {cause}" for cause in self.causes[:1]]
        return "\n".join(lines)

    __repr__ = __str__

    def _time(self) -> str:
        if self.decision is None:
            return f"SAME: {self.why_no_duel}" if self.agrees else f"UNDECIDED: {self.why_no_duel}"
        found = self.decision
        calls = f"{show('run_ns', found.now_ns)} against {show('run_ns', found.baseline_ns)}"
        pairs = f"median of pairs {found.ratio:.3f} × [{found.low:.3f}, {found.high:.3f}]"
        return f"{found.status}: {calls}, {pairs}: {found.reason}"


def compare(
    first: Callable[..., Any], second: Callable[..., Any], *args: Any, rtol: float = 1e-4, atol: float = 1e-5
) -> FunctionComparison:
    """Hold one function against another, called with the same arguments: facts, results, and a duel.

    Args:
        first: The function in question; its verdict is relative to the second.
        second: What it is held against.
        args: Arguments of both. Arrays are never consumed.
        rtol: Relative tolerance between results.
        atol: Absolute tolerance between results.

    Raises:
        InvalidCaseError: If one of them cannot be traced, compiled or run.
    """
    sides = [_observe(function, args, rtol, atol) for function in (first, second)]
    now, other = sides
    where = Provenance(commit=None, dirty=False, date="", jaxgate="")
    program = other.export().record
    baseline = Baseline.of(other.measurement, case="second", test="", provenance=where, program=program)
    difference = Difference(now.measurement, baseline)
    facts = tuple(one for one in compare_facts(difference) if one.name != "jitted")  # both are jitted here
    causes = rank_causes(now.measurement, baseline, red_quantities(facts))
    decision, why_not, agrees = None, "", None
    if not difference.why_not_identical:
        why_not = "; ".join(
            filter(None, ("identical program", *dict.fromkeys(side.measurement.unseen for side in sides)))
        )
        return FunctionComparison(facts=facts, decision=None, why_no_duel=why_not, agrees=True)
    if now.measurement.compiled_only:
        return FunctionComparison(facts=facts, decision=None, why_no_duel=NOT_CALLED, agrees=None, causes=causes)
    try:
        left, right = (prepare(side.export(), side.leaves()) for side in sides)
        agrees = agree(left, right, now.closeness)
        duel = run_duel(
            left, right, settled=is_settled, max_pairs=max(LOOKS), platform=now.measurement.hardware.platform
        )
        decision = decide(duel)
    except NotReplayableError as error:
        why_not = str(error)
    return FunctionComparison(facts=facts, decision=decision, why_no_duel=why_not, agrees=agrees, causes=causes)


def _observe(function: Callable[..., Any], args: tuple[Any, ...], rtol: float, atol: float) -> Observation:
    computation = Computation(subject=function, args=args, rtol=rtol, atol=atol)
    return observe(lambda: computation, Tools(store=ReferenceCache(None)))
