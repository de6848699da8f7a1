"""Options of a run over several processes: which one this is, and when one hangs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

import pytest

OPTION, VARIABLE = "--perf-distributed", "JAXGATE_DISTRIBUTED"
LIMIT, LIMIT_VARIABLE = "--perf-rank-timeout", "JAXGATE_RANK_TIMEOUT"
TIMEOUT_S = 300.0
"""Longer than most programs take to compile; a stage of a case that takes longer needs the option."""
AUTO = "auto"
EXPECTED = f"{OPTION}: expected HOST:PORT,COUNT,RANK (10.0.0.1:1234,2,0 on the first of two processes) or {AUTO}"
_ONE_PROCESS = ("trim", "review")
"""Kinds of ``--perf-update`` that every rank would carry out, or that ask a person."""
_OTHER_RUNS = ("against", "against-env", "calibrate", "peak", "plan", "record-times")


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


def add_options(group: pytest.OptionGroup) -> None:
    """Declare them in the group of the others."""
    group.addoption(
        OPTION,
        metavar="HOST:PORT,COUNT,RANK",
        default=None,
        help="run the cases in lock-step on several processes, this one being RANK of COUNT, with jax.distributed's "
        f"coordinator at HOST:PORT; `{AUTO}` lets JAX find that out from the cluster ({VARIABLE})",
    )
    group.addoption(
        LIMIT,
        metavar="SECONDS",
        default=None,
        help=f"end the run where no process makes progress for so long (default: {TIMEOUT_S:g}; {LIMIT_VARIABLE})",
    )


def read_settings(config: pytest.Config, environ: Mapping[str, str] = os.environ) -> RankSettings | None:
    """Read which rank this is; ``None`` for a run in one process.

    Raises:
        pytest.UsageError: If that makes no sense, or does not go with another option.
    """
    text = (config.getoption(OPTION) or environ.get(VARIABLE) or "").strip()
    limit = (config.getoption(LIMIT) or environ.get(LIMIT_VARIABLE) or "").strip()
    if not text:
        if config.getoption(LIMIT):
            raise pytest.UsageError(f"{LIMIT} is about several processes; it needs {OPTION}")
        return None
    wrong = next((name for name in _OTHER_RUNS if config.getoption(f"--perf-{name}")), "")
    if wrong:
        raise pytest.UsageError(f"{OPTION} goes with runs that judge, and with --perf-update; drop --perf-{wrong}")
    update = str(config.getoption("--perf-update") or "")
    if update in _ONE_PROCESS:
        raise pytest.UsageError(f"--perf-update={update} is for one process; drop {OPTION}")
    if config.getoption("numprocesses", default=None) or config.getoption("dist", default="no") != "no":
        raise pytest.UsageError(f"{OPTION} runs one test after the other on all processes; drop -n")
    timeout_s = _seconds(limit) if limit else TIMEOUT_S
    if text == AUTO:
        return RankSettings(coordinator=None, count=None, rank=None, timeout_s=timeout_s)
    try:
        coordinator, count, rank = text.split(",")
        host, separator, port = coordinator.rpartition(":")
        fits = bool(host and separator) and 0 < int(port) < 1 << 16 and 0 <= int(rank) < int(count) and int(count) > 1
    except ValueError:
        fits = False
    if not fits:
        raise pytest.UsageError(f"{EXPECTED}, found {text!r}")
    return RankSettings(coordinator=coordinator, count=int(count), rank=int(rank), timeout_s=timeout_s)


def _seconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found < float("inf"):
        raise pytest.UsageError(f"{LIMIT}: expected a number of seconds above 0, found {text!r}")
    return found
