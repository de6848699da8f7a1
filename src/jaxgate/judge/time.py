"""What is said of time: the one rule for SAME.

| what is the same | who vouches for it | what withdraws it |
|---|---|---|
| program, options, inputs as far as work depends on them, devices, native code, environment, hardware | fingerprints | arguments that arrive worse; three times the stored time |
| the executable that both programs compile to here, by the baseline's compiler | its text, inputs, options, devices | the same |
| the executable, by another compiler | the stored time of this hardware | no stored time; three times of it |
| nothing: another program | a duel, here and now | nothing |

A duel sees the device program alone. What stands around it can be slower without a trace in it: a variable, native code,
Python at each call, arguments that are moved every time. A number from another day cannot show 10 %, but no machine of one
name explains a factor of three on an idle core. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from statistics import quantiles

from jaxgate.judge.difference import Difference, library_name
from jaxgate.model.baseline import StoredBaseline
from jaxgate.model.decision import Decision, Status
from jaxgate.model.numbers import ARRIVAL_FACTS, Phases, Samples
from jaxgate.model.verdict import Finding, TimeVerdict
from jaxgate.model.words import MAX_CHANGES_NAMED, plural, shortlist

TIMES = 3.0
"""A call up to this many times slower than recorded may be the machine's doing."""
WAIT_NS = 20_000_000.0
"""Some calls wait only if the mean exceeds the median by 20 ms; a borrowed core comes back sooner."""
FLOOR_NS = 100_000.0
"""A call at most 100 µs slower than recorded is never SLOWER by this rule: a thread switch costs that much."""
OTHER_VALUES = " (input values changed; no operation's work depends on them)"
AS_MANY_TURNS = " (input values changed; loops and branches, all that depends on them, run as often)"
BOTH_OF_TODAY = "a duel would give both sides today's settings: --perf-against NAME=VALUE times both"
"""Why nothing is timed where other hardware recorded a baseline with other settings."""
ASK_BOTH = "--perf-against NAME==VERSION times both"
_RESULTS = {
    True: "",
    False: "results differ from the baseline's; ",
    None: "results are too large to be compared with the baseline's; ",
}
"""What a reason says of the results of both sides of a duel."""


def judge_time(
    difference: Difference,
    decision: Decision | None = None,
    no_duel: str = "no duel was run",
    *,
    same_executable: bool = False,
    arrives_worse: bool = False,
    stored: Decision | None = None,
) -> TimeVerdict:
    """Judge time: by identity of programs or executables where no clock is needed, else by the duel that was run.

    ``stored`` is what the stored time says (``against_stored``).
    """
    why = difference.why_not_identical
    alike = bool(why) and same_executable and decision is None and not difference.changed_settings
    if why and decision is not None:
        reason = f"{_RESULTS[decision.agrees]}{decision.reason} ({why})"
        return TimeVerdict(status=decision.status, reason=reason, decision=decision)
    if not why:
        time = TimeVerdict(status=Status.SAME, reason=_identical(difference))
    elif alike:
        from_other = " from another compiler" if difference.changed_compiler else ""
        time = TimeVerdict(status=Status.SAME, reason=f"the same executable as the baseline's{from_other} ({why})")
    else:
        no_duel = BOTH_OF_TODAY if same_executable else no_duel
        time = TimeVerdict(
            status=Status.UNDECIDED, reason=f"{why} and {no_duel}", anywhere=_undecided_anywhere(difference)
        )
    if arrives_worse and time.status is Status.SAME:
        reason = f"{time.reason}, but its arguments arrive otherwise, and a duel would put them in place first"
        time = replace(time, status=Status.UNDECIDED, reason=reason)
    if stored is not None and stored.status is Status.SLOWER:
        return _far_slower(time, stored, difference)
    return _vouched_for(time, stored, difference) if alike and time.status is Status.SAME else time


def arrive_worse(findings: Iterable[Finding]) -> bool:
    """Whether arguments arrive with more to do than those of the baseline."""
    return any(finding.name in ARRIVAL_FACTS and finding.status is Status.REGRESSED for finding in findings)


def against_stored(difference: Difference, record: StoredBaseline) -> Decision | None:
    """Whether a call takes far longer than its baseline's did, on the same hardware, whatever else changed.

    Returns:
        SLOWER or SAME, with both times; ``None`` where the stored time says nothing of this case, such as on several devices
        that are CPUs: ranks that share cores wait for each other at random, on a busy machine 4 × as long.
    """
    now, baseline = difference.now, difference.baseline
    shared = now.hardware.platform == "cpu" and now.hardware.devices > 1
    comparable = not record.borrowed and difference.same_hardware and difference.same_cores and not shared
    if not comparable or now.samples is None or baseline.samples is None or now.contract != baseline.contract:
        return None
    return hold_stored(now.samples, now.phases, baseline.samples, baseline.phases)


