"""Options about what is kept of a case that failed: profiles, programs, and where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast, get_args

import pytest

When = Literal["failing", "always", "never"]
FOLDER = "perf-artifacts"
CAPTURES = 8
"""Cases that are profiled in a run: a broken machine fails them all, and a few say it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactSettings:
    """What the user asked for.

    Attributes:
        when: Which cases are profiled.
        folder: Where bundles go.
        captures: Cases that are profiled at most; others leave a bundle without profiles.
        run: Names a run of several processes, which share the folder; empty for one process.
    """

    when: When
    folder: Path
    captures: int
    run: str = ""


def add_options(parser: pytest.Parser, group: pytest.OptionGroup) -> None:
    """Declare them in the group of the others."""
    group.addoption(
        "--perf-profile",
        choices=get_args(When),
        default=None,
        help="profile today's program and the one it is held against: of failing cases, always, or never "
        "(default: failing; JAXGATE_PROFILE, perf_profile)",
    )
    parser.addini("perf_profile", "failing, always or never: which cases are profiled", default="")
    group.addoption(
        "--perf-artifacts",
        metavar="DIR",
        default=None,
        help="folder of the bundles of failing cases, relative to the root folder, emptied by each run "
        f"(default: {FOLDER}; JAXGATE_ARTIFACTS, perf_artifacts)",
    )
    parser.addini("perf_artifacts", "folder of the bundles of failing cases, relative to the root folder", default="")
    group.addoption(
        "--perf-captures",
        type=int,
        metavar="N",
        default=CAPTURES,
        help=f"cases that are profiled at most; the others are listed (default: {CAPTURES})",
    )


def read_settings(config: pytest.Config, environ: Mapping[str, str], baselines: Path) -> ArtifactSettings:
    """Read them.

    Args:
        config: pytest's.
        environ: Environment variables.
        baselines: Folder of the baselines, which no run may empty.

    Raises:
        pytest.UsageError: If a value makes no sense.
    """
    when = config.getoption("--perf-profile") or environ.get("JAXGATE_PROFILE", "").strip()
    when = when or config.getini("perf_profile").strip() or "failing"
    if when not in get_args(When):
        raise pytest.UsageError(
            f"perf_profile (JAXGATE_PROFILE): expected one of {', '.join(get_args(When))}, found {when!r}"
        )
    captures: int = config.getoption("--perf-captures")
    if captures < 0:
        raise pytest.UsageError(f"--perf-captures: expected a number of cases, found {captures}")
    folder = config.getoption("--perf-artifacts") or environ.get("JAXGATE_ARTIFACTS") or config.getini("perf_artifacts")
    path = (config.rootpath / (folder or FOLDER)).resolve()
    if config.rootpath.resolve().is_relative_to(path):
        raise pytest.UsageError(
            f"--perf-artifacts: expected a folder of its own, found {folder!r}, which holds the project"
        )
    theirs = baselines.resolve()
    if path.is_relative_to(theirs) or theirs.is_relative_to(path):
        raise pytest.UsageError(f"--perf-artifacts: expected a folder apart from the baselines, found {folder!r}")
    return ArtifactSettings(when=cast("When", when), folder=path, captures=captures)
