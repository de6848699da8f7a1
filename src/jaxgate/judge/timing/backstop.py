"""The stored time of a call, where no duel decided: it withdraws SAME from what is far slower than it was recorded.

A duel sees the device program alone. What stands around it can be slower without a trace in it: a variable, native code,
Python at each call, arguments that are moved every time. A number from another day cannot show 10 %, but no machine of the
same name explains a factor of three on an idle core. Pure.
"""

from __future__ import annotations

from dataclasses import replace
from statistics import quantiles

from jaxgate.judge.origin import other_compiler
from jaxgate.judge.timing.phases import slower_machine
from jaxgate.model import Decision, Measurement, Phases, Samples, Status, StoredBaseline, TimeVerdict

TIMES = 3.0
"""A call that takes no longer than this many times what was recorded may be the machine."""
FLOOR_NS = 100_000.0
"""Nor one that takes no more than this longer: a switch of threads costs as much."""
ASK_BOTH = "--perf-against-env NAME==VERSION times both"


def hold_time(time: TimeVerdict, now: Measurement, record: StoredBaseline) -> TimeVerdict:
    """Hold what is said of time against the stored time; a duel's word stands.

    SAME is withdrawn where a call takes far longer, and where it stands on an executable of another compiler and no stored
    time vouches for it.
    """
    if time.decision is not None or time.status not in (Status.SAME, Status.UNDECIDED):
        return time
    found = against_stored(now, record)
    compiler = other_compiler(now, record.baseline)
    if found is not None and found.status is Status.SLOWER:
        program = now.fingerprints.program == record.baseline.fingerprints.program
        outside = (
            f": {'the code of the compiler, or ' if compiler else ''}something outside the program" if program else ""
        )
        return TimeVerdict(
            status=Status.SLOWER, reason=f"{time.reason}, and yet {found.reason}{outside}", decision=found
        )
    if not compiler or time.status is not Status.SAME:
        return time
    if found is not None:
        return replace(time, reason=f"{time.reason}; only {TIMES:.0f} × the recorded time would have shown")
    reason = f"{time.reason}, and no stored time of this hardware says what the compiler makes of it: {ASK_BOTH}"
    switched_off = now.samples is None and not (now.hardware.is_virtual or now.compiled_only)
    return replace(time, status=Status.UNDECIDED, reason=reason, anywhere=not switched_off)


def against_stored(now: Measurement, record: StoredBaseline) -> Decision | None:
    """Whether a call takes far longer than its baseline's did, on the same hardware, whatever else changed.

    Returns:
        SLOWER or SAME, with both times; ``None`` where the stored time says nothing of this case.
    """
    baseline = record.baseline
    comparable = not record.borrowed and now.processes == 1 and now.hardware == baseline.hardware
    if not comparable or now.samples is None or baseline.samples is None or now.contract != baseline.contract:
        return None
    return hold_stored(now.samples, now.phases, baseline.samples, baseline.phases)


def hold_stored(samples: Samples, phases: Phases, recorded: Samples, recorded_phases: Phases) -> Decision:
    """Hold the samples of a process against those of the baseline: SLOWER far beyond them, else SAME."""
    slowness = slower_machine(phases, recorded_phases)
    before = recorded.run_ns * slowness
    fastest = min(samples.bursts_ns) / samples.calls_per_burst
    now = samples.run_ns
    slower = min(now, fastest) > max(TIMES * before, before + FLOOR_NS)
    low, _, high = quantiles(samples.bursts_ns, n=4) if len(samples.bursts_ns) > 1 else samples.bursts_ns * 3
    scale = samples.calls_per_burst * before
    machine = f", on a machine that runs Python {slowness:.2f} × slower" if slowness > 1 else ""
    return Decision(
        status=Status.SLOWER if slower else Status.SAME,
        ratio=now / before,
        low=low / scale,
        high=high / scale,
        pairs=len(samples.bursts_ns),
        margin=max(TIMES - 1, FLOOR_NS / before),
        sees=max(TIMES - 1, FLOOR_NS / before),
        threshold=max(TIMES - 1, FLOOR_NS / before),
        now_ns=now,
        baseline_ns=before,
        reason=f"{now / before:.1f} × slower than recorded{machine}",
    )
