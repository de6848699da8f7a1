"""The table of options: what a run can be asked for, where, and in which words. What is seldom asked for has no flag.

``--perf-update`` and ``--perf-why`` are commands, not settings: they exist on the command line only, because a line
that is committed, or a forgotten variable, must not rewrite baselines and be green for ever.
"""

from __future__ import annotations

import argparse
import math
from typing import get_args

import pytest

from jaxgate.plugin.options.option import (
    AUTO,
    RANK_TIMEOUT_S,
    Once,
    Option,
    Values,
    count,
    number,
    one_of,
    part,
    path,
    rank,
    share,
    truth,
    words,
)
from jaxgate.settings import ProfileWhen, Size, Update, Watch

MODES = (Update.CREATE, Update.REFRESH, Update.TRIM, Update.REVIEW, Update.TIMES)
OPINION_S = 20.0
"""Nobody waits longer for a second compile than for a program that compiles slowly anyway."""
_SWITCH = Values(bool, form={"action": "store_true"}, default=False)
_UPDATE = {"nargs": "?", "const": str(Update.BOTH), "metavar": "|".join(MODES)}
_FOLDER = Values(path, "a folder of its own", {"metavar": "DIR"})
_LIMIT = number("a number of seconds above 0", "SECONDS", lambda number: 0 < number < math.inf)
_RANK = f"HOST:PORT,COUNT,RANK (10.0.0.1:1234,2,0 on the first of two processes) or {AUTO}, then ,SECONDS if wanted"

