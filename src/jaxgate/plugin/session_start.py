"""The start of a run at its first gate: before that, a run of pytest pays nothing for being able to gate."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

from jaxgate.engine.run.progress import Progress
from jaxgate.ext.history.drift import DriftStart
from jaxgate.ext.targets.model import Target
from jaxgate.keep.git import read_provenance
from jaxgate.keep.waivers import WaiverError, read_drift_starts, read_waivers
from jaxgate.model.baseline import Provenance
from jaxgate.model.outcome import UsageError
from jaxgate.model.waiver import Waiver
from jaxgate.plugin.modes.plan import recall
from jaxgate.plugin.options.table import AGAINST, TARGET
from jaxgate.plugin.stash import (
    INSTRUMENTS,
    MADE_FROM,
    OTHER_SIDE,
    SESSION,
    SETTINGS,
    STDERR,
    TESTS,
    OtherSide,
    is_worker,
)
from jaxgate.processes.pytest_child import Selection, child_environment, naming
from jaxgate.report.printable import printable_line

if TYPE_CHECKING:
    from jaxgate.engine.instruments import Instruments
    from jaxgate.engine.run.session import GateSession
    from jaxgate.ext.upgrade.environment_runs import Comparison

_WAIVERS = pytest.StashKey[tuple[Waiver, ...]]()
_DRIFT_STARTS = pytest.StashKey[tuple[DriftStart, ...]]()


def gate_session(config: pytest.Config) -> GateSession:
    """The gates of a run, opened at the first of them; the other side of a comparison is recorded then."""
    if SESSION in config.stash:
        return config.stash[SESSION]
    from jaxgate.engine.run.session import GateSession  # noqa: PLC0415 - imports JAX

    cache = getattr(config, "cache", None)  # absent with -p no:cacheprovider
    folder = None if cache is None else Path(cache.mkdir("jaxgate"))
    target = Target.parse(config.stash[SETTINGS].target) if config.stash[SETTINGS].target else None
    give_devices(config, target)
    comparison = _environments(config, folder) if config.stash[SETTINGS].against_env else None
    record_other_side(config)
    other = config.stash.get(OTHER_SIDE, None)
    if other is not None:
        config.stash[SETTINGS] = replace(config.stash[SETTINGS], baselines=other.folder)
    session = GateSession(
        config.stash[SETTINGS],
        config.rootpath,
        cache=folder,
        terminal=terminal(config),
        waits=config.stash.get(STDERR, None),
        instruments=config.stash.get(INSTRUMENTS, None),
        comparison=comparison,
        waivers=config.stash.get(_WAIVERS, ()),
        drift_starts=config.stash.get(_DRIFT_STARTS, ()),
        failed_there={} if other is None else other.failed,
        known_provenance=config.stash.get(MADE_FROM, None),
        selected=config.stash[TESTS].selected,
        costs=recall(config),
        target=target,
    )
    config.add_cleanup(session.opinions.close)
    _start_compiler(config, session)
    config.stash[SESSION] = session
    return session


def given_instruments(config: pytest.Config) -> Instruments:
    """What a run looks at the world with: the real things, unless a test gave others."""
    from jaxgate.engine.instruments import Instruments  # noqa: PLC0415 - what only gates need

    return config.stash.get(INSTRUMENTS, None) or Instruments()


def run_no_test(config: pytest.Config, why: str) -> NoReturn:
    """End the run; a worker of pytest-xdist must not end in the middle of a test, so there each test that gates fails.

    Raises:
        pytest.exit.Exception: In one process.
        pytest.fail.Exception: In a worker.
    """
    if is_worker(config):
        raise pytest.fail.Exception(why, pytrace=False) from None
    pytest.exit(why, returncode=pytest.ExitCode.USAGE_ERROR)


def _start_compiler(config: pytest.Config, session: GateSession) -> None:
    """Start the compiler of a run's target; where it is not installed, no test is run. Its process ends with the run."""
    from jaxgate.ext.targets.topology import NoTargetError  # noqa: PLC0415 - imports JAX

    config.add_cleanup(session.compilers.close)
    try:
        session.compiler  # noqa: B018 - starts its process
    except NoTargetError as error:
        run_no_test(config, str(error))


def give_devices(config: pytest.Config, target: Target | None = None) -> None:
    """Divide the CPU before anything touches a device; where that is too late, no test is run.

    CPU devices stand for those of a target, and no other platform is looked for.
    """
    count = config.stash[SETTINGS].cpu_devices
    if target is not None:
        count = max(count or 1, target.devices)
    if count is None or config.pluginmanager.hasplugin("jaxgate-controller"):
        return  # a controller of workers touches no device
    from jaxgate.observe.machine.virtual_devices import DevicesChosenError, give_cpu_devices  # noqa: PLC0415 - imports JAX

    try:
        give_cpu_devices(count, alone=target is not None)
    except DevicesChosenError as error:
        run_no_test(config, str(error))


