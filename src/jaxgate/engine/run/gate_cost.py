"""The cost of a gate by its last run, else by its stored baseline; and how long the rest of a run will take."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from jaxgate.judge.timing.duel import LOOKS
from jaxgate.keep.baselines import read_all
from jaxgate.model.baseline import Baseline
from jaxgate.model.duel import ACCELERATOR_BURST_NS, BURSTS, DUEL_BURST_NS, LONG_CALL_NS
from jaxgate.model.workload import Cost, Prediction

_SIDES = 2


def predict(tests: Sequence[str], remembered: Mapping[str, Cost], baselines: Path) -> list[Prediction]:
    """Predict the cost of each test."""
    complete = {test for test in tests if test in remembered and remembered[test].duel_s is not None}
    stored = _by_test(baselines) if complete != set(tests) else {}
    return [_predict(test, remembered.get(test), stored.get(test, [])) for test in tests]


def _predict(test: str, last: Cost | None, stored: Sequence[Baseline]) -> Prediction:
    known, duel_s = _over_cases(stored, unchanged_s), _over_cases(stored, longest_duel_s)
    if last is not None:
        alone, alone_estimated = last.unchanged_s, False
    elif known is not None:
        alone, alone_estimated = known, True
    else:
        return Prediction(test=test)
    if last is not None and last.duel_s is not None:
        return Prediction(test=test, unchanged_s=alone, changed_s=alone + last.duel_s)
    return Prediction(
        test=test,
        unchanged_s=alone,
        changed_s=None if duel_s is None else alone + duel_s,
        unchanged_estimated=alone_estimated,
        changed_estimated=duel_s is not None,
    )


def _over_cases(stored: Sequence[Baseline], seconds_of: Callable[[Baseline], float | None]) -> float | None:
    """What all cases of a test take together; ``None`` where nothing is known.

    Of baselines on several kinds of hardware the slowest counts: which one runs this is not known here.
    """
    slowest: dict[str, float] = {}
    for baseline in stored:
        seconds = seconds_of(baseline)
        if seconds is not None:
            slowest[baseline.case] = max(seconds, slowest.get(baseline.case, 0.0))
    return sum(slowest.values()) if slowest else None


def unchanged_s(baseline: Baseline) -> float | None:
    """Seconds to trace, lower, compile, call and sample; ``None`` if the baseline lacks one of them."""
    phases, samples = baseline.phases, baseline.samples
    parts = [phases.trace_ns, phases.lower_ns, phases.compile_ns]
    if not baseline.compiled_only:
        parts += [phases.first_call_ns, *([None] if samples is None else samples.bursts_ns)]
    return None if None in parts else sum(part or 0 for part in parts) / 1e9


def longest_duel_s(baseline: Baseline) -> float | None:
    """Seconds of a duel that goes on to its last look, both programs compiled for it.

    A program that is not stored, or was never called, is not duelled: that costs nothing.
    """
    if not baseline.program.stored or baseline.compiled_only:
        return 0.0
    compile_ns = baseline.phases.compile_ns
    if compile_ns is None or baseline.samples is None:
        return None
    call_ns = baseline.samples.run_ns
    burst_ns = max(call_ns, DUEL_BURST_NS.get(baseline.hardware.platform, ACCELERATOR_BURST_NS))
    half_ns = call_ns if call_ns > LONG_CALL_NS else BURSTS * burst_ns
    return _SIDES * (compile_ns + max(LOOKS) * half_ns) / 1e9


def _by_test(baselines: Path) -> dict[str, list[Baseline]]:
    found: dict[str, list[Baseline]] = {}
    for baseline in read_all(baselines)[0].values():  # of an unreadable file a run says what is wrong
        found.setdefault(baseline.test, []).append(baseline)
    return found


_MINUTE_S = 60
_KNOWN = 0.5
"""Share of the tests whose cost must be known: then those that are not are taken for usual ones."""


def time_left(selected: Collection[str], costs: Mapping[str, Cost], begun: Collection[str]) -> str:
    """``35 of 246 gates, about 2 min left``: the tests that gate, what they took the last time, and those that have begun.

    Empty for a single gate; without a time where too little is known.
    """
    count = len(selected)
    if count < 2:  # noqa: PLR2004 - one is no run
        return ""
    left = set(selected) - set(begun)
    known = [costs[test].unchanged_s for test in left if test in costs]
    about = ""
    if left and len(known) >= _KNOWN * len(left):
        seconds = sum(known) / len(known) * len(left)
        shown = f"{seconds:.0f} s" if seconds < 2 * _MINUTE_S else f"{seconds / _MINUTE_S:.0f} min"
        about = f", about {shown} left"
    return f"{count - len(left)} of {count} gates{about}"
