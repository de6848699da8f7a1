"""What a history shows and no single gate does: accumulated drift, creep and steps."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from math import prod

from jaxgate.model.waiver import check_account


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """A refresh of a baseline: one link of the chain."""

    ratio: float  # the new program's time as a multiple of the old one's
    error: float  # standard error of its logarithm; 0 where the program stayed the same
    date: str  # UTC date of the new baseline
    commit: str | None  # of the new baseline, if anybody knows it
    within: bool  # whether the gate let it pass: it was not called SLOWER


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """Today's time relative to the first baseline of a history, multiplied from duels."""

    ratio: float  # time of a call as a multiple of the first
    low: float  # lower bound
    high: float  # upper bound, at the level of a duel's interval
    since: str  # UTC date of the first baseline
    # the refreshes since then in whose course the program's time was measured, oldest first
    accepted: tuple[Accepted, ...] = ()
    commit: str | None = None  # of today's run
    until_baseline: bool = False  # Today's program has no ratio that counts: this is the drift of its baseline
    gap: str = ""  # why nothing is known from before `since`; empty where the history begins there

    @property
    def step(self) -> float:
        """Mean ratio of an accepted refresh, 1 where there was none."""
        return float(prod(one.ratio for one in self.accepted) ** (1 / max(1, len(self.accepted))))


@dataclass(frozen=True, slots=True, kw_only=True)
class FactDrift:
    """What became of an exact value."""

    name: str  # of the fact
    first: float  # its first value
    now: float  # Today's
    since: str  # UTC date of the first value
    steps: int  # how often it changed in between
    environment: tuple[str, ...] = ()  # what differs between both environments, `jax 0.12.0 → 0.12.1`


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A quantity moved from one run to the next, and stayed there."""

    quantity: str  # `time`, or the name of a fact or phase
    ratio: float  # after / before
    before: float | None  # its value before; `None` for `time`, of which only ratios are known
    after: float | None  # its value after it
    run: str  # the first run with it
    moment: str  # when that run ended
    commit: str | None  # what that run had checked out
    last_before: str | None  # the commit of the last run without it
    runs: int  # how many runs have shown it since


@dataclass(frozen=True, slots=True, kw_only=True)
class Creep:
    """A quantity that got worse in many small moves, none of which holds most of it."""

    quantity: str  # `time`, or the name of a phase
    ratio: float  # now / at its start
    low: float  # lower bound
    high: float  # upper bound
    since: str  # when the last run before it ended
    runs: int  # how many runs it took
    commits: tuple[str, ...]  # first and last known commit of it


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseChanges:
    """All that a case's history shows."""

    drift: Drift | None = None  # of its time; `None` where no run speaks of stored baselines
    facts: tuple[FactDrift, ...] = ()  # facts that are not what they were at first
    steps: tuple[Step, ...] = ()  # of time, facts and phases, by the moment
    creeps: tuple[Creep, ...] = ()  # of time and phases

    @property
    def is_moved(self) -> bool:
        """Whether anything moved: a fact, a step, creep, or a time whose interval leaves out what it was at first."""
        drifted = self.drift is not None and not self.drift.low <= 1 <= self.drift.high
        return drifted or bool(self.facts or self.steps or self.creeps)


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftStart:
    """An accepted drift: one ``[[drift]]`` entry of ``waivers.toml``. What was before is not counted."""

    case: str  # `family/sentence`
    since: date  # the first day (UTC) whose runs count again
    owner: str  # who accepts what came before
    reason: str  # why

    def __post_init__(self) -> None:
        """Refuse what could never apply, or says nothing."""
        check_account(self.case, owner=self.owner, reason=self.reason)
