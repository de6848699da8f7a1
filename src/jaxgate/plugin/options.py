"""Options, parsed once at the border.

Precedence: command line, environment variable, ini key, default. ``--perf-update`` and ``--perf-why``, in
``updating.py``, are commands and exist on the command line only.
"""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from jaxgate.model import Size
from jaxgate.plugin import artifacts, quieting, ranks_options, sizing, updating
from jaxgate.plugin.recording import AS_MEASURED, OTHER_SIDE
from jaxgate.plugin.updating import Update

_TRUE, _FALSE = frozenset({"1", "true", "yes", "on"}), frozenset({"", "0", "false", "no", "off"})


STRICT_UNDECIDED = 0.5
"""More than half of the cases UNDECIDED: the machine is unfit, and the gate did not gate."""


PEAK_INTO = "JAXGATE_PEAK_INTO"
"""Set for a process of ``--perf-peak``: the file into which its one gate writes the real peak of its case."""

LAUNCHES = 5
"""Of each environment: chance alone separates them once in 252."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the user asked for.

    Attributes:
        update: Which of the selected cases are recorded instead of being judged.
        why: The reason for a recording, for the log.
        baselines: Folder of the baselines to compare with.
        stored: Folder of the project's own baselines; the same, but where something else is compared with.
        calibrate: Duels of each case with itself, instead of judging; 0 judges.
        against: The git revision to compare with instead of the stored baselines; empty for these.
        quiet: Hardware, by its folder under the baselines, that is quiet and exclusive: times stored there count.
        record_times: Fresh processes whose times are stored, instead of judging; 0 judges.
        busy_ok: Store times though the machine is busy, and note it.
        against_env: The other environment to compare with, item by item; empty for stored baselines.
        launches: Processes of each environment.
        as_measured: Record what breaks a claim too: this process is the other side of a comparison.
        typed: Options that a command which records the same cases must repeat.
        other_side: What this process records is for another one, which reads it and throws it away.
        max_undecided: Share of UNDECIDED cases above which the run is not green.
        budget_s: Seconds that all duels of the run may take; ``None`` for no limit.
        strict: A missing, stale or orphaned baseline fails the run.
        plan: Run nothing; predict what the selected gates will cost.
        peak: Measure the real peak of each selected case, in a fresh process, instead of judging.
        peak_into: Where this process writes the peak of its one case; ``None`` judges.
        size: Of the catalogue's workloads; ``None`` for what the hardware usually runs.
        cpu_devices: Virtual devices of a CPU; ``None`` leaves JAX as it is.
        artifacts: What is kept of a case that failed, and where.
    """

    update: Update
    why: str
    baselines: Path
    stored: Path
    strict: bool
    budget_s: float | None
    max_undecided: float
    calibrate: int
    against: str
    artifacts: artifacts.ArtifactSettings
    against_env: tuple[str, ...] = ()
    launches: int = LAUNCHES
    quiet: tuple[str, ...] = ()
    record_times: int = 0
    busy_ok: bool = False
    as_measured: bool = False
    other_side: bool = False
    typed: tuple[str, ...] = ()
    peak: bool = False
    peak_into: Path | None = None
    size: Size | None = None
    cpu_devices: int | None = None

    @property
    def runs_tests(self) -> bool:
        """Whether this process runs the tests: others do for times and peaks, none to predict or to trim."""
        return not (self.plan or self.record_times or self.peak or self.update is Update.TRIM)

    @property
    def elsewhere(self) -> str:
        """The options that chose something else to compare with than the stored baselines; empty for these."""
        if self.against:
            return f"--perf-against {self.against[:10]}"
        return " ".join(f"--perf-against-env {shlex.quote(item)}" for item in self.against_env)

    plan: bool = False


