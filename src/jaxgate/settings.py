"""What the user asked of a run, and the environment variables by which one process describes another to it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Literal

Size = Literal["small", "full"]
"""``small`` fits two cores of a laptop, ``full`` fills an accelerator."""
ProfileWhen = Literal["failing", "always", "never"]

LAUNCHES = 5
"""Of each environment: chance alone separates them once in 252."""


class Update(StrEnum):
    """What a run records. The empty word, which is false, records nothing."""

    NOTHING = ""
    BOTH = "create and refresh"
    CREATE = "create"
    REFRESH = "refresh"
    TRIM = "trim"
    REVIEW = "review"

    def records(self, *, exists: bool) -> bool:
        """Whether a case is recorded instead of being judged.

        Args:
            exists: Whether it has a baseline of this hardware, readable or not.
        """
        if self is Update.BOTH:
            return True
        return (self is Update.CREATE and not exists) or (self is Update.REFRESH and exists)


class RunKind(StrEnum):
    """What a run is for; each has its option ``--perf-…``, and no two go together."""

    JUDGE = "judge"
    UPDATE = "update"
    REVIEW = "update=review"
    TRIM = "update=trim"
    AGAINST = "against"
    AGAINST_ENV = "against-env"
    PLAN = "plan"
    RECORD_TIMES = "record-times"
    UPGRADE = "upgrade"

    @property
    def flag(self) -> str:
        """What asks for it on the command line; nothing does for a run that judges."""
        return "" if self is RunKind.JUDGE else f"--perf-{self}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RankSettings:
    """Which process of which job this is.

    Attributes:
        coordinator: ``host:port`` of rank 0; ``None`` lets JAX find out from the cluster, like the next two.
        count: How many ranks there are.
        rank: Which one this is.
        timeout_s: Seconds without any progress of the job after which a rank hangs.
    """

    coordinator: str | None
    count: int | None
    rank: int | None
    timeout_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactSettings:
    """What the user asked for.

    Attributes:
        when: Which cases are profiled.
        folder: Where bundles go.
        captures: Cases that are profiled at most; others leave a bundle without profiles.
        run: Names a run of several processes, which share the folder; empty for one process.
    """

    when: ProfileWhen
    folder: Path
    captures: int
    run: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the user asked for.

    Attributes:
        kind: What the run is for.
        update: Which of the selected cases are recorded instead of being judged.
        why: The reason for a recording, for the log.
        baselines: Folder of the baselines to compare with.
        stored: Folder of the project's own baselines; the same, but where something else is compared with.
        namesakes: Files whose name another file that gates has, too: what is new in them has its folder in its name.
        against: The git revision to compare with instead of the stored baselines; empty for these.
        quiet: Hardware, as verdicts name it, that is quiet and exclusive: times stored there count.
        record_times: Fresh processes whose times are stored, instead of judging; 0 judges.
        busy_ok: Store times though the machine is busy, and note it.
        against_env: The other environment to compare with, item by item; empty for stored baselines.
        upgrade: The environment that may take the place of this one, item by item; empty where none was named.
        launches: Processes of each environment.
        as_measured: Record what breaks a claim too: this process is the other side of a comparison.
        typed: Options that a command which records the same cases must repeat.
        started_with: The environment of this process before the first conftest ran.
        options: The options of the project's own conftests, and ini values, as they were typed.
        other_side: What this process records is for another one, which reads it and throws it away.
        max_undecided: Share of UNDECIDED cases above which the run is not green.
        opinion_s: Seconds that a second opinion on a result may take; 0 asks for none.
        budget_s: Seconds that all duels of the run may take; ``None`` for no limit.
        drift_budget: Share that a case may have lost since its first run in the history; ``None`` for any.
        strict: A missing, stale or orphaned baseline fails the run.
        notes_into: Where this process, which records for another one, writes what became of each of its tests; ``None`` for nowhere.
        size: Of the catalogue's workloads; ``None`` for what the hardware usually runs.
        target: Hardware that is not there, for which the cases are compiled; empty runs them here.
        cpu_devices: Virtual devices of a CPU; ``None`` leaves JAX as it is.
        artifacts: What is kept of a case that failed, and where.
        history: Where the run is remembered: a path, or ``none``.
        time_limit_s: Seconds after which no test begins; ``None`` for no limit.
        ranks: Which of several processes this is; ``None`` for a run of one.
    """

    kind: RunKind
    update: Update
    why: str
    baselines: Path
    stored: Path
    namesakes: frozenset[str]
    strict: bool
    opinion_s: float
    budget_s: float | None
    drift_budget: float | None
    max_undecided: float
    against: str
    artifacts: ArtifactSettings
    history: str
    against_env: tuple[str, ...]
    upgrade: tuple[str, ...]
    launches: int
    quiet: tuple[str, ...]
    record_times: int
    busy_ok: bool
    as_measured: bool
    other_side: bool
    typed: tuple[str, ...]
    started_with: Mapping[str, str]
    options: tuple[str, ...]
    notes_into: Path | None
    size: Size | None
    target: str
    cpu_devices: int | None
    time_limit_s: float | None
    ranks: RankSettings | None

    @property
    def runs_tests(self) -> bool:
        """Whether this process runs the tests: others do for times, none to predict or to trim."""
        return self.kind not in {RunKind.TRIM, RunKind.PLAN, RunKind.RECORD_TIMES, RunKind.UPGRADE}

    @property
    def demands_all(self) -> bool:
        """Whether each gate must be judged: under CI, and by a run that judges."""
        return self.strict and self.kind in {RunKind.JUDGE, RunKind.AGAINST, RunKind.AGAINST_ENV}

    @property
    def compiled_as(self) -> str:
        """The options that chose a size and a target, which no test says itself; empty for the usual ones."""
        size = f"--perf-size {self.size}" if self.size else ""
        return " ".join(filter(None, (size, f"--perf-target {self.target}" if self.target else "")))

    @property
    def elsewhere(self) -> str:
        """The options that chose something else to compare with than the stored baselines; empty for these."""
        if self.against:
            return f"--perf-against {self.against[:10]}"
        return " ".join(f"--perf-against-env {shlex.quote(item)}" for item in self.against_env)


