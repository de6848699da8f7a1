"""Stored times, for quiet and exclusive hardware only: a prediction limit from recording sessions.

The sessions are fresh processes, the unit of noise. Their log medians give a location and a spread s; the next
session of the same program lies below ``location + t(K-1, 1-alpha) s sqrt(1 + 1/K)`` with probability 1 - alpha
(the prediction interval of one further observation; Hahn and Meeker, Statistical Intervals). Few sessions
widen the limit by themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, inf, log, sqrt
from statistics import fmean, stdev

from jaxgate.ext.times.model import TimedSession
from jaxgate.judge.difference import Difference
from jaxgate.judge.timing.duel import DEFAULT_THRESHOLD, FLOOR_NS, MAX_MARGIN, MIN_MARGIN
from jaxgate.model.baseline import Baseline, StoredBaseline
from jaxgate.model.decision import Decision, Status
from jaxgate.model.duel import BrokenDuelError
from jaxgate.model.words import detectable, plural

ALPHA = 0.005
"""Chance that a session of an unchanged program lies above the limit, before it is repeated."""

MIN_SPREAD = 0.003
"""The spread is never believed to be smaller: a few sessions can agree by chance."""

MAX_SPREAD = 0.03
"""Above it a limit would let through what the gate is for: the case does not gate by stored times."""

MIN_SESSIONS = 3
POWER = 1.2816
"""Normal quantile of power 0.9: from the limit to the slow-down that is seen 9 times in 10."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredLimit:
    """What the sessions of a case allow."""

    sessions: int  # how many there are
    days: int  # on how many days
    location: float  # mean of the log medians, in log nanoseconds; NaN without sessions
    spread: float  # standard deviation of the log medians, not below its floor; infinite below two sessions
    noise: float  # distance from location to prediction limit, as a log ratio
    limit: float  # noise, but not below the margin

    @property
    def why_not(self) -> str:
        """Why they do not gate; empty if they do."""
        if self.sessions < MIN_SESSIONS:
            return f"{self.described}, {MIN_SESSIONS} are needed"
        if self.is_noisy:
            return f"{self.described}, spread {self.spread:.1%}: too noisy to gate, {MAX_SPREAD:.0%} may be"
        return ""

    @property
    def is_noisy(self) -> bool:
        """Whether enough sessions differ too much among themselves."""
        return self.sessions >= MIN_SESSIONS and self.spread > MAX_SPREAD

    @property
    def described(self) -> str:
        """How many sessions, on how many days."""
        sessions, days = plural(self.sessions, "session"), plural(self.days, "day")
        return f"{sessions} over {days}" if self.sessions else "no session"

    @property
    def sees(self) -> float:
        """Smallest relative slow-down that a session shows 9 times in 10."""
        return exp(self.limit + POWER * self.spread) - 1


def stored_limit(sessions: Sequence[TimedSession]) -> StoredLimit:
    """The prediction limit of the next session, from sessions that count."""
    count = len(sessions)
    logs = [log(session.run_ns) for session in sessions]
    location = fmean(logs) if logs else float("nan")
    spread = max(stdev(logs), MIN_SPREAD) if count > 1 else inf
    noise = _quantile(count - 1) * spread * sqrt(1 + 1 / count) if count > 1 else inf
    floor = FLOOR_NS / exp(location) if logs else 0.0
    margin = log(1 + min(max(MIN_MARGIN, floor), MAX_MARGIN))
    days = len({session.provenance.date for session in sessions})
    return StoredLimit(
        sessions=count, days=days, location=location, spread=spread, noise=noise, limit=max(noise, margin)
    )


def _quantile(freedom: int) -> float:
    """Student's t at 1 - alpha."""
    from scipy.special import stdtrit  # noqa: PLC0415 - only where times are stored

    return float(stdtrit(freedom, 1 - ALPHA))


def decide_stored(limit: StoredLimit, now_ns: float) -> Decision:
    """Judge one session, by its median time of a call, by a limit that gates.

    Returns:
        The decision. ``low`` and ``high`` bound the ratio by the prediction interval, ``pairs`` is the number of
        sessions, ``margin`` the limit as a relative slow-down.

    Raises:
        BrokenDuelError: If the time is not positive.
        ValueError: If the limit does not gate.
    """
    if limit.why_not:
        raise ValueError(f"expected stored times that gate, found {limit.why_not}")
    if not 0 < now_ns < inf:
        raise BrokenDuelError(f"expected a positive time, found {now_ns} ns: the clock cannot be trusted")
    value = log(now_ns) - limit.location
    allowed = exp(limit.limit) - 1
    reason = f"stored times: {limit.described}, limit {allowed:+.1%}"
    if value > limit.limit:
        status = Status.SLOWER
    elif value < -limit.limit:
        status = Status.FASTER
    elif limit.sees <= DEFAULT_THRESHOLD:
        status, reason = Status.SAME, f"{reason}, {detectable(limit.sees)}"
    else:
        status = Status.UNDECIDED
        reason = f"{reason}, {detectable(limit.sees)}, {DEFAULT_THRESHOLD:.0%} is asked for"
    return Decision(
        status=status,
        ratio=exp(value),
        low=exp(value - limit.noise),
        high=exp(value + limit.noise),
        pairs=limit.sessions,
        margin=allowed,
        sees=limit.sees,
        threshold=DEFAULT_THRESHOLD,
        now_ns=now_ns,
        baseline_ns=exp(limit.location),
        reason=reason,
    )


def only_environment_changed(difference: Difference) -> bool:
    """Whether a duel would let a program meet itself, and the environment is what differs."""
    ours, theirs = difference.now.fingerprints, difference.baseline.fingerprints
    same = difference.same_program and ours.options == theirs.options and difference.same_inputs
    return same and bool(difference.changed_environment)


def may_answer(difference: Difference, record: StoredBaseline, *, duelled: bool) -> bool:
    """Whether stored times are what can say something about a case: no identity, and no duel that can."""
    now = difference.now
    if record.borrowed or now.samples is None or not difference.why_not_identical:
        return False
    if not difference.same_inputs:
        return False  # the sessions were fed with other values
    if now.hardware.is_virtual or now.samples.contract != record.baseline.contract:
        return False
    return not duelled or only_environment_changed(difference)


def unlike_accepted(recorded: Baseline, accepted: Baseline) -> str:
    """Why a session is not one of the accepted program in its environment; empty if it is."""
    ours, theirs = recorded.fingerprints, accepted.fingerprints
    if None in (ours.options, theirs.options):
        return "its compiler options are unknown, so programs cannot be called identical"
    calls_python = recorded.facts.host_callbacks != 0
    changed = [
        name
        for name, same in (
            ("program", ours.program == theirs.program),
            ("compiler options", ours.options == theirs.options),
            ("inputs", ours.inputs == theirs.inputs),
            (
                "source (it calls Python)",
                not calls_python or (ours.source == theirs.source and ours.source is not None),
            ),
            ("environment", recorded.environment == accepted.environment),
            ("contract of its times", recorded.contract == accepted.contract),
        )
        if not same
    ]
    return f"its {' and '.join(changed)} changed since the baseline" if changed else ""