def add_options(parser: pytest.Parser) -> None:
    """Declare options and ini keys."""
    group = parser.getgroup("jaxgate", "performance gates (jaxgate)")
    updating.add_options(group)
    group.addoption(
        "--perf-baselines",
        metavar="DIR",
        default=None,
        help="folder of the baselines, relative to the root folder (default: baselines; JAXGATE_BASELINES, perf_baselines)",
    )
    group.addoption(
        "--perf-strict",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="fail on missing, stale and orphaned baselines (default: where CI=true; JAXGATE_STRICT, perf_strict)",
    )
    group.addoption(
        "--perf-against",
        metavar="REV",
        default="",
        help="compare with the programs of a git revision, recorded now from a clean worktree, instead of the stored "
        "baselines; `merge-base` is where this branch left the trunk",
    )
    group.addoption(
        "--perf-against-env",
        action="append",
        metavar="ENV",
        default=[],
        help="compare this environment with another, in fresh processes of both: a virtual environment, a requirement "
        "(jax==0.10.2), or NAME=VALUE for XLA_FLAGS, an xla_… option or a jax_… setting; may be given several times",
    )
    group.addoption(
        "--perf-launches",
        type=int,
        metavar="N",
        default=LAUNCHES,
        help="fresh processes of each environment (default: 5; fewer than 4 judge facts only)",
    )
    group.addoption(
        "--perf-calibrate",
        type=int,
        metavar="N",
        default=0,
        help="judge nothing; run N duels of each selected case with itself and print the gate's error rates",
    )
    group.addoption(
        "--perf-plan", action="store_true", help="run nothing; predict what each selected gate will cost, in seconds"
    )
    group.addoption(
        "--perf-peak",
        action="store_true",
        help="judge nothing; show the real peak of device memory of each selected case, as its allocator counted it in "
        "a fresh process, with fragmentation and preallocation (describes, does not gate; CPU keeps no such figures)",
    )
    quieting.add_options(parser, group)
    sizing.add_options(parser, group)
    artifacts.add_options(parser, group)
    ranks_options.add_options(group)
    group.addoption(
        "--perf-max-undecided",
        metavar="SHARE",
        default=None,
        help="end with exit code 2 if more than this share of the cases is UNDECIDED "
        "(default: 0.5 where strict, else 1; JAXGATE_MAX_UNDECIDED, perf_max_undecided)",
    )
    parser.addini(
        "perf_max_undecided", "share of UNDECIDED cases above which the run ends with exit code 2", default=""
    )
    group.addoption(
        "--perf-budget",
        metavar="SECONDS",
        default=None,
        help="seconds that all duels of the run may take (default: no limit; JAXGATE_BUDGET, perf_budget)",
    )
    parser.addini("perf_budget", "seconds that all duels of the run may take", default="")
    parser.addini("perf_baselines", "folder of the baselines, relative to the root folder", default="")
    parser.addini("perf_strict", "true or false: fail on missing, stale and orphaned baselines", default="")


def read_settings(config: pytest.Config, environ: Mapping[str, str] = os.environ) -> Settings:
    """Read the options of a run.

    Raises:
        pytest.UsageError: If a value makes no sense.
    """
    update = updating.read_update(config)
    others = config.getoption("--perf-against-env")
    if others and (update or config.getoption("--perf-against") or config.getoption("--perf-calibrate")):
        raise pytest.UsageError("--perf-against-env goes with no other kind of run; drop the other --perf- option")
    if others and config.getoption("--benchmark-disable", default=False):
        raise pytest.UsageError("--perf-against-env needs samples; drop --benchmark-disable")
    if config.getoption("--perf-launches") < 1:
        raise pytest.UsageError(f"--perf-launches: expected 1 or more, found {config.getoption('--perf-launches')}")
    if config.getoption("--perf-plan"):
        _refuse_beside_plan(config)
    record_times = quieting.read_record_times(config)
    folder = config.getoption("--perf-baselines") or environ.get("JAXGATE_BASELINES") or config.getini("perf_baselines")
    strict = _strict(config, environ)
    budget_s = _number(config, environ, "budget", "a number of seconds", float("inf"))
    cap = _number(config, environ, "max-undecided", "a share between 0 and 1", 1.0)
    return Settings(
        update=update,
        why=config.getoption("--perf-why"),
        baselines=config.rootpath / (folder or "baselines"),
        stored=config.rootpath / (folder or "baselines"),
        strict=strict,
        budget_s=budget_s,
        max_undecided=(STRICT_UNDECIDED if strict else 1.0) if cap is None else cap,
        against=config.getoption("--perf-against"),
        calibrate=_duels(config),
        against_env=tuple(others),
        launches=config.getoption("--perf-launches"),
        as_measured=AS_MEASURED in environ,
        other_side=OTHER_SIDE in environ,
        typed=updating.read_typed(config),
        quiet=quieting.read_quiet(config, environ),
        record_times=record_times,
        busy_ok=config.getoption("--perf-busy-ok"),
        plan=config.getoption("--perf-plan"),
        peak=_peak(config, environ),
        peak_into=Path(environ[PEAK_INTO]) if environ.get(PEAK_INTO) else None,
        size=sizing.read_size(config, environ),
        cpu_devices=sizing.read_cpu_devices(config, environ),
        artifacts=artifacts.read_settings(config, environ, config.rootpath / (folder or "baselines")),
    )


