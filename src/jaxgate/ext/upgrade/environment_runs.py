"""Launches of two environments, in random order: each a process of its own that records the selected tests."""

from __future__ import annotations

import random
import secrets
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from jaxgate.ext.upgrade.environment import OPTION, EnvironmentSpec
from jaxgate.ext.upgrade.launches import judge_environment
from jaxgate.ext.upgrade.venv import prepare_environment
from jaxgate.judge.difference import environment_differences
from jaxgate.keep.baselines import BaselineStore, baseline_files, read_all
from jaxgate.keep.strict import CorruptBaselineError
from jaxgate.model.baseline import Baseline, Launches
from jaxgate.model.claim import Claim
from jaxgate.model.measurement import Measurement
from jaxgate.model.outcome import UsageError
from jaxgate.model.verdict import Verdict
from jaxgate.model.words import plural
from jaxgate.model.workload import Case
from jaxgate.observe.source_lines import without_folders
from jaxgate.processes.pytest_child import RecordSelection, Selection, Side, record_selection
from jaxgate.settings import AS_MEASURED

_YES, _NO = frozenset({"1", "on", "t", "true", "y", "yes"}), frozenset({"0", "f", "false", "n", "no", "off"})
LAUNCH = {"JAX_ENABLE_COMPILATION_CACHE": "false", AS_MEASURED: "1"}
"""What was compiled before costs nothing; these processes are here to measure what it costs."""


Name = Literal["here", "there"]


def both_sides(
    project: Path,
    asked: EnvironmentSpec,
    option: str,
    *,
    here: Mapping[str, str],
    made: Path,
    caches: tuple[Path, Path],
) -> dict[Name, Side]:
    """This environment, whose variables are ``here``, and the other one, which is made in the folder ``made``.

    ``caches`` are the folders in which they remember references.

    Raises:
        UsageError: If the other environment cannot be made.
    """
    here = {**here, **LAUNCH}
    python, there = prepare_environment(asked, made, here)
    return {
        "here": Side(project, here, option, Path(sys.executable), caches[0]),
        "there": Side(project, there, option, python, caches[1]),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What launches of both environments recorded."""

    other: str  # the other environment, as the user named it
    here: tuple[Path, ...]  # folder of each launch of this environment, in the order taken
    there: tuple[Path, ...]  # the other's
    failed: Mapping[str, str]  # what failed, by test: `here` or `there` and the reason
    seed: int  # what the order was drawn from

    def judge(self, case: Case, claims: Sequence[Claim], now: Measurement, *, test: str) -> Verdict:
        """Judge a case by what the launches recorded of it."""
        here = _load(self.here, now, case.name)
        there = _load(self.there, now, case.name)
        complete = len(here) == len(self.here) and len(there) == len(self.there)
        whole = complete and test not in self.failed  # a test may gate, and then fail for another reason
        recorded = f"{len(here)} of {len(self.here)} launches here recorded it, {len(there)} of {len(self.there)} there"
        launches = Launches(
            here=here if whole else (), there=there if whole else (), why_not=self.failed.get(test, recorded)
        )
        described = (
            f"{self.other} ({plural(len(self.there), 'launch', 'launches')} of each, order from seed {self.seed})"
        )
        return judge_environment(case.name, claims, now, launches, other=described, tolerances=case.tolerances)

    def differences(self) -> tuple[str, ...]:
        """What differs between the two environments, by what they recorded of themselves."""
        here, there = (_environment(folders) for folders in (self.here, self.there))
        if here is None or there is None:
            return (f"unknown: nothing was recorded {'here' if here is None else 'there'}",)
        return environment_differences(here, there)


def _load(folders: tuple[Path, ...], now: Measurement, case: str) -> tuple[Baseline, ...]:
    """What launches recorded of a case, whatever their jax: each folder is of one launch."""
    found = []
    for folder in folders:
        try:
            stored = BaselineStore(folder, now.line).load(now.hardware, case)
        except CorruptBaselineError:
            continue  # it counts as a launch that recorded nothing
        if stored is not None:
            found.append(stored.baseline)
    return tuple(found)


def _environment(folders: Sequence[Path]) -> Mapping[str, str] | None:
    """What the processes of a side say of it; ``None`` if they recorded nothing."""
    for folder in folders:
        baseline = next(iter(read_all(folder)[0].values()), None)
        if baseline is not None:
            return baseline.environment
    return None


def refuse_lost_settings(asked: EnvironmentSpec, there: Sequence[Path]) -> None:
    """Refuse a comparison whose settings did not reach the other side: it would compare an environment with itself."""
    environment = _environment(there) or {}
    found = environment.get("XLA_FLAGS", "").split()
    flags = [*asked.flags, *asked.variables.get("XLA_FLAGS", "").split()]
    lost = [flag for flag in map(without_folders, flags) if flag not in found]
    if lost:
        raise UsageError(f"{' '.join(lost)} did not reach jax there; does a conftest set XLA_FLAGS?")
    for name in asked.settings:
        wanted, had = asked.variables[name.upper()], environment.get(name)
        if had is not None and _plain(had) != _plain(wanted):
            raise UsageError(f"{name}={wanted} did not reach jax there, it has {had}; does a conftest set it?")


def _plain(value: str) -> str:
    """A setting as JAX reads it from a variable: ``1`` and ``true`` are one."""
    word = value.lower()
    return "true" if word in _YES else "false" if word in _NO else word


def run_environments(
    project: Path,
    asked: EnvironmentSpec,
    chosen: Selection,
    *,
    other: str,
    count: int,
    into: Path,
    cache: Path,
    progress: Callable[[str], None],
    here: Mapping[str, str],
    record: RecordSelection = record_selection,
) -> Comparison:
    """Record the selected tests several times in this environment, whose variables are ``here``, and the other.

    Raises:
        UsageError: If the other environment cannot be made, or one of them collects nothing.
    """
    progress("preparing the other environment")
    sides = both_sides(
        project, asked, OPTION, here=here, made=cache, caches=(into / "cache-here", into / "cache-there")
    )
    seed = secrets.randbits(32)
    order = [*sides] * count
    random.Random(seed).shuffle(order)  # noqa: S311 - an order, not a secret
    folders: dict[Name, list[Path]] = {name: [] for name in sides}
    failed: dict[str, str] = {}
    progress(f"{len(order)} launches of both environments")
    for name in order:
        folder = into / f"{name}-{len(folders[name])}"
        folder.mkdir()
        for test, reason in record(sides[name], chosen, folder).items():
            failed.setdefault(test, f"{name}: {reason}")
        folders[name].append(folder)
    if not any(map(baseline_files, folders["there"])):
        reasons = "\n".join(f"{test}: {reason}" for test, reason in failed.items())
        raise UsageError(f"the other environment recorded no case\n{reasons}".rstrip())
    refuse_lost_settings(asked, folders["there"])
    return Comparison(other=other, here=tuple(folders["here"]), there=tuple(folders["there"]), failed=failed, seed=seed)
