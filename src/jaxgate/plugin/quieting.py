"""Options about stored times: which hardware is quiet, and how many sessions to record."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

_SLUG = re.compile(r"[a-z]+-[a-z0-9]+(-[a-z0-9]+)*-[1-9][0-9]*")
_OTHER_RUNS = ("--perf-update", "--perf-against", "--perf-against-env", "--perf-calibrate", "--perf-plan")


def add_options(parser: pytest.Parser, group: pytest.OptionGroup) -> None:
    """Declare them in the group of the others."""
    group.addoption(
        "--perf-record-times",
        type=int,
        metavar="K",
        default=0,
        help="judge nothing; store the times of the selected cases from K fresh processes, on hardware that "
        "perf_quiet (JAXGATE_QUIET) names as quiet and exclusive",
    )
    group.addoption(
        "--perf-busy-ok", action="store_true", help="store times though the machine is busy or throttled, and note it"
    )
    parser.addini(
        "perf_quiet", "hardware (folders under the baselines) where stored times are recorded and judged", type="args"
    )


def read_record_times(config: pytest.Config) -> int:
    """Read how many sessions to record.

    Raises:
        pytest.UsageError: If it is no number of sessions, or does not go with another option.
    """
    count: int = config.getoption("--perf-record-times")
    if count < 0:
        raise pytest.UsageError(f"--perf-record-times: expected 1 or more, found {count}")
    if config.getoption("--perf-busy-ok") and not count:
        raise pytest.UsageError("--perf-busy-ok is about recording times; it needs --perf-record-times")
    wrong = next((name for name in _OTHER_RUNS if config.getoption(name)), "")
    if count and wrong:
        raise pytest.UsageError(f"--perf-record-times goes with no other kind of run; drop {wrong}")
    if count and config.getoption("--benchmark-disable", default=False):
        raise pytest.UsageError("--perf-record-times needs samples; drop --benchmark-disable")
    if count and config.getoption("numprocesses", default=None):
        raise pytest.UsageError("--perf-record-times runs one process after the other; drop -n")
    return count


def read_quiet(config: pytest.Config, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Read which hardware is registered: the variable before the ini key.

    Raises:
        pytest.UsageError: If a name cannot be that of hardware; it would never be met.
    """
    text = environ.get("JAXGATE_QUIET", "")
    found = [item.strip() for item in (text.split(",") if text.strip() else config.getini("perf_quiet"))]
    slugs = tuple(item for item in found if item)
    wrong = next((slug for slug in slugs if not _SLUG.fullmatch(slug)), None)
    if wrong is not None:
        raise pytest.UsageError(
            "perf_quiet (JAXGATE_QUIET): expected hardware as its folder under the baselines is named, "
            f"for example gpu-nvidia-h200-1, found {wrong!r}"
        )
    return slugs
