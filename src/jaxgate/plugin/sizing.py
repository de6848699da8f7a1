"""Options about what is run: the size of the workloads, how many virtual devices a CPU has, and for how long."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import cast, get_args

import pytest

from jaxgate.model import Size

SIZE, CPU_DEVICES, LIMIT = "JAXGATE_SIZE", "JAXGATE_CPU_DEVICES", "JAXGATE_TIME_LIMIT"
"""Read by the processes that a run starts, too: they must run the same workloads."""


def add_options(parser: pytest.Parser, group: pytest.OptionGroup) -> None:
    """Declare them in the group of the others."""
    group.addoption(
        "--perf-size",
        choices=get_args(Size),
        default=None,
        help="size of the catalogue's workloads (default: small on CPU, full elsewhere; JAXGATE_SIZE, perf_size); in "
        "another size than the hardware's usual one a case has a baseline of its own",
    )
    parser.addini("perf_size", "small or full: size of the catalogue's workloads", default="")
    parser.addini(
        "perf_cpu_devices", "virtual devices that JAX divides the CPU into, for cases on several devices", default=""
    )
    group.addoption(
        "--perf-time-limit",
        metavar="SECONDS",
        default=None,
        help="begin no test after so many seconds, and end the run, not green, with what was not run "
        f"(default: no limit; {LIMIT}, perf_time_limit)",
    )
    parser.addini("perf_time_limit", "seconds after which a run begins no further test", default="")


def read_size(config: pytest.Config, environ: Mapping[str, str]) -> Size | None:
    """Read the size that was asked for; an option also reaches the processes that this run starts.

    Raises:
        pytest.UsageError: If there is no such size.
    """
    chosen = config.getoption("--perf-size")
    if chosen:
        _pass_on(config, SIZE, chosen)
    text = chosen or environ.get(SIZE, "").strip() or config.getini("perf_size").strip()
    if text and text not in get_args(Size):
        raise pytest.UsageError(f"perf_size ({SIZE}): expected one of {', '.join(get_args(Size))}, found {text!r}")
    return cast("Size", text) if text else None


def _pass_on(config: pytest.Config, name: str, value: str) -> None:
    before = os.environ.get(name)
    os.environ[name] = value

    def restore() -> None:
        if before is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = before

    config.add_cleanup(restore)


def read_cpu_devices(config: pytest.Config, environ: Mapping[str, str]) -> int | None:
    """Read how many virtual devices were asked for.

    Raises:
        pytest.UsageError: If it is no number of devices.
    """
    text = environ.get(CPU_DEVICES, "").strip() or config.getini("perf_cpu_devices").strip()
    if not text:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise pytest.UsageError(f"perf_cpu_devices ({CPU_DEVICES}): expected 1 or more, found {text!r}")
    return int(text)


def read_limit(config: pytest.Config, environ: Mapping[str, str] = os.environ) -> float | None:
    """Read the limit in seconds; ``None`` for none.

    Raises:
        pytest.UsageError: If it is no number of seconds above 0.
    """
    option = config.getoption("--perf-time-limit")
    text = (option or environ.get(LIMIT, "") or config.getini("perf_time_limit")).strip()
    if not text:
        return None
    try:
        limit = float(text)
    except ValueError:
        limit = -1.0
    if not 0 < limit < float("inf"):
        raise pytest.UsageError(f"--perf-time-limit: expected a number of seconds above 0, found {text!r}")
    return limit