def _peak(config: pytest.Config, environ: Mapping[str, str]) -> bool:
    """Whether to measure peaks; the fresh processes themselves, which may find the option in an ini file, do not."""
    if not config.getoption("--perf-peak") or environ.get(PEAK_INTO):
        return False
    others = ("update", "against", "against-env", "calibrate", "plan", "record-times")
    wrong = next((name for name in others if config.getoption(f"--perf-{name}")), "")
    if wrong:
        raise pytest.UsageError(f"--perf-peak goes with no other kind of run; drop --perf-{wrong}")
    if config.getoption("numprocesses", default=None):
        raise pytest.UsageError("--perf-peak runs one process after the other; drop -n")
    return True


def _refuse_beside_plan(config: pytest.Config) -> None:
    others = [name for name in ("update", "against", "against-env", "calibrate") if config.getoption(f"--perf-{name}")]
    if others:
        raise pytest.UsageError(f"--perf-plan predicts a run that judges; drop --perf-{others[0]}")
    if config.getoption("dist", "no") != "no":
        raise pytest.UsageError("--perf-plan runs nothing, so there is nothing to distribute; drop -n")


def _duels(config: pytest.Config) -> int:
    """Duels of a calibration; 0 for none."""
    duels: int = config.getoption("--perf-calibrate")
    if duels < 0:
        raise pytest.UsageError(f"--perf-calibrate: expected a number of duels, found {duels}")
    if duels and (config.getoption("--perf-update") or config.getoption("--perf-against")):
        raise pytest.UsageError("--perf-calibrate judges and records nothing; drop --perf-update and --perf-against")
    return duels


def _number(config: pytest.Config, environ: Mapping[str, str], name: str, what: str, most: float) -> float | None:
    """Read a number between 0 and a limit from option, environment or ini; ``None`` if it is nowhere."""
    key = name.replace("-", "_")
    text = config.getoption(f"--perf-{name}") or environ.get(f"JAXGATE_{key.upper()}") or config.getini(f"perf_{key}")
    if not text or not text.strip():
        return None
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not (0 <= number <= most) or number == float("inf"):
        raise pytest.UsageError(f"--perf-{name}: expected {what}, found {text!r}")
    return number


def _strict(config: pytest.Config, environ: Mapping[str, str]) -> bool:
    chosen: bool | None = config.getoption("--perf-strict")
    if chosen is not None:
        return chosen
    for name, value in (
        ("JAXGATE_STRICT", environ.get("JAXGATE_STRICT")),
        ("perf_strict", config.getini("perf_strict")),
    ):
        if value and value.strip():
            return _flag(name, value)
    return environ.get("CI", "").strip().lower() not in _FALSE


def _flag(name: str, value: str) -> bool:
    word = value.strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise pytest.UsageError(f"{name}: expected true or false, found {value!r}")
