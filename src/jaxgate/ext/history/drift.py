"""What a history shows and no single gate does: accumulated drift, creep and steps."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from jaxgate.model.waiver import check_account


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """A refresh of a baseline: one link of the chain.

    Attributes:
        ratio: The new program's time as a multiple of the old one's.
        error: Standard error of its logarithm; 0 where the program stayed the same.
        date: UTC date of the new baseline.
        commit: Of the new baseline, if anybody knows it.
        within: Whether the gate let it pass: it was not called SLOWER.
    """

    ratio: float
    error: float
    date: str
    commit: str | None
    within: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """Today's time relative to the first baseline of a history, multiplied from duels.

    Attributes:
        ratio: Time of a call as a multiple of the first.
        low: Lower bound.
        high: Upper bound, at the level of a duel's interval.
        since: UTC date of the first baseline.
        accepted: The refreshes since then in whose course the program's time was measured, oldest first.
        commit: Of today's run.
        until_baseline: Today's program has no ratio that counts: this is the drift of its baseline.
        gap: Why nothing is known from before ``since``; empty where the history begins there.
    """

    ratio: float
    low: float
    high: float
    since: str
    accepted: tuple[Accepted, ...] = ()
    commit: str | None = None
    until_baseline: bool = False
    gap: str = ""

    @property
    def step(self) -> float:
        """Mean ratio of an accepted refresh, 1 where there was none."""
        product = 1.0
        for one in self.accepted:
            product *= one.ratio
        return float(product ** (1 / max(1, len(self.accepted))))

    @property
    def each_within(self) -> bool:
        """Whether the gate let each refresh pass."""
        return all(one.within for one in self.accepted)


@dataclass(frozen=True, slots=True, kw_only=True)
class FactDrift:
    """What became of an exact value.

    Attributes:
        name: Of the fact.
        first: Its first value.
        now: Today's.
        since: UTC date of the first value.
        steps: How often it changed in between.
        environment: What differs between both environments, ``jax 0.12.0 → 0.12.1``.
    """

    name: str
    first: float
    now: float
    since: str
    steps: int
    environment: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A quantity moved from one run to the next, and stayed there.

    Attributes:
        quantity: ``time``, or the name of a fact or phase.
        ratio: After / before.
        before: Its value before; ``None`` for ``time``, of which only ratios are known.
        after: Its value after it.
        run: The first run with it.
        moment: When that run ended.
        commit: What that run had checked out.
        last_before: The commit of the last run without it.
        runs: How many runs have shown it since.
        sure: How many standard errors it is; infinite for what is exact.
    """

    quantity: str
    ratio: float
    before: float | None
    after: float | None
    run: str
    moment: str
    commit: str | None
    last_before: str | None
    runs: int
    sure: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Creep:
    """A quantity that got worse in many small moves, none of which holds most of it.

    Attributes:
        quantity: ``time``, or the name of a phase.
        ratio: Now / at its start.
        low: Lower bound.
        high: Upper bound.
        since: When the last run before it ended.
        runs: How many runs it took.
        commits: First and last known commit of it.
        sure: How many standard errors it is.
    """

    quantity: str
    ratio: float
    low: float
    high: float
    since: str
    runs: int
    commits: tuple[str, ...]
    sure: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseChanges:
    """All that a case's history shows.

    Attributes:
        drift: Of its time; ``None`` where no run speaks of stored baselines.
        facts: Those that are not what they were at first.
        steps: Of time, facts and phases, by the moment.
        creeps: Of time and phases.
    """

    drift: Drift | None = None
    facts: tuple[FactDrift, ...] = ()
    steps: tuple[Step, ...] = ()
    creeps: tuple[Creep, ...] = ()

    @property
    def is_moved(self) -> bool:
        """Whether anything moved: a fact, a step, creep, or a time whose interval leaves out what it was at first."""
        drifted = self.drift is not None and not self.drift.low <= 1 <= self.drift.high
        return drifted or bool(self.facts or self.steps or self.creeps)


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftStart:
    """An accepted drift: one ``[[drift]]`` entry of ``waivers.toml``. What was before is not counted.

    Attributes:
        case: ``family/sentence``.
        since: The first day (UTC) whose runs count again.
        owner: Who accepts what came before.
        reason: Why.
    """

    case: str
    since: date
    owner: str
    reason: str

    def __post_init__(self) -> None:
        """Refuse what could never apply, or says nothing."""
        check_account(self.case, owner=self.owner, reason=self.reason)
