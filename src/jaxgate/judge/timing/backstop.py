"""The stored time of a call, where no duel decided: it withdraws SAME from what is far slower than it was recorded.

A duel sees the device program alone. What stands around it can be slower without a trace in it: a variable, native code,
Python at each call, arguments that are moved every time. A number from another day cannot show 10 %, but no machine of the
same name explains a factor of three on an idle core. Pure.
"""

from __future__ import annotations

from statistics import quantiles

from jaxgate.judge.origin import only_settings_changed
from jaxgate.judge.timing.phases import slower_machine
from jaxgate.model import Decision, Measurement, Phases, Samples, Status, StoredBaseline, TimeVerdict

TIMES = 3.0
"""A call that takes no longer than this many times what was recorded may be the machine."""
FLOOR_NS = 100_000.0
"""Nor one that takes no more than this longer: a switch of threads costs as much."""


def beyond_stored(now: Measurement, record: StoredBaseline) -> Decision | None:
    """Whether a call takes far longer than its baseline's did, on the same hardware and as far as known set up alike.

    Returns:
        SLOWER with both times; ``None`` where it does not, or the stored time says nothing of this case.
    """
    baseline = record.baseline
    comparable = (
        not record.borrowed
        and now.processes == 1
        and now.hardware == baseline.hardware
        and now.fingerprints.inputs == baseline.fingerprints.inputs
        and (now.environment == baseline.environment or only_settings_changed(now, baseline))
    )
    if not comparable or now.samples is None or baseline.samples is None or now.contract != baseline.contract:
        return None
    found = hold_stored(now.samples, now.phases, baseline.samples, baseline.phases)
    return found if found.status is Status.SLOWER else None


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


def withdraw(time: TimeVerdict, backstop: Decision | None) -> TimeVerdict:
    """What is said of time where the stored one contradicts it; a duel's word stands."""
    if backstop is None or time.decision is not None or time.status not in (Status.SAME, Status.UNDECIDED):
        return time
    reason = f"{time.reason}, and yet {backstop.reason}: something outside the program"
    return TimeVerdict(status=Status.SLOWER, reason=reason, decision=backstop)