UPDATE = Option(
    "--perf-update",
    Values(Update, f"one of {', '.join(MODES)}", _UPDATE, Update.NOTHING),
    "record the selected cases as baselines; touch no other baseline. `create` records only those that have "
    "none of this hardware and release line of jax, `refresh` only those that have one, and the others are judged; `review` judges, then "
    "asks about each case that moved; `trim` runs nothing and removes baselines without a test, and programs "
    "that no baseline names; `times` judges nothing and stores times from fresh processes, on quiet and exclusive hardware. Put "
    "a path before it",
)
WHY = Option("--perf-why", Values(str, "", {"metavar": "TEXT"}, ""), "reason for the recording, kept in its log")
ACCEPT = Option(
    "--perf-accept",
    Values(words, "facts, phases or time, with commas between", {"metavar": "WHAT[,WHAT]"}, frozenset()),
    "with --perf-update: of cases that are worse, record those that are worse in nothing but this, such as temp_bytes or time; "
    "the others stay red",
)
BASELINES = Option(
    "--perf-baselines JAXGATE_BASELINES perf_baselines",
    _FOLDER,
    "folder of the baselines, relative to the root folder {default}",
    default="baselines",
)
STRICT = Option(
    "--perf-strict JAXGATE_STRICT perf_strict",
    Values(truth, "true or false", {"action": argparse.BooleanOptionalAction}),
    "fail on missing, stale and orphaned baselines {default}",
    unset="where CI=true",
    ini_help="true or false: fail on missing, stale and orphaned baselines",
)
AGAINST = Option(
    "--perf-against",
    Values(tuple, form={"action": "append", "metavar": "WHAT"}, default=()),
    "compare with something else than the stored baselines: the programs of a git revision, recorded now from a clean worktree "
    "(`merge-base` is where this branch left the trunk); or another environment, in fresh processes of both: a virtual "
    "environment, a requirement (jax==0.10.2), or NAME=VALUE for XLA_FLAGS, an xla_… option or a jax_… setting; several of "
    "these may be given",
)
PLAN = Option("--perf-plan", _SWITCH, "run nothing; predict what each selected gate will cost, in seconds")
SIZE = Option(
    "--perf-size JAXGATE_SIZE perf_size",
    one_of(get_args(Size)),
    "size of the catalogue's workloads {default}; in another size than the hardware's usual one a case has a baseline "
    "of its own",
    unset="small on CPU, full elsewhere",
    ini_help="small or full: size of the catalogue's workloads",
)
TARGET = Option(
    "--perf-target JAXGATE_TARGET",
    Values(str, "", {"metavar": "PLATFORM:CHIP:TOPOLOGY", "action": Once}, ""),
    "compile the cases for TPUs or GPUs that are not attached, call nothing, and judge what their compiler decides: memory, "
    "communication, FLOPs, donation. For example tpu:v5e:2x4, with jaxgate[tpu-aot], or gpu:h200:8, with jaxgate[cuda-aot]",
)
CPU_DEVICES = Option(
    "JAXGATE_CPU_DEVICES perf_cpu_devices",
    count("1 or more", least=1, default=None),
    "virtual devices that JAX divides the CPU into, for cases on several devices {default}",
)
TIME_LIMIT = Option(
    "--perf-time-limit JAXGATE_TIME_LIMIT perf_time_limit",
    _LIMIT,
    "begin no test after so many seconds, and end the run, not green, with what was not run {default}",
    unset="no limit",
    ini_help="seconds after which a run begins no further test",
)
PROFILE = Option(
    "--perf-profile JAXGATE_PROFILE perf_profile",
    one_of(get_args(ProfileWhen)),
    "profile today's program and the one it is held against: of failing cases, always, or never {default}",
    default="failing",
    ini_help="failing, always or never: which cases are profiled",
)
ARTIFACTS = Option(
    "--perf-artifacts JAXGATE_ARTIFACTS perf_artifacts",
    _FOLDER,
    "folder of the bundles of failing cases, relative to the root folder, emptied by each run {default}",
    default="perf-artifacts",
    ini_help="folder of the bundles of failing cases, relative to the root folder",
)
HISTORY = Option(
    "JAXGATE_HISTORY perf_history",
    Values(path, "a file", {"metavar": "PATH"}),
    "where the run is remembered: an SQLite file, relative to the root folder, or none {default}",
    default=".jaxgate/history.sqlite",
)
DISTRIBUTED = Option(
    "--perf-distributed JAXGATE_DISTRIBUTED",
    Values(rank, _RANK, {"metavar": "HOST:PORT,COUNT,RANK[,SECONDS]"}),
    "run the cases in lock-step on several processes, this one being RANK of COUNT, with jax.distributed's "
    f"coordinator at HOST:PORT; `{AUTO}` lets JAX find that out from the cluster. One more number is the seconds after which a "
    f"process that makes no progress ends the run; {RANK_TIMEOUT_S:g} otherwise {{default}}",
)
MAX_UNDECIDED = Option(
    "--perf-max-undecided JAXGATE_MAX_UNDECIDED perf_max_undecided",
    number("a share between 0 and 1", "SHARE", lambda number: 0 <= number <= 1),
    "end with exit code 2 if more than this share of the cases that a machine can decide is UNDECIDED {default}",
    unset="0.5 where strict, else 1",
    ini_help="share of UNDECIDED cases, of those that a machine can decide, above which the run ends with exit code 2",
)
BUDGET = Option(
    "--perf-budget JAXGATE_BUDGET perf_budget",
    number("a number of seconds", "SECONDS", lambda number: 0 <= number < math.inf),
    "seconds that all duels of the run may take {default}",
    unset="no limit",
)
OPINION = Option(
    "JAXGATE_OPINION perf_opinion",
    number("a number of seconds, 0 or more", "SECONDS", lambda number: 0 <= number < math.inf),
    "seconds that a second opinion on the result of a case may take, where it has no reference and is recorded or compiled to "
    "something new: a second compile by what the first took, a tenth of it for the reference interpreter. A second process, too, "
    "makes what is new: the run fails where its program is another one there; 0 asks neither {default}",
    default=OPINION_S,
    ini_help="seconds that a second opinion on a result may take; 0 asks for none, and no second process",
)
DRIFT_BUDGET = Option(
    "JAXGATE_DRIFT_BUDGET perf_drift_budget",
    Values(share, "a share such as 10% or 0.1", {"metavar": "SHARE"}),
    "fail a case that lost more than this share since its first run in the history, over all refreshes of its baseline together: "
    "in time, or in a fact of which more is worse {default}",
    unset="none",
    ini_help="share, such as 10%, that a case may have lost since its first run in the history",
)
WATCH = Option(
    "--perf-watch perf_watch",
    Values(
        Watch,
        "judge, update, report or gates",
        {"nargs": "?", "const": str(Watch.JUDGE), "metavar": "judge|update|report|gates"},
        Watch.NOT,
    ),
    "watch what all tests compile, gates apart: report where their time goes, and hold the run against perf-watch.lock, where there is "
    "one; `update` writes that file, `report` does not read it; `gates` writes gates of the largest programs. Put a path before it",
    ini_help="judge or report: watch what all tests compile",
)
SHARD = Option(
    "--perf-shard JAXGATE_SHARD",
    Values(part, "which part of how many, such as 2/8", {"metavar": "PART/COUNT"}),
    "run one part of the suite, cut by what each gate costs into so many; `jaxgate merge` makes one run of what all of them left",
)
PROGRAMS = Option(
    "JAXGATE_PROGRAMS perf_programs",
    Values(str, "", {"metavar": "URL"}, ""),
    "where programs are kept that baselines name: an address that fsspec knows, such as s3://bucket/folder, with jaxgate[store] {default}",
    unset="in git, beside the baselines",
)
OPTIONS = tuple(one for one in list(globals().values()) if isinstance(one, Option))
"""In the order of ``--help``."""
FIRST = (UPDATE, WHY, STRICT, AGAINST, PLAN, TARGET, PROFILE, WATCH)
"""What a newcomer needs: the flags that ``pytest --help`` shows."""


def add_options(parser: pytest.Parser) -> None:
    """Declare all flags and ini keys."""
    group = parser.getgroup("jaxgate", "performance gates (jaxgate); all options: jaxgate --help-all")
    for option in OPTIONS:
        option.add_flag(group, shown=option in FIRST)
        option.add_ini(parser)
