"""The start of a run at its first gate: before that, a run of pytest pays nothing for being able to gate."""

from __future__ import annotations

import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jaxgate.plugin import options

if TYPE_CHECKING:
    from jaxgate.model import Waiver
    from jaxgate.plugin.launching import Comparison
    from jaxgate.plugin.run import Run

SETTINGS = pytest.StashKey[options.Settings]()
SELECTED = pytest.StashKey[set[str]]()
"""Node ids of the gates that this process is to judge."""
STDERR = pytest.StashKey[int]()
"""A descriptor of the terminal that pytest's capture does not close."""
RUN = pytest.StashKey["Run"]()
_NOT_RECORDED = (pytest.UsageError, OSError, subprocess.SubprocessError)
"""What preparing the other side of a comparison raises: one line, once, and no test is run."""
_WAIVERS = pytest.StashKey[tuple["Waiver", ...]]()


def run(config: pytest.Config) -> Run:
    """The run, made at its first gate; the other side of a comparison is recorded then."""
    from jaxgate.plugin.run import Run  # noqa: PLC0415 - imports what only gates need

    if RUN not in config.stash:
        cache = getattr(config, "cache", None)  # absent with -p no:cacheprovider
        folder = None if cache is None else Path(cache.mkdir("jaxgate"))
        quiet = config.get_verbosity() < 0
        descriptor = None if quiet else config.stash.get(STDERR, None)
        give_devices(config)
        comparison = _launches(config, folder, descriptor) if config.stash[SETTINGS].against_env else None
        failed_there = _against(config, descriptor)
        waivers = config.stash.get(_WAIVERS, ())
        config.stash[RUN] = Run(
            config.stash[SETTINGS],
            config.rootpath,
            folder,
            descriptor,
            comparison,
            waivers=waivers,
            failed_there=failed_there,
        )
    return config.stash[RUN]


def give_devices(config: pytest.Config) -> None:
    """Divide the CPU before anything touches a device; where that is too late, no test is run."""
    count = config.stash[SETTINGS].cpu_devices
    if count is None:
        return
    from jaxgate.observe.virtual import DevicesChosenError, give_cpu_devices  # noqa: PLC0415 - imports JAX

    try:
        give_cpu_devices(count)
    except DevicesChosenError as error:
        pytest.exit(str(error), returncode=pytest.ExitCode.USAGE_ERROR)


def read_waivers(config: pytest.Config) -> None:
    """Read what is waived, before the first test: none is judged by half of it.

    Raises:
        pytest.UsageError: If the file cannot be trusted.
    """
    from jaxgate.keep import waivers  # noqa: PLC0415 - only gates need them

    try:
        config.stash[_WAIVERS] = waivers.read_waivers(config.stash[SETTINGS].baselines)
    except waivers.WaiverError as error:
        raise pytest.UsageError(str(error)) from error


def _against(config: pytest.Config, descriptor: int | None) -> dict[str, str]:
    """Record the other revision first, if there is one; before this process takes a device.

    Returns:
        What failed there, by test.
    """
    settings = config.stash[SETTINGS]
    failed: dict[str, str] = {}
    if settings.against:
        from jaxgate.plugin import against, recording  # noqa: PLC0415 - rarely needed
        from jaxgate.plugin.progress import Progress  # noqa: PLC0415

        folder = tempfile.TemporaryDirectory(prefix="jaxgate-")
        config.add_cleanup(folder.cleanup)
        try:
            with Progress(descriptor, settings.against[:10]) as progress:
                progress("recording it for comparison")
                chosen, into = recording.selection(config), Path(folder.name)
                failed = against.record(config.rootpath, settings.against, chosen, into)
        except _NOT_RECORDED as error:
            pytest.exit(str(error), returncode=pytest.ExitCode.USAGE_ERROR)
        config.stash[SETTINGS] = replace(settings, baselines=into)
    return failed


def _launches(config: pytest.Config, cache: Path | None, descriptor: int | None) -> Comparison:
    """Record both environments first; before this process takes a device."""
    from jaxgate.plugin import environments, launching, recording  # noqa: PLC0415 - rarely needed
    from jaxgate.plugin.progress import Progress  # noqa: PLC0415

    settings = config.stash[SETTINGS]
    folder = tempfile.TemporaryDirectory(prefix="jaxgate-")
    config.add_cleanup(folder.cleanup)
    into = Path(folder.name)
    try:
        with Progress(descriptor, "--perf-against-env") as progress:
            return launching.launch(
                config.rootpath,
                environments.parse(settings.against_env, config.invocation_params.dir),
                recording.selection(config),
                other=" ".join(settings.against_env),
                count=settings.launches,
                into=into,
                cache=(cache or into) / "environments",
                progress=progress,
            )
    except _NOT_RECORDED as error:
        pytest.exit(str(error), returncode=pytest.ExitCode.USAGE_ERROR)