def read_stored(config: pytest.Config) -> None:
    """Read the waivers and check the form of the baselines before the first test, so that one set serves all cases.

    Raises:
        pytest.UsageError: If the waivers cannot be trusted, an earlier jaxgate wrote the baselines, or there is no such
            target.
    """
    if name := config.stash[SETTINGS].target:
        try:
            Target.parse(name)
        except ValueError as error:
            raise pytest.UsageError(f"{TARGET.flag}: {error}") from error
    try:
        found = read_waivers(config.stash[SETTINGS].baselines)
        config.stash[_DRIFT_STARTS] = read_drift_starts(config.stash[SETTINGS].baselines)
    except WaiverError as error:
        raise pytest.UsageError(printable_line(str(error))) from error
    config.stash[_WAIVERS] = tuple(waiver for waiver in found if waiver.covers(version("jax")))


def record_other_side(config: pytest.Config) -> None:
    """Record the other revision if there is one and it is not recorded yet; before this process takes a device."""
    settings = config.stash[SETTINGS]
    if not settings.against or OTHER_SIDE in config.stash:
        return
    from jaxgate.processes.worktree import record_revision  # noqa: PLC0415 - what few runs need

    with _recording(config, settings.against[:10]) as (into, progress):
        progress("recording it for comparison")
        failed = record_revision(
            config.rootpath,
            settings.against,
            selection(config),
            into,
            environ=child_environment(settings) | naming(settings),
            record=given_instruments(config).record_other,
        )
    config.stash[OTHER_SIDE] = OtherSide(into, failed)


def made_from(config: pytest.Config) -> Provenance | None:
    """Where a recording comes from, before the first process of this run writes a file; ``None`` if none is recorded."""
    if not config.stash[SETTINGS].update:
        return None
    if MADE_FROM not in config.stash:
        config.stash[MADE_FROM] = read_provenance(config.rootpath)
    return config.stash[MADE_FROM]


def terminal(config: pytest.Config) -> int | None:
    """A descriptor for progress; none where pytest is to be quiet."""
    return None if config.get_verbosity() < 0 else config.stash.get(STDERR, None)


def _environments(config: pytest.Config, cache: Path | None) -> Comparison:
    """Record both environments, before this process takes a device."""
    from jaxgate.ext.upgrade.environment import LAUNCHES, parse_environment  # noqa: PLC0415 - what few runs need
    from jaxgate.ext.upgrade.environment_runs import run_environments  # noqa: PLC0415 - likewise

    settings = config.stash[SETTINGS]
    with _recording(config, AGAINST.flag) as (into, progress), prefixed(AGAINST.flag):
        return run_environments(
            config.rootpath,
            parse_environment(settings.against_env, config.invocation_params.dir),
            selection(config),
            other=" ".join(settings.against_env),
            count=1 if config.getoption("benchmark_disable", False) else LAUNCHES,
            into=into,
            cache=(cache or into) / "environments",
            progress=progress,
            here=child_environment(settings) | naming(settings),
            record=given_instruments(config).record_other,
        )


@contextmanager
def prefixed(option: str) -> Iterator[None]:
    """Begin the text of what was asked for wrongly with the option that asked for it."""
    try:
        yield
    except UsageError as error:
        text = str(error)
        raise UsageError(text if text.startswith(option) else f"{option}: {text}") from None


@contextmanager
def recording(config: pytest.Config, what: str) -> Iterator[tuple[Path, Progress]]:
    """A folder for what other processes record, and progress."""
    folder = tempfile.TemporaryDirectory(prefix="jaxgate-")
    config.add_cleanup(folder.cleanup)
    with Progress(terminal(config), what) as progress:
        yield Path(folder.name), progress


@contextmanager
def _recording(config: pytest.Config, what: str) -> Iterator[tuple[Path, Progress]]:
    """Give the folder and progress; an error of the processes is printed once, in one line, and no test is run."""
    try:
        with recording(config, what) as found:
            yield found
    except (UsageError, OSError) as error:
        run_no_test(config, str(error))


def selection(config: pytest.Config) -> Selection:
    """The paths and expressions of the command line, for another process that runs the same tests."""
    paths = []
    for argument in config.args:
        file, separator, rest = argument.partition("::")
        path = (config.invocation_params.dir / file).resolve()
        if path.is_relative_to(config.rootpath):
            paths.append(path.relative_to(config.rootpath).as_posix() + separator + rest)
    return Selection(tuple(paths), config.option.keyword, config.option.markexpr)
