"""Facts of today against facts of the baseline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from jaxgate.judge.causes.growth import count_of
from jaxgate.judge.difference import Difference
from jaxgate.judge.launched_programs import handed_on_bytes
from jaxgate.judge.policy import ARRIVAL_POLICIES, POLICIES
from jaxgate.model.decision import Status
from jaxgate.model.measurement import EACH_TURN, LOOP, MeasuredProgram, Measurement
from jaxgate.model.numbers import ARRIVAL_FACTS, STEADY_FACTS, Facts
from jaxgate.model.policy import FactPolicy
from jaxgate.model.verdict import Finding
from jaxgate.model.words import plural
from jaxgate.model.workload import Tolerance

_COUNTED_IN = {
    "matmul_flops": "matmuls",
    "collectives": "collectives",
    "collective_bytes": "collectives",
    "widened_bytes": "widened",
}
"""Facts that count loops by their length, and the histograms that count loops of unknown length."""
_LOOP_ONCE = frozenset({"xla_flops", "xla_bytes", "transcendentals"})
"""Facts that count the body of a loop once: work moved out of a loop makes them larger, work moved into one smaller.
They are compared all the same where no clock decides: there too much memory may show nowhere else, as on a target."""
_OTHER_VALUES = 1.0
"""Share by which turns may move where arguments have other values: of two draws of random numbers one may need twice as many."""
_UNEQUAL = (
    "work moved into or out of a loop of unknown length, which counts as one turn: it cannot be compared; look at it, "
    "and record it again"
)


_COMPILED = frozenset({"aliased_bytes", "argument_bytes", "output_bytes"})
"""Facts that program and compiler options decide, on every backend."""
_COMPILED_ON_CPU = frozenset({"temp_bytes", "xla_flops", "xla_bytes"})
"""Facts that both decide where the compiler tries nothing out on the device, as it does to tune for a GPU."""
_TRIED_OUT = frozenset(
    {
        "temp_bytes", "peak_bytes", "code_bytes", "kernels", "copied_bytes", "scattered_bytes", "xla_flops",
        "xla_bytes", "transcendentals",
    }
)  # fmt: skip
"""Facts that the compiler of a GPU decides by timing kernels: another run may choose others, with their workspace."""
OTHER_KERNELS = "the same program: its compiler timed kernels and took others than when it was recorded; run it again, or record it again"
EDITED = (
    "the same program, compiled with the same options by the same compiler, has another: was the baseline edited by hand? "
    "Restore its file with git, or record it again"
)


def compare_facts(
    difference: Difference, tolerances: Iterable[Tolerance] = (), *, recorded: Facts | None = None
) -> Iterator[Finding]:
    """Hold every fact against its baseline.

    A fact that the baseline has and today's measurement lacks is INVALID: a metric that vanished must not
    pass. One that only today's measurement has is not judged yet, and said so.

    Another compiler may change the facts of the baseline's program, so that there are three numbers: today's program by
    today's compiler, the baseline's program by today's compiler, and what was ``recorded``. If the first is worse than
    both of the others, the code is to blame: REGRESSED. If it is worse than the second only, nobody ever had it better:
    UNDECIDED. If the second is worse than the third, the environment is to blame: one more finding, UNDECIDED.
    """
    own = {tolerance.fact: tolerance for tolerance in tolerances}
    now, baseline, exact = difference.now, difference.baseline, _same_compilation(difference)
    tuned = now.hardware.platform == "gpu" and not now.hardware.target and not difference.why_not_identical
    for policy in (*POLICIES, *ARRIVAL_POLICIES):
        today, before = (_value(side, policy.name) for side in (now, baseline))
        if today is None and before is None:
            continue
        left_out = _not_compared(policy, now, baseline)
        if left_out is not None:
            yield left_out
            continue
        assert today is not None  # for both sides have it
        assert before is not None
        tolerance = own.get(policy.name)
        its_own = _allowing(policy, difference) if tolerance is None else _of_its_own(policy, tolerance)
        finding = _judged(its_own, today, before, "" if tolerance is None else tolerance.why)
        if policy.name in exact and finding.status is Status.IMPROVED and policy.is_better(today, before):
            # What is worse is red as it is; a tolerance of the workload's own may be finer than what may move.
            finding = replace(finding, status=Status.INVALID, detail=EDITED)
        if tuned and policy.name in _TRIED_OUT and finding.status is Status.REGRESSED:
            finding = replace(finding, status=Status.UNDECIDED, detail=OTHER_KERNELS)
        then = getattr(recorded, policy.name, None)
        yield from [finding] if then in (None, before) else _beside(finding, its_own, today, before, then)


def _not_compared(policy: FactPolicy, now: Measurement, baseline: MeasuredProgram) -> Finding | None:
    """A finding for a fact that one side lacks, or that means something else there; ``None`` if it can be compared."""
    today, before = (_value(side, policy.name) for side in (now, baseline))
    other = policy.other_within(now.environment, baseline.environment)
    status = Status.SAME
    if before is None:
        detail = "the baseline does not have it: not judged until it is recorded again"
    elif today is None:
        why = now.unknown.get(policy.name)
        status = Status.UNDECIDED if policy.unsteady and why else Status.INVALID
        detail = "the baseline has it, today's measurement does not: " + (why or "it cannot be compared")
    elif now.traces_each_call and policy.name in STEADY_FACTS:
        detail = "each call traces, by design: how many calls were timed decides how often"
    elif other:
        detail = f"not compared: {other} is another one than the baseline's"
    elif (
        policy.name in _LOOP_ONCE
        and now.samples is not None
        and (today - before) * (loops := _more_loops(now, baseline)) < 0
    ):
        fewer = "fewer" if loops < 0 else "more"
        counted = f"the body of a loop counts once, and the program has {plural(abs(loops), 'loop')} {fewer}"
        detail = f"not compared: {counted}; its time decides"
    elif policy.name in _COUNTED_IN and _changed_loops(now, baseline, _COUNTED_IN[policy.name]):
        status, detail = Status.INVALID, _UNEQUAL
    else:
        return None
    return Finding(kind="fact", name=policy.name, status=status, now=today, against=before, detail=detail)


def _same_compilation(difference: Difference) -> frozenset[str]:
    """The facts that cannot be another than the baseline's, as the same compiler was given the same program.

    The fingerprint is blind to the order of independent lines, which may move some: the source must be the same, too.
    """
    now = difference.now
    same = (
        difference.executable_is_explained
        and difference.same_program
        and difference.same_source is True
        and difference.same_options is True
        and difference.same_devices
        and not difference.changed_environment
        and difference.same_hardware
    )
    if not same or now.eager:
        return frozenset()
    return _COMPILED | (_COMPILED_ON_CPU if now.hardware.platform == "cpu" else frozenset())


def _value(side: MeasuredProgram, name: str) -> int | None:
    found: int | None = getattr(side if name in ARRIVAL_FACTS else side.facts, name)
    return found


def _more_loops(now: Measurement, baseline: MeasuredProgram) -> int:
    return count_of(now.operations, LOOP) - count_of(baseline.operations, LOOP)


def _changed_loops(now: Measurement, baseline: MeasuredProgram, histogram: str) -> bool:
    """Whether one kind of loops became fewer and the other more: one counts a single turn, the other all."""
    more = Counter(getattr(now, histogram))
    more.subtract(getattr(baseline, histogram))
    in_turns = sum(count for label, count in more.items() if label.endswith(EACH_TURN))
    return in_turns * (more.total() - in_turns) < 0


def _beside(finding: Finding, policy: FactPolicy, today: int, here: int, then: int) -> Iterator[Finding]:
    """A fact beside what was recorded, and what became of the baseline's own program."""
    is_code = finding.status is not Status.REGRESSED or policy.is_worse(today, then)
    yield replace(finding, recorded=then, status=finding.status if is_code else Status.UNDECIDED)
    if policy.is_worse(here, then):
        allowed = policy.worst_allowed(then)
        yield Finding(
            kind="environment", name=policy.name, status=Status.UNDECIDED, now=here, against=then, allowed=allowed
        )


def _allowing(policy: FactPolicy, difference: Difference) -> FactPolicy:
    """The policy of a fact, made wider where another difference moves the fact."""
    if policy.name == "loop_turns" and not difference.same_inputs:
        return replace(policy, relative=_OTHER_VALUES)
    if policy.name == "temp_bytes":
        return replace(policy, absolute=policy.absolute + handed_on_bytes(difference.now, difference.baseline))
    return policy


def _of_its_own(policy: FactPolicy, own: Tolerance) -> FactPolicy:
    return replace(policy, relative=own.relative, absolute=own.absolute)


def _judged(policy: FactPolicy, today: int, before: int, why: str) -> Finding:
    if policy.is_worse(today, before):
        status = Status.REGRESSED
    elif policy.is_better(today, before):
        status = Status.IMPROVED
    else:
        status = Status.SAME
    return Finding(
        kind="fact",
        name=policy.name,
        status=status,
        now=today,
        against=before,
        allowed=policy.worst_allowed(before),
        detail=why and f"by this workload's own tolerance: {why}",
    )
