"""The start of a run at its first gate: before that, a run of pytest pays nothing for being able to gate."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jaxgate.model import Settings, UsageError

if TYPE_CHECKING:
    from jaxgate.engine.instruments import Instruments
    from jaxgate.engine.session import GateSession
    from jaxgate.model import Provenance, Waiver
    from jaxgate.processes.environment_runs import Comparison

SETTINGS = pytest.StashKey[Settings]()
STDERR = pytest.StashKey[int]()
"""A descriptor of the terminal that pytest's capture does not close."""
SESSION = pytest.StashKey["GateSession"]()
INSTRUMENTS: pytest.StashKey[Instruments] = pytest.StashKey()
"""What a run is to look at the world with instead of the real things: a test's conftest or plugin sets it."""
SUSPECT = "suspect"
"""Outcome of a test that was slower in this process and waits for the others."""


@dataclass(slots=True)
class Tests:
    """The node ids of a run: all that were collected before any was deselected, those that gate, those selected of them."""

    collected: set[str] = field(default_factory=set)
    gates: set[str] = field(default_factory=set)
    selected: set[str] = field(default_factory=set)

    def add(self, other: Tests) -> None:
        """Take those that another process knows of."""
        self.collected |= other.collected
        self.gates |= other.gates
        self.selected |= other.selected


@dataclass(frozen=True, slots=True)
class OtherSide:
    """What the other revision recorded: in which folder, and what failed there, by test."""

    folder: Path
    failed: dict[str, str]


TESTS = pytest.StashKey[Tests]()
OTHER_SIDE = pytest.StashKey["OtherSide | None"]()
MADE_FROM = pytest.StashKey["Provenance | None"]()
"""Where a recording comes from, where another process of this run knew it first."""
_NOT_RECORDED = (UsageError, OSError)
"""What preparing the other side of a comparison raises: one line, once, and no test is run."""
_WAIVERS = pytest.StashKey[tuple["Waiver", ...]]()


def gate_session(config: pytest.Config) -> GateSession:
    """The gates of a run, opened at the first of them; the other side of a comparison is recorded then."""
    if SESSION in config.stash:
        return config.stash[SESSION]
    from jaxgate.engine.session import open_session  # noqa: PLC0415 - what only gates need

    cache = getattr(config, "cache", None)  # absent with -p no:cacheprovider
    folder = None if cache is None else Path(cache.mkdir("jaxgate"))
    give_devices(config)
    comparison = _environments(config, folder) if config.stash[SETTINGS].against_env else None
    record_other_side(config)
    other = config.stash.get(OTHER_SIDE, None)
    if other is not None:
        config.stash[SETTINGS] = replace(config.stash[SETTINGS], baselines=other.folder)
    config.stash[SESSION] = open_session(
        config.stash[SETTINGS],
        config.rootpath,
        cache=folder,
        terminal=terminal(config),
        instruments=config.stash.get(INSTRUMENTS, None),
        comparison=comparison,
        waivers=config.stash.get(_WAIVERS, ()),
        failed_there=None if other is None else other.failed,
        known_provenance=config.stash.get(MADE_FROM, None),
    )
    return config.stash[SESSION]


def given_instruments(config: pytest.Config) -> Instruments:
    """What a run looks at the world with: the real things, unless a test gave others."""
    from jaxgate.engine.instruments import Instruments  # noqa: PLC0415 - what only gates need

    return config.stash.get(INSTRUMENTS, None) or Instruments()


def give_devices(config: pytest.Config) -> None:
    """Divide the CPU before anything touches a device; where that is too late, no test is run."""
    count = config.stash[SETTINGS].cpu_devices
    if count is None or config.pluginmanager.hasplugin("jaxgate-controller"):
        return  # a controller of workers touches no device
    from jaxgate.observe.machine import DevicesChosenError, give_cpu_devices  # noqa: PLC0415 - imports JAX

    try:
        give_cpu_devices(count)
    except DevicesChosenError as error:
        pytest.exit(str(error), returncode=pytest.ExitCode.USAGE_ERROR)


def read_waivers(config: pytest.Config) -> None:
    """Read what is waived with this jax, before the first test: none is judged by half of it.

    Raises:
        pytest.UsageError: If the file cannot be trusted.
    """
    from jaxgate.keep import WaiverError  # noqa: PLC0415 - only gates need them
    from jaxgate.keep import read_waivers as read  # noqa: PLC0415

    try:
        found = read(config.stash[SETTINGS].baselines)
    except WaiverError as error:
        raise pytest.UsageError(str(error)) from error
    config.stash[_WAIVERS] = tuple(waiver for waiver in found if waiver.covers(version("jax")))


def record_other_side(config: pytest.Config) -> None:
    """Record the other revision, if there is one and it is not yet; before this process takes a device."""
    settings = config.stash[SETTINGS]
    if not settings.against or OTHER_SIDE in config.stash:
        return
    from jaxgate.engine.progress import Progress  # noqa: PLC0415
    from jaxgate.plugin.selection import selection  # noqa: PLC0415
    from jaxgate.processes.git_revision import record_revision  # noqa: PLC0415 - rarely needed

    folder = tempfile.TemporaryDirectory(prefix="jaxgate-")
    config.add_cleanup(folder.cleanup)
    try:
        with Progress(terminal(config), settings.against[:10]) as progress:
            progress("recording it for comparison")
            chosen, into = selection(config), Path(folder.name)
            failed = record_revision(
                config.rootpath, settings.against, chosen, into, given_instruments(config).record_other
            )
    except _NOT_RECORDED as error:
        pytest.exit(str(error), returncode=pytest.ExitCode.USAGE_ERROR)
    config.stash[OTHER_SIDE] = OtherSide(into, failed)


def made_from(config: pytest.Config) -> Provenance | None:
    """Where a recording comes from, before the first process of this run writes a file; ``None`` if none is recorded."""
    if not config.stash[SETTINGS].update:
        return None
    if MADE_FROM not in config.stash:
        from jaxgate.keep import read_provenance  # noqa: PLC0415 - only recordings need it

        config.stash[MADE_FROM] = read_provenance(config.rootpath)
    return config.stash[MADE_FROM]


def terminal(config: pytest.Config) -> int | None:
    """A descriptor for progress; none where pytest is to be quiet."""
    return None if config.get_verbosity() < 0 else config.stash.get(STDERR, None)


def _environments(config: pytest.Config, cache: Path | None) -> Comparison:
    """Record both environments first; before this process takes a device."""
    from jaxgate.engine.progress import Progress  # noqa: PLC0415
    from jaxgate.plugin.selection import selection  # noqa: PLC0415
    from jaxgate.processes.environment_runs import run_environments  # noqa: PLC0415
    from jaxgate.processes.environment_spec import parse_environment  # noqa: PLC0415 - rarely needed

    settings = config.stash[SETTINGS]
    folder = tempfile.TemporaryDirectory(prefix="jaxgate-")
    config.add_cleanup(folder.cleanup)
    into = Path(folder.name)
    try:
        with Progress(terminal(config), "--perf-against-env") as progress:
            return run_environments(
                config.rootpath,
                parse_environment(settings.against_env, config.invocation_params.dir),
                selection(config),
                other=" ".join(settings.against_env),
                count=settings.launches,
                into=into,
                cache=(cache or into) / "environments",
                progress=progress,
                record=given_instruments(config).record_other,
            )
    except _NOT_RECORDED as error:
        pytest.exit(str(error), returncode=pytest.ExitCode.USAGE_ERROR)
