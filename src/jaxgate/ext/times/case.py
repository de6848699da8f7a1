"""Stored times in a run that judges: on the hardware that has them, where no duel can answer."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from jaxgate.engine.duels.baseline_duel import BaselineTiming
from jaxgate.engine.repeats import StoredTimeRepeat
from jaxgate.ext.times.judge import decide_stored, may_answer, only_environment_changed, stored_limit
from jaxgate.ext.times.kept import TimesStore
from jaxgate.judge.difference import Difference
from jaxgate.keep.strict import CorruptBaselineError
from jaxgate.model.baseline import StoredBaseline
from jaxgate.model.duel import BrokenDuelError
from jaxgate.model.measurement import InvalidCaseError
from jaxgate.processes.pytest_child import Side
from jaxgate.settings import RunKind

RECORD = f"record them: {RunKind.RECORD_TIMES.flag}"
ITSELF = "a duel of a program with itself cannot show that"


class StoredTimesClock:
    """Answers with stored times of this hardware where a duel cannot; never where they are ``None``."""

    def __init__(self, times: TimesStore | None, again: Side) -> None:
        self._times = times
        self._again = again

    def time(
        self, case: str, test: str, record: StoredBaseline, difference: Difference, timing: BaselineTiming
    ) -> BaselineTiming:
        """Replace what a duel could not say.

        Returns:
            The verdict of the stored times, or why there is none; ``timing`` as it came if they do not apply.

        Raises:
            InvalidCaseError: If their file cannot be trusted, or today's time is none.
        """
        now = difference.now
        if self._times is None or now.processes > 1 or not self._times.any_of(now.hardware):
            return timing
        if not may_answer(difference, record, duelled=timing.decision is not None):
            return timing
        cleared = BaselineTiming(timing.stored_here, opponent=timing.opponent, took_ns=timing.took_ns)
        only_environment = only_environment_changed(difference)
        no_duel = ITSELF if only_environment else timing.why_not
        try:
            times = self._times.load(now.hardware, case)
        except CorruptBaselineError as error:
            raise InvalidCaseError("reading the stored times", _mend(error, self._again.project)) from None
        counted = [session for session in times.sessions if session.is_of(record.baseline)]
        limit = stored_limit(counted)
        if limit.why_not:
            others = len(times.sessions) - len(counted)
            dropped = f" ({others} of another baseline)" if others else ""
            mend = "" if limit.is_noisy else f"; {RECORD}"
            why_not = f"{no_duel}; stored times: {limit.why_not}{dropped}{mend}"
            return replace(cleared, why_not=why_not)
        try:
            decision = decide_stored(limit, now.samples.run_ns if now.samples else 0)
        except BrokenDuelError as error:
            raise InvalidCaseError("timing against stored times", str(error)) from None
        if not only_environment:
            decision = replace(decision, reason=f"{decision.reason}; {no_duel}")
        repeat = StoredTimeRepeat(again=self._again, test=test, now=now, accepted=record.baseline, limit=limit)
        return replace(cleared, decision=decision, repeat=repeat)


def _mend(error: CorruptBaselineError, project: Path) -> str:
    path = os.path.relpath(error.path, project)
    return f"{path} {error.reason}; restore it (git checkout -- {path}), or remove it and {RECORD}"
