"""Options, parsed once at the border: command line, environment variable, ini key, default, in this order."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import pytest

from jaxgate.plugin.options import table
from jaxgate.plugin.options.command_line import STARTED, Started
from jaxgate.plugin.options.kinds import environment_of, read_kind, revision_of
from jaxgate.plugin.options.option import FALSE, Option
from jaxgate.settings import (
    AS_MEASURED,
    NAMED_LIKE,
    NAMESAKES,
    NOT_FROM,
    NOTES_INTO,
    OTHER_SIDE,
    UPGRADE_TO,
    ArtifactSettings,
    RunKind,
    Settings,
)

STRICT_UNDECIDED = 0.5
"""More than half of the cases UNDECIDED: the machine is unfit, and the gate did not gate."""


def read_settings(config: pytest.Config, environ: Mapping[str, str] = os.environ) -> Settings:
    """Read the options of a run.

    Raises:
        pytest.UsageError: If a value makes no sense, or options do not go together.
    """

    def read(option: Option) -> Any:
        return option.read(config, environ)

    kind, update = read_kind(config, environ)
    baselines = config.rootpath / read(table.BASELINES)
    strict = read(table.STRICT)
    if strict is None:
        strict = environ.get("CI", "").strip().lower() not in FALSE
    undecided = read(table.MAX_UNDECIDED)
    started = config.stash.get(STARTED, Started(dict(environ), ()))
    return Settings(
        kind=kind,
        update=update,
        why=read(table.WHY),
        accept=_accepted(read(table.ACCEPT)),
        baselines=baselines,
        programs="" if OTHER_SIDE in environ else read(table.PROGRAMS),
        stored=Path(environ.get(NAMED_LIKE) or baselines),
        namesakes=frozenset(filter(None, environ.get(NAMESAKES, "").split(os.pathsep))),
        strict=strict,
        opinion_s=read(table.OPINION),
        budget_s=read(table.BUDGET),
        drift_budget=read(table.DRIFT_BUDGET),
        max_undecided=(STRICT_UNDECIDED if strict else 1.0) if undecided is None else undecided,
        against=revision_of(config),
        against_env=environment_of(config),
        upgrade=tuple(shlex.split(environ.get(UPGRADE_TO, ""))),
        as_measured=AS_MEASURED in environ,
        other_side=OTHER_SIDE in environ,
        typed=_typed(config),
        started_with=started.environ,
        options=started.options,
        notes_into=Path(environ[NOTES_INTO]) if environ.get(NOTES_INTO) else None,
        size=read(table.SIZE),
        target=read(table.TARGET),
        cpu_devices=read(table.CPU_DEVICES),
        artifacts=ArtifactSettings(
            when=read(table.PROFILE), folder=_artifacts(config, read(table.ARTIFACTS), baselines)
        ),
        history=read(table.HISTORY),
        time_limit_s=read(table.TIME_LIMIT),
        ranks=read(table.DISTRIBUTED),
        shard=_shard(kind, read(table.SHARD)),
    )


def begins_at_once(config: pytest.Config, settings: Settings, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether a run does more than to run tests, or ends in another way, though none of them gates."""
    return (
        settings.kind is not RunKind.JUDGE
        or settings.ranks is not None
        or bool(config.getoption(table.STRICT.flag))
        or bool(environ.get(NOT_FROM))
    )


def pass_on(config: pytest.Config) -> None:
    """Let two options also reach the processes that this run starts: they must run the same workloads."""
    for option in (table.SIZE, table.TARGET):
        chosen = config.getoption(option.flag)
        if chosen:
            environment = pytest.MonkeyPatch()
            environment.setenv(option.variable, chosen)
            config.add_cleanup(environment.undo)


def _accepted(names: frozenset[str]) -> frozenset[str]:
    if not names:
        return names
    from jaxgate.judge.policy import BY_NAME  # noqa: PLC0415 - what few runs need
    from jaxgate.model.numbers import COMPARISONS, Phases  # noqa: PLC0415 - likewise
    from jaxgate.model.waiver import TIME  # noqa: PLC0415 - likewise

    known = COMPARISONS | {TIME, *BY_NAME, *(phase.name for phase in fields(Phases))}
    unknown = sorted(names - known)
    if unknown:
        near = ", ".join(get_close_matches(unknown[0], known, 3))
        raise table.ACCEPT.error(
            unknown[0], then=f"; did you mean {near}?" if near else "; `jaxgate policy` lists them"
        )
    return names


def _shard(kind: RunKind, found: tuple[int, int] | None) -> tuple[int, int] | None:
    if found and kind not in {RunKind.JUDGE, RunKind.UPDATE, RunKind.AGAINST, RunKind.PLAN}:
        raise pytest.UsageError(f"{kind.flag} is for the whole suite; drop {table.SHARD.flag}")
    return found


def _typed(config: pytest.Config) -> tuple[str, ...]:
    """The options of this run that decide which baselines are meant: a command to record them must repeat these."""
    chosen = ((option.flag, config.getoption(option.flag)) for option in (table.BASELINES, table.SIZE, table.TARGET))
    return tuple(f"{flag}={shlex.quote(value)}" for flag, value in chosen if value)


def _artifacts(config: pytest.Config, folder: str, baselines: Path) -> Path:
    """The folder that each run empties; refused if something else may lie in it."""
    path = (config.rootpath / folder).resolve()
    if config.rootpath.resolve().is_relative_to(path):
        raise table.ARTIFACTS.error(folder, then=", which holds the project")
    theirs = baselines.resolve()
    if path.is_relative_to(theirs) or theirs.is_relative_to(path):
        raise table.ARTIFACTS.error(folder, expected="a folder apart from the baselines")
    return path