AS_MEASURED = "JAXGATE_AS_MEASURED"
"""Set for a process whose recording is only compared with: it records also what breaks a claim."""

OTHER_SIDE = "JAXGATE_OTHER_SIDE"
"""Set for every process that records for another one: nothing of it is to be committed, and it leaves no pages."""

CONTRAST_INTO = "JAXGATE_CONTRAST_INTO"
"""Set for a process that runs one side of a contrast: the file into which it writes what that took."""

CONTRAST_SIDE = "JAXGATE_CONTRAST_SIDE"
"""Set beside it: which side."""

NOT_FROM = "JAXGATE_NOT_FROM"
"""Set for the recording of another revision: the checkout that none of its modules may come from."""

ONLY_FROM = "JAXGATE_ONLY_FROM"
"""Likewise: the checkout of that revision; what it has must not come out of an installed copy."""

NAMED_LIKE, NAMESAKES = "JAXGATE_NAMED_LIKE", "JAXGATE_NAMESAKES"
"""Set for every process that records for another one, so that both name cases alike: the baselines of that one, and the test
files that share a name."""

SIZE, CPU_DEVICES, TIME_LIMIT = "JAXGATE_SIZE", "JAXGATE_CPU_DEVICES", "JAXGATE_TIME_LIMIT"
TARGET = "JAXGATE_TARGET"
"""Options that the processes which a run starts read, too: they must run the same workloads."""

STEP_SUMMARY = "GITHUB_STEP_SUMMARY"
"""Set by GitHub's runner: the file of the job's summary, to which every run adds its page."""

NOTES_INTO = "JAXGATE_NOTES_INTO"
"""Set for a process that records one side of ``jaxgate upgrade``: the file to which it adds what becomes of each test."""

RESULTS_INTO = "JAXGATE_RESULTS_INTO"
"""Set by ``jaxgate gate``, ``upgrade`` and ``bisect``: a file of its own for the results, with texts, wherever the bundles go."""