def hold_stored(samples: Samples, phases: Phases, recorded: Samples, recorded_phases: Phases) -> Decision:
    """Hold the samples of a process against those of the baseline: SLOWER far beyond them, else SAME."""
    slowness = phases.slower_than(recorded_phases)
    before = recorded.run_ns * slowness
    fastest = min(samples.bursts_ns) / samples.calls_per_burst
    now = samples.run_ns
    slower = min(now, fastest) > max(TIMES * before, before + FLOOR_NS)
    waits = not slower and _waits(samples, recorded)
    if waits:
        now = samples.mean_ns
    low, _, high = quantiles(samples.bursts_ns, n=4) if len(samples.bursts_ns) > 1 else samples.bursts_ns * 3
    scale = samples.calls_per_burst * before
    machine = f", on a machine that runs Python {slowness:.2f} × slower" if slowness > 1 else ""
    return Decision(
        status=Status.SLOWER if slower or waits else Status.SAME,
        ratio=now / before,
        low=low / scale,
        high=high / scale,
        pairs=len(samples.bursts_ns),
        margin=max(TIMES - 1, FLOOR_NS / before),
        sees=max(TIMES - 1, FLOOR_NS / before),
        threshold=max(TIMES - 1, FLOOR_NS / before),
        now_ns=now,
        baseline_ns=before,
        reason=f"{now / before:.1f} × slower than recorded{' on average, as some calls wait' if waits else ''}{machine}",
    )


def _waits(samples: Samples, recorded: Samples) -> bool:
    """Whether some calls wait: their mean lies far above their median, and did not when they were recorded.

    A busy machine makes calls slower, and few of them by so much.
    """
    now, before = (one.mean_ns / one.run_ns if one.run_ns else 1.0 for one in (samples, recorded))
    return now > TIMES * before and samples.mean_ns - samples.run_ns > WAIT_NS


def _identical(difference: Difference) -> str:
    """Why a case is the same by identity, and what it does not speak of."""
    now = difference.now
    libraries = sorted({library_name(library) for library in now.native_code.values()})
    native = between = ""
    if libraries:
        native = f"; {shortlist(libraries, MAX_CHANGES_NAMED)} as before, what it calls in others is not seen"
    if now.eager and not difference.same_source:
        between = "; source changed: the Python between them is judged by its calls and host_ns"
    what = plural(len(now.launched_programs), "identical program") if now.eager else "identical program"
    checks = "; its error checks call Python (EQX_ON_ERROR=nan leaves them out)" if now.only_raises else ""
    values = "" if difference.same_inputs else AS_MANY_TURNS if difference.same_turns else OTHER_VALUES
    return f"{what}{values}{native}{checks}{between}"


def _undecided_anywhere(difference: Difference) -> bool:
    now = difference.now
    return now.hardware.is_virtual or now.compiled_only or now.only_raises or bool(difference.uncovered)


def _far_slower(time: TimeVerdict, stored: Decision, difference: Difference) -> TimeVerdict:
    """The stored time contradicts what was said. It blames what is outside the program only where the program is the same."""
    compiler = "the code of the compiler, or " if difference.changed_compiler else ""
    outside = (
        f": {compiler}something outside the program"
        if difference.same_program and difference.same_work and difference.same_calls
        else ""
    )
    reason = f"{time.reason}, and yet {stored.reason}{outside}"
    return TimeVerdict(status=Status.SLOWER, reason=reason, decision=stored)


def _vouched_for(time: TimeVerdict, stored: Decision | None, difference: Difference) -> TimeVerdict:
    """The verdict on the same executable of another compiler: its text says nothing of its code, the stored time does."""
    if not difference.changed_compiler:
        return time
    if stored is not None:
        return replace(time, reason=f"{time.reason}; only {TIMES:.0f} × the recorded time would have shown")
    now = difference.now
    reason = f"{time.reason}, and no stored time of this hardware says what the compiler makes of it: {ASK_BOTH}"
    switched_off = now.samples is None and not (now.hardware.is_virtual or now.compiled_only)
    return replace(time, status=Status.UNDECIDED, reason=reason, anywhere=not switched_off)
