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


class Watch(StrEnum):
    """What ``--perf-watch`` does; all of them report."""

    NOT = ""
    JUDGE = "judge"
    UPDATE = "update"
    REPORT = "report"
    GATES = "gates"


class Update(StrEnum):
    """What a run records. The empty word, which is false, records nothing."""

    NOTHING = ""
    BOTH = "create and refresh"
    CREATE = "create"
    REFRESH = "refresh"
    TRIM = "trim"
    REVIEW = "review"
    TIMES = "times"

    def records(self, *, exists: bool) -> bool:
        """Whether a case is recorded instead of being judged; a baseline that is unreadable exists, too."""
        if self is Update.BOTH:
            return True
        return (self is Update.CREATE and not exists) or (self is Update.REFRESH and exists)


class RunKind(StrEnum):
    """What a run is for; no two go together."""

    JUDGE = "judge"
    UPDATE = "update"
    REVIEW = "update=review"
    TRIM = "update=trim"
    AGAINST = "against"
    AGAINST_ENV = "against an environment"
    PLAN = "plan"
    RECORD_TIMES = "update=times"
    UPGRADE = "upgrade"

    @property
    def flag(self) -> str:
        """The option that asks for it on the command line; empty for a run that judges."""
        named = {RunKind.JUDGE: "", RunKind.AGAINST_ENV: "--perf-against", RunKind.UPGRADE: "jaxgate upgrade"}
        return named.get(self, f"--perf-{self}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RankSettings:
    """Which process of which job this is."""

    coordinator: str | None  # `host:port` of rank 0; `None` lets JAX find out from the cluster, like the next two
    count: int | None  # how many ranks there are
    rank: int | None  # which rank this is
    timeout_s: float  # seconds without any progress of the job after which a rank hangs


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactSettings:
    """What the user asked for."""

    when: ProfileWhen  # which cases are profiled
    folder: Path  # where bundles go
    run: str = ""  # names a run of several processes, which share the folder; empty for one process


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the user asked for."""

    kind: RunKind  # what the run is for
    update: Update  # which of the selected cases are recorded instead of being judged
    why: str  # the reason for a recording, for the log
    baselines: Path  # folder of the baselines to compare with
    stored: Path  # folder of the project's own baselines; the same, but where something else is compared with
    # files whose name another file that gates has, too: what is new in them has its folder in its name
    namesakes: frozenset[str]
    strict: bool  # a missing, stale or orphaned baseline fails the run
    opinion_s: float  # seconds that a second opinion on a result may take; 0 asks for none, and no second process
    budget_s: float | None  # seconds that all duels of the run may take; `None` for no limit
    drift_budget: float | None  # share that a case may have lost since its first run in the history; `None` for any
    max_undecided: float  # share of UNDECIDED cases above which the run is not green
    against: str  # the git revision to compare with instead of the stored baselines; empty for these
    artifacts: ArtifactSettings  # what is kept of a case that failed, and where
    history: str  # where the run is remembered: a path, or `none`
    against_env: tuple[str, ...]  # the other environment to compare with, item by item; empty for stored baselines
    # the environment that may take the place of this one, item by item; empty where none was named
    upgrade: tuple[str, ...]
    as_measured: bool  # record what breaks a claim too: this process is the other side of a comparison
    other_side: bool  # what this process records is for another one, which reads it and throws it away
    typed: tuple[str, ...]  # options that a command which records the same cases must repeat
    started_with: Mapping[str, str]  # the environment of this process before the first conftest ran
    options: tuple[str, ...]  # the options of the project's own conftests, and ini values, as they were typed
    # where this process, which records for another one, writes what became of each of its tests; `None` for nowhere
    notes_into: Path | None
    size: Size | None  # of the catalogue's workloads; `None` for what the hardware usually runs
    target: str  # hardware that is not there, for which the cases are compiled; empty runs them here
    cpu_devices: int | None  # virtual devices of a CPU; `None` leaves JAX as it is
    time_limit_s: float | None  # seconds after which no test begins; `None` for no limit
    ranks: RankSettings | None  # which of several processes this is; `None` for a run of one
    accept: frozenset[str] = frozenset()  # what a recording may be worse in; empty for anything
    programs: str = ""  # where the programs of baselines are kept beside git; empty for nowhere
    shard: tuple[int, int] | None = None  # which part of how many is run; `None` for all

    @property
    def records_anew(self) -> bool:
        """Whether every case is recorded for good, so that one which cannot be recorded need not be measured to its end."""
        return self.update is Update.BOTH and not (self.as_measured or self.other_side)

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
        return " ".join(f"--perf-against {shlex.quote(item)}" for item in self.against_env)


AS_MEASURED = "JAXGATE_AS_MEASURED"
"""Set for a process whose recording is only compared with: it records also what breaks a claim."""

OTHER_SIDE = "JAXGATE_OTHER_SIDE"
"""Set for every process that records for another one: nothing of it is to be committed, and it leaves no pages."""

NOT_FROM = "JAXGATE_NOT_FROM"
"""Set for the recording of another revision: the checkout that none of its modules may come from."""

ONLY_FROM = "JAXGATE_ONLY_FROM"
"""Set for the recording of another revision: its checkout; what is in it must not come out of an installed copy."""

NAMED_LIKE, NAMESAKES = "JAXGATE_NAMED_LIKE", "JAXGATE_NAMESAKES"
"""Set for every process that records for another one, so that both name cases alike: the baselines of that one, and the test
files that share a name."""

SIZE, CPU_DEVICES, TIME_LIMIT = "JAXGATE_SIZE", "JAXGATE_CPU_DEVICES", "JAXGATE_TIME_LIMIT"
TARGET = "JAXGATE_TARGET"
"""Options that the processes which a run starts read, too: they must run the same workloads."""

STEP_SUMMARY = "GITHUB_STEP_SUMMARY"
"""Set by GitHub's runner: the file of the job's summary, to which every run adds its page."""

UPGRADE_TO = "JAXGATE_UPGRADE_TO"
"""Set by ``jaxgate upgrade``: the other environment, item by item, quoted as for a shell."""

NOTES_INTO = "JAXGATE_NOTES_INTO"
"""Set for a process that records one side of ``jaxgate upgrade``: the file to which it adds what becomes of each test."""

RESULTS_INTO = "JAXGATE_RESULTS_INTO"
"""Set by ``jaxgate gate``, ``upgrade`` and ``bisect``: a file of its own for the results, with texts, wherever the bundles go."""
