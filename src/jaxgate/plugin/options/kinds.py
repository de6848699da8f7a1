"""The kinds of run, and what each allows beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest

from jaxgate.plugin.options.table import ACCEPT, AGAINST, DISTRIBUTED, MODES, PLAN, TARGET, UPDATE, WHY
from jaxgate.plugin.stash import is_worker
from jaxgate.settings import UPGRADE_TO, RunKind, Update

_NO_OTHER = "{kind} cannot be combined with another kind of run; drop {other}"
_ONE_BY_ONE = "{kind} runs one process after the other; drop -n"
_FOR_RANKS = f"{DISTRIBUTED.flag} goes with runs that judge, and with --perf-update; drop {{kind}}"
_FOR_ONE = f"{{kind}} is for one process; drop {DISTRIBUTED.flag}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Company:
    """What a kind of run refuses beside it: texts, empty where it refuses nothing, with ``{kind}`` for its option."""

    others: str = ""  # why it refuses a kind that stands before it in the table; `{other}` is that one's option
    samples: bool = False  # whether it needs the samples that `--benchmark-disable` leaves out
    workers: str = ""  # why it refuses workers of pytest-xdist
    ranks: str = _FOR_RANKS  # why it refuses several processes in lock-step


KINDS = {
    RunKind.JUDGE: Company(ranks=""),
    RunKind.UPDATE: Company(ranks=""),
    RunKind.REVIEW: Company(workers="{kind} asks about what one process measured; drop -n", ranks=_FOR_ONE),
    RunKind.TRIM: Company(workers="{kind} runs no test; drop -n", ranks=_FOR_ONE),
    RunKind.AGAINST: Company(others="{other} records, {kind} compares; choose one"),
    RunKind.AGAINST_ENV: Company(others="{other} records, {kind} compares; choose one", workers=_ONE_BY_ONE),
    RunKind.PLAN: Company(
        others="{kind} predicts a run that judges; drop {other}",
        workers="{kind} runs nothing, so there is nothing to distribute; drop -n",
    ),
    RunKind.RECORD_TIMES: Company(others=_NO_OTHER, samples=True, workers=_ONE_BY_ONE),
    RunKind.UPGRADE: Company(others=_NO_OTHER, workers=_ONE_BY_ONE),
}


COMPILING = frozenset({RunKind.JUDGE, RunKind.UPDATE, RunKind.REVIEW, RunKind.TRIM, RunKind.AGAINST})
"""Kinds of run that need no call."""


def read_kind(config: pytest.Config, environ: Mapping[str, str]) -> tuple[RunKind, Update]:
    """Read what the run is for, and what it records.

    Raises:
        pytest.UsageError: If something else that was asked for does not go with that.
    """
    update = _read_update(config)
    if WHY.find(config, {}) and not update:
        raise pytest.UsageError(f"{WHY.flag} gives the reason of a recording; it needs {UPDATE.flag}")
    if ACCEPT.find(config, {}) and update not in (Update.BOTH, Update.REFRESH):
        raise pytest.UsageError(f"{ACCEPT.flag} says what a recording may accept; it needs {UPDATE.flag}")
    given = _given(config, update, environ)
    refusal = _refusal(given, config, environ) or _refuses_target(given, config, environ)
    if refusal:
        raise pytest.UsageError(refusal)
    return given[0] if given else RunKind.JUDGE, update


def _refusal(given: Sequence[RunKind], config: pytest.Config, environ: Mapping[str, str]) -> str:
    """Why a kind of run does not go with another, or with what else was asked for; empty if it does."""
    kind = given[0] if given else RunKind.JUDGE
    option, company = kind.flag.partition("=")[0], KINDS[kind]
    workers = config.getoption("numprocesses", default=None) or config.getoption("dist", default="no") != "no"
    ranks = DISTRIBUTED.find(config, environ)
    if len(given) > 1:
        return KINDS[given[1]].others.format(kind=given[1].flag, other=option)
    if company.samples and config.getoption("--benchmark-disable", default=False):
        return f"{kind.flag} needs samples; drop --benchmark-disable"
    if workers and company.workers and not config.option.collectonly:
        return company.workers.format(kind=kind.flag)
    if ranks and company.ranks:
        return company.ranks.format(kind=kind.flag)
    if ranks and workers:
        return f"{DISTRIBUTED.flag} runs one test after the other on all processes; drop -n"
    return ""


def _refuses_target(given: Sequence[RunKind], config: pytest.Config, environ: Mapping[str, str]) -> str:
    """Why the cases cannot only be compiled; empty if they can, or shall be called."""
    if not TARGET.find(config, environ):
        return ""
    calls = [DISTRIBUTED.flag] if DISTRIBUTED.find(config, environ) else []
    calls += [kind.flag for kind in given if kind not in COMPILING]
    return f"{calls[0]} calls the cases, {TARGET.flag} only compiles them; drop one of the two" if calls else ""


def _read_update(config: pytest.Config) -> Update:
    """What the run records: a command, which only a person may give."""
    given: str | None = config.getoption(UPDATE.flag)
    if given is None:
        return Update.NOTHING
    if given not in (Update.BOTH, *MODES):
        raise UPDATE.error(given, then=f"; was a path meant? Write {UPDATE.flag}=refresh, or put it last")
    arguments = [str(part) for part in config.invocation_params.args]
    typed = any(
        part == UPDATE.flag or part.startswith((f"{UPDATE.flag}=", "@")) for part in arguments
    )  # @: a file of them
    if not typed and not is_worker(config):
        raise pytest.UsageError(
            f"{UPDATE.flag} is a command: expected it on the command line, found it in addopts or PYTEST_ADDOPTS; remove it "
            "there, a run that records judges nothing"
        )
    return Update(given)


def _given(config: pytest.Config, update: Update, environ: Mapping[str, str]) -> list[RunKind]:
    """The kinds that were asked for, in the order of the table."""
    recording = {Update.REVIEW: RunKind.REVIEW, Update.TRIM: RunKind.TRIM, Update.TIMES: RunKind.RECORD_TIMES}
    asked = {
        recording.get(update, RunKind.UPDATE): update,
        RunKind.AGAINST: revision_of(config),
        RunKind.AGAINST_ENV: environment_of(config),
        RunKind.PLAN: config.getoption(PLAN.flag),
        RunKind.UPGRADE: environ.get(UPGRADE_TO),
    }
    return [kind for kind in KINDS if asked.get(kind)]


def revision_of(config: pytest.Config) -> str:
    """The git revision that a run compares with; empty for none."""
    asked = _against(config)
    if len(asked) != 1:
        return ""
    from jaxgate.ext import parts  # noqa: PLC0415 - what few runs need

    folder = config.invocation_params.dir
    return "" if any(part.is_environment(asked[0], folder) for part in parts("environment")) else asked[0]


def environment_of(config: pytest.Config) -> tuple[str, ...]:
    """The environment that a run compares with, item by item; none where it compares with a revision."""
    return () if revision_of(config) else _against(config)


def _against(config: pytest.Config) -> tuple[str, ...]:
    return tuple(AGAINST.read(config, {}))
