"""``jaxgate doctor``: what can be gated here and what cannot, each with the next command."""

from __future__ import annotations

import argparse
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import reduce
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter_ns

from jaxgate.cli.console import refuse, tell, write
from jaxgate.cli.pytest_arguments import IniError, usual_folder
from jaxgate.ext.doctor.checkup import EXTRAS, NEEDED, TARGETS, Level, Surroundings, checkup_text, remarks
from jaxgate.judge.difference import environment_differences
from jaxgate.keep.baselines import BaselineStore, read_all
from jaxgate.keep.git import ignored, run_git
from jaxgate.keep.strict import CorruptBaselineError
from jaxgate.model.baseline import Baseline, StoredBaseline
from jaxgate.model.machine import HardwareKey, release_line
from jaxgate.processes.jax_query import find_defaults

MOST_COLUMNS = 110
"""Longer lines are hard to read."""


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Declare ``jaxgate doctor``."""
    command(
        "doctor",
        lambda _: doctor(),
        help="say what can be gated here and what cannot, each with the next command",
        description="Look at packages, devices, settings, the clock, the load, git and baselines. Exit code 1 if "
        "something keeps a gate from judging here. Settings that a conftest makes are not seen.",
    )


def doctor(*, see: Callable[[Path], Surroundings] | None = None) -> int:
    """Look at this machine and project, and print what that means; gives 1 if something keeps a gate from judging here."""
    try:
        folder = usual_folder(Path.cwd())
    except IniError as error:
        return refuse("doctor", str(error), 1)
    found = remarks((see or _look)(folder))
    tell(remarks=[{**asdict(remark), "level": remark.level.name.lower()} for remark in found])
    write(checkup_text(found, min(shutil.get_terminal_size().columns, MOST_COLUMNS)))
    return int(any(remark.level is Level.BAD for remark in found))


def _look(folder: Path) -> Surroundings:
    versions = {name: _version(name) for name in (*NEEDED, *EXTRAS, *TARGETS)}
    if None in (versions[name] for name in NEEDED):
        return Surroundings(versions=versions, hardware=None, folder=_shown(folder))
    from jaxgate.observe.machine.environment import environment_here, first_device, settings_here  # noqa: PLC0415 - imports JAX, which may not be there
    from jaxgate.observe.machine.jax_settings import compilation_cache, know_defaults, unfit_settings  # noqa: PLC0415 - imports JAX, which may not be there
    from jaxgate.observe.machine.load import clock_step, look, python_spread  # noqa: PLC0415 - imports JAX, which may not be there
    from jaxgate.observe.machine.virtual_devices import devices_here  # noqa: PLC0415 - imports JAX, which may not be there

    know_defaults(find_defaults())
    try:
        hardware, (_, devices) = first_device(), devices_here()
        environment = environment_here()
    except RuntimeError as error:  # JAX found no device
        return Surroundings(versions=versions, hardware=None, no_hardware=str(error), folder=_shown(folder))
    baselines, unreadable = read_all(folder)
    nearest = _nearest(BaselineStore(folder, release_line(environment["jax"])), hardware, baselines.values())
    own = [one.baseline for one in nearest if one.own]
    return Surroundings(
        versions=versions,
        hardware=hardware,
        devices=devices,
        settings=settings_here(),
        unfit=unfit_settings(),
        cache=compilation_cache(),
        objections=look(hardware.platform, holds_device=True).objections,  # JAX has started: we use it
        clock_ns=clock_step(perf_counter_ns),
        spread=python_spread(perf_counter_ns),
        in_git=run_git(Path(), "rev-parse", "--git-dir") is not None,
        folder=_shown(folder),
        line=release_line(environment["jax"]),
        own=len(own),
        borrowed=Counter() if own else Counter(one.baseline.folder for one in nearest),
        unreadable=tuple(str(error.path.relative_to(folder)) for error in unreadable),
        ignored=ignored(folder) if folder.is_dir() else (),
        differences=_differences(environment, own or [one.baseline for one in nearest]),
    )


def _nearest(store: BaselineStore, hardware: HardwareKey, stored: Iterable[Baseline]) -> list[StoredBaseline]:
    """The baselines that cases of this hardware would be compared with, as far as they can be read."""
    found = []
    for case in sorted({one.case for one in stored if one.hardware.same_platform(hardware)}):
        with suppress(CorruptBaselineError):
            found.append(store.load(hardware, case))
    return [one for one in found if one is not None]


def _differences(environment: dict[str, str], baselines: Sequence[Baseline]) -> tuple[str, ...]:
    """What differs between this environment and that of all of these baselines."""
    found = [environment_differences(environment, one.environment) for one in baselines]
    common: set[str] = reduce(set.intersection, map(set, found)) if found else set()
    return tuple(sorted(common))


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _shown(folder: Path) -> str:
    """A folder as a person would write it."""
    here = Path.cwd()
    return str(folder.relative_to(here)) if folder.is_relative_to(here) else str(folder)
