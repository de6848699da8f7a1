"""The verdict of a case: claims first, then the baseline, then facts; time by identity.

It also explains a stale baseline: which arguments of its program changed, and whether a setting did it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from jaxgate.ext.energy.model import EnergyRun, NoEnergy, compare_energy, energy_of
from jaxgate.ext.growth.judge import judge_growth
from jaxgate.ext.opinion.model import WrongResultError
from jaxgate.judge.causes.call_causes import compare_compiles, compare_first
from jaxgate.judge.causes.growth import and_more
from jaxgate.judge.causes.program_causes import compare_products
from jaxgate.judge.causes.suspects import rank_causes
from jaxgate.judge.claims import NO_DUEL, check_claims
from jaxgate.judge.difference import Difference, calls_python
from jaxgate.judge.facts import compare_facts
from jaxgate.judge.launched_programs import compare_programs
from jaxgate.judge.order import conclude, red_quantities
from jaxgate.judge.time import against_stored, arrive_worse, judge_time
from jaxgate.judge.timing.phases import compare_phases
from jaxgate.judge.timing.rates import roofline
from jaxgate.model.baseline import StoredBaseline
from jaxgate.model.chips import utilisation
from jaxgate.model.claim import Claim
from jaxgate.model.decision import Decision, Status
from jaxgate.model.duel import ReferenceDuel
from jaxgate.model.measurement import (
    MAX_NAMED,
    SHARED_CORES,
    ExhaustedError,
    InvalidCaseError,
    Leaf,
    MeasuredProgram,
    Measurement,
)
from jaxgate.model.verdict import BaselineNote, Cause, Cost, Evidence, Finding, Origin, TimeVerdict, Verdict
from jaxgate.model.words import shortlist
from jaxgate.model.workload import Tolerance

_KINDS = {True: "plain Python, called as it is (eager=True)", False: "a function under jax.jit"}


def find_stale(difference: Difference) -> Finding | None:
    """Say why a baseline cannot be compared; ``None`` if it can.

    Its program takes other arguments, or it is of another kind of subject.
    """
    now, baseline = difference.now, difference.baseline
    if now.eager != baseline.eager:
        detail = f"it is of {_KINDS[baseline.eager]}, today's subject is {_KINDS[now.eager]}: record it again"
    elif difference.same_arguments:
        return None
    else:
        detail = f"the arguments changed since it was recorded ({_change(now, baseline)})"
    return Finding(kind="baseline", name="stale baseline", status=Status.STALE_BASELINE, detail=detail)


def explain_stale(difference: Difference) -> Iterator[Cause]:
    """Settings of JAX under which arrays are made otherwise, where they are not what the baseline was recorded under.

    With 64-bit mode numbers become wider, another generator has other keys. Where the shapes changed too, or whole
    arguments, no setting did all of it.
    """
    now, baseline, changed = difference.now, difference.baseline, difference.changed_tracing_settings
    if changed and now.eager == baseline.eager:
        pairs = list(zip(now.signature, baseline.signature, strict=False))
        alike = len(now.signature) == len(baseline.signature) and all(_shape(a) == _shape(b) for a, b in pairs)
        text = f"recorded under other settings: {shortlist(changed, MAX_NAMED)}"
        yield Cause(text=text, explains=frozenset({"stale baseline"}), sure=alike)


def _change(now: Measurement, baseline: MeasuredProgram) -> str:
    ours, theirs = now.signature, baseline.signature
    before = {leaf.path: leaf for leaf in theirs}
    if len(ours) != len(theirs):
        paths = {leaf.path for leaf in ours}
        new = [f"{leaf.path} is new" for leaf in ours if leaf.path not in before]
        gone = [f"{leaf.path} is gone" for leaf in theirs if leaf.path not in paths]
        named = f": {shortlist(sorted(new) + sorted(gone), MAX_NAMED, phrases=True)}" if new or gone else ""
        return f"{len(theirs)} arrays then, {len(ours)} now{named}"
    # by path: a renamed key moves its neighbours
    moved = [leaf for leaf in ours if leaf.path not in before or before[leaf.path].aval != leaf.aval]
    if not moved:
        index = next(i for i, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a.aval != b.aval)
        return f"{ours[index].path}: {theirs[index].aval} then, {ours[index].aval} now"
    leaf = max(moved, key=lambda leaf: leaf.nbytes - (before[leaf.path].nbytes if leaf.path in before else 0))
    was = before[leaf.path].aval if leaf.path in before else "not there"
    return f"{leaf.path}: {was} then, {leaf.aval} now{and_more(moved)}"


def _shape(leaf: Leaf) -> str:
    return leaf.aval.partition("[")[2].partition("]")[0]


PYTHON = frozenset({"python_calls", "jax_calls"})
"""Facts of what a call does besides the device program: time that is SAME by identity does not cover them."""
_AT = re.compile(r" at (\S+\.py:\d+)")
"""The line that a cause names."""
NOT_TIMED = TimeVerdict(status=Status.UNDECIDED, reason="not judged")


def judge(
    case: str,
    claims: Iterable[Claim],
    now: Measurement,
    record: StoredBaseline | None,
    *,
    strict: bool,
    tolerances: Iterable[Tolerance] = (),
    elsewhere: Iterable[str] = (),
    decision: Decision | None = None,
    no_duel: str = "no duel was run",
    same_executable: bool = False,
    reference_duel: ReferenceDuel = NO_DUEL,
    duel_energy: tuple[EnergyRun, EnergyRun] | NoEnergy | None = None,
) -> Verdict:
    """Judge one case: its claims always; facts, phases and time against its baseline, where that can be compared.

    ``record`` may be of other hardware of the same platform. ``elsewhere`` is hardware with a baseline that cannot be
    used here. ``duel_energy`` decides nothing.
    """
    tolerances = tuple(tolerances)
    difference = None if record is None else Difference(now, record.baseline)
    stale = None if difference is None else find_stale(difference)
    claimed = list(check_claims(claims, now, reference_duel, tolerances=tolerances))
    if record is None or difference is None:
        held = _without_baseline(case, now, claimed, tuple(elsewhere))
    elif stale:
        time = TimeVerdict(status=Status.STALE_BASELINE, reason="the old program takes other arguments")
        held = _Held([*claimed, stale], time, causes=tuple(explain_stale(difference)))
    else:
        held = _compared(
            difference, record, claimed, tolerances, decision=decision, no_duel=no_duel, same_executable=same_executable
        )
    time = replace(held.time, reason=f"{held.time.reason}; {now.unseen}") if now.unseen else held.time
    baseline = None if record is None or stale else record.baseline  # one of other arguments explains nothing else
    changed = stale.detail if stale else ""
    causes = (*held.causes, *rank_causes(now, baseline, red_quantities(held.findings), changed=changed))
    verdict = measured(case, now, time)
    verdict = replace(
        verdict,
        origin=held.origin,
        causes=causes,
        baseline=BaselineNote(described=describe(record) if record else ""),
        cost=replace(verdict.cost, duel_energy=compare_energy(duel_energy)),
        evidence=Evidence(allocations=now.culprits.allocations or _unread(now), line=_line(now, causes)),
    )
    return conclude(verdict, held.findings, strict=strict)


@dataclass(frozen=True, slots=True)
class _Held:
    """What a case gave that was held against its claims and its baseline."""

    findings: list[Finding]
    time: TimeVerdict
    origin: Origin | None = None
    causes: tuple[Cause, ...] = ()  # what is known without comparing


def _without_baseline(case: str, now: Measurement, claimed: list[Finding], elsewhere: tuple[str, ...]) -> _Held:
    time = TimeVerdict(status=Status.NO_BASELINE, reason="nothing to compare with")
    if python := calls_python(now):
        reason = f"{python}: its time is UNDECIDED unless recorded times judge it (--perf-update=times)"
        time = replace(time, reason=reason, anywhere=True)
    return _Held([*claimed, *judge_growth(now), _missing(case, now, elsewhere)], time)


def _compared(
    difference: Difference,
    record: StoredBaseline,
    claimed: list[Finding],
    tolerances: tuple[Tolerance, ...],
    *,
    decision: Decision | None,
    no_duel: str,
    same_executable: bool,
) -> _Held:
    """Facts, phases and time beside those of a baseline with the same arguments."""
    now, baseline = difference.now, record.baseline
    findings = [
        *claimed,
        *compare_products(now, baseline),
        *compare_compiles(now, baseline),
        *compare_facts(difference, tolerances, recorded=record.recorded),
        *compare_first(now, baseline),
    ]
    same_compiler = difference.same_hardware and not difference.changed_environment
    findings += judge_growth(now, baseline, same_compiler=same_compiler)
    findings += compare_programs(now, baseline, red_quantities(findings))
    findings += compare_phases(difference, record)
    time = judge_time(
        difference,
        decision,
        no_duel,
        same_executable=same_executable,
        arrives_worse=arrive_worse(findings),
        stored=against_stored(difference, record),
    )
    if red_quantities(findings) & PYTHON and time.status is Status.SAME:
        time = replace(time, reason=f"{time.reason}, but each call of it runs more Python")
    if time.decision is not None:
        findings.append(timed(time.decision))
    return _Held(findings, time, difference.origin)


def why_untimed(now: Measurement) -> str:
    """Why no clock speaks of a case, whatever it is held against; empty if one does."""
    if now.hardware.is_virtual:
        return SHARED_CORES
    if now.compiled_only:
        return "no clock is asked"
    return "" if now.samples else "the clock is switched off (--benchmark-disable)"


def measured(case: str, now: Measurement, time: TimeVerdict) -> Verdict:
    """The verdict of a case before anything is found."""
    samples = now.samples
    return Verdict(
        case=case,
        hardware=now.hardware,
        status=Status.SAME,
        fails=False,
        findings=(),
        time=time,
        cost=Cost(
            run_ns=None if samples is None else samples.run_ns,
            p99_ns=None if samples is None else samples.percentile_ns(99),
            amount=now.amount,
            utilisation=utilisation(now),
            roofline=roofline(now.demand, now.hardware),
            energy=energy_of(now.energy),
        ),
    )


def judge_invalid(case: str, error: InvalidCaseError) -> Verdict:
    """The verdict of a case that could not be measured: it fails, always, and no waiver covers it."""
    largest = error.largest if isinstance(error, ExhaustedError) else None
    status = Status.INVALID if largest is None else Status.RESOURCE_EXHAUSTED
    opinion = error.opinion if isinstance(error, WrongResultError) else None
    finding = Finding(kind="case", name=error.stage, status=status, detail=error.reason)
    return Verdict(
        case=case,
        hardware=None,
        status=status,
        fails=True,
        findings=(finding,),
        time=NOT_TIMED,
        evidence=Evidence(allocations=largest or ()),
        opinion=opinion,
    )


def _line(now: Measurement, causes: Sequence[Cause]) -> str:
    named = _AT.search(causes[0].text) if causes else None
    return named[1] if named else now.culprits.begins


def _unread(now: Measurement) -> tuple[str, ...]:
    return (f"not known: {now.unknown['allocations']}",) if "allocations" in now.unknown else ()


def describe(record: StoredBaseline) -> str:
    """One line on where a baseline comes from."""
    baseline = record.baseline
    commit = (baseline.provenance.commit or "")[:10] + ("+changes" if baseline.provenance.dirty else "")
    made = f"{commit} of {baseline.provenance.date}" if commit else f"{baseline.provenance.date}, outside git"
    where = "" if record.own else f", borrowed from {baseline.folder}"
    jax = baseline.environment.get("jax", "?")
    timed = "no time" if baseline.samples is None else f"n={len(baseline.samples.bursts_ns)}"
    return f"{made} (jax {jax}, {timed}{where})"


def timed(decision: Decision) -> Finding:
    """What a decision on time adds to the findings."""
    return Finding(
        kind="time",
        name="run_ns",
        status=decision.status,
        now=decision.now_ns,
        against=decision.baseline_ns,
        allowed=decision.baseline_ns * (1 + decision.margin),
        detail=decision.reason,
    )


def _missing(case: str, now: Measurement, elsewhere: tuple[str, ...]) -> Finding:
    there = f"; there is one for {', '.join(f'`{slug}`' for slug in elsewhere)}" if elsewhere else ""
    return Finding(
        kind="baseline",
        name="no baseline",
        status=Status.NO_BASELINE,
        detail=f"No baseline for `{case}` on `{now.hardware.slug}`{there}.",
    )
