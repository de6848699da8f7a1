"""The end of a run, in one place: what it leaves, what is wrong beside its tests, its exit status, its pages.

A time limit that is over and ranks that were lost end a run here, too.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jaxgate.engine.run.ending import Ending, ExitStatus, end_session, end_unfinished, look_around
from jaxgate.engine.run.result_files import write_result_files
from jaxgate.keep.baselines import read_all
from jaxgate.model.outcome import Outcome, Review, Shard, UsageError
from jaxgate.model.workload import Collection
from jaxgate.plugin.modes import plan
from jaxgate.plugin.options.command_line import STARTED
from jaxgate.plugin.stash import SESSION, SETTINGS, TESTS, is_worker
from jaxgate.processes.jax_query import ask_hardware
from jaxgate.processes.worktree import refuse_installed_copies, refuse_modules_from
from jaxgate.settings import NOT_FROM, ONLY_FROM, Update

if TYPE_CHECKING:
    from jaxgate.engine.run.session import GateSession

ENDING = pytest.StashKey[Ending]()
OUTCOME = pytest.StashKey[Outcome]()
"""What was written down of the run, for annotations."""
_OVER = (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.USAGE_ERROR)


def finish(session: pytest.Session, code: int) -> None:
    """End a run: leave its results, look for what is wrong beside its tests, set its exit status, write its pages."""
    config = session.config
    if os.environ.get(NOT_FROM):
        _refuse_foreign_code(Path(os.environ[NOT_FROM]), Path(os.environ[ONLY_FROM]))
    gates, wrong = config.stash.get(SESSION, None), False
    ending = None if gates is None else _leave(session, gates, code)
    code = code if ending is None else ending.status.code
    if config.getoption("--perf-strict") and code == pytest.ExitCode.INTERRUPTED and session.testsfailed:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED  # 2 is for a machine that is unfit, not for broken imports
    elif code not in _OVER and not config.option.collectonly and config.stash[SETTINGS].runs_tests:
        config.stash[TESTS].selected |= _left_out(config)
        wrong = config.stash[SETTINGS].strict and nothing_judged(config)
        if gates is not None and ending is not None:
            found = collection(config)
            ending = look_around(gates, ending, found, tests_failed=session.testsfailed, wrong=wrong)
            if ending.status.code != code:
                session.exitstatus = ending.status.code
        elif wrong and code == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
    _publish(session, gates, ending)


def finish_unfinished(session: pytest.Session) -> None:
    """End a run from outside its tests: what was judged and recorded is written down, nothing is looked for."""
    session.exitstatus = pytest.ExitCode.INTERRUPTED
    gates = session.config.stash.get(SESSION, None)
    controller = session.config.pluginmanager.get_plugin("jaxgate-controller")
    if controller is not None and gates is not None:
        controller.settle(gates)
    if gates is None or is_worker(session.config):
        return
    ending = Ending(status=ExitStatus(code=int(session.exitstatus)))
    try:
        ending = end_unfinished(gates, int(session.exitstatus))
    finally:
        _publish(session, gates, ending)


def _leave(session: pytest.Session, gates: GateSession, code: int) -> Ending:
    """What a run leaves, however it ended."""
    config = session.config
    controller = config.pluginmanager.get_plugin("jaxgate-controller")
    if controller is not None:
        controller.settle(gates)
    review: Review | None = None
    if gates.settings.update is Update.REVIEW:
        from jaxgate.plugin.modes.review import ask  # noqa: PLC0415 - imports JAX

        review = ask(session, gates, code)
        if review.all_red_accepted:
            code = session.exitstatus = pytest.ExitCode.OK
    ending = end_session(gates, int(code), review=review)
    plan.remember(config, gates.result.costs)
    return ending


def _publish(session: pytest.Session, gates: GateSession | None, ending: Ending | None) -> None:
    """Write down what the run came to, if it judged or recorded."""
    if gates is None or ending is None:
        return
    config, settings = session.config, gates.settings
    config.stash[ENDING] = ending
    if settings.other_side or settings.as_measured:
        return
    try:
        selected, status = config.stash[TESTS].selected, int(session.exitstatus)
        config.stash[OUTCOME] = write_result_files(
            gates, ending, selected=selected, exit_status=status, shard=_shard(config)
        )
    except Exception as error:  # noqa: BLE001 - the run was judged, and its own summary is still to come
        why = f"the results of the run could not be written: {type(error).__name__}: {error}"
        gates.evidence.problems.append(why)


def _shard(config: pytest.Config) -> Shard | None:
    """Which part of the suite this run had."""
    part, tests = config.stash[SETTINGS].shard, config.stash[TESTS]
    if part is None:
        return None
    suite = hashlib.blake2b("\n".join(sorted(tests.collected)).encode(), digest_size=8).hexdigest()
    mine, others = len(tests.selected), len(tests.elsewhere & tests.gates)
    return Shard(number=part[0], of=part[1], gates=mine, of_gates=mine + others, suite=suite)


def nothing_judged(config: pytest.Config) -> bool:
    """Whether gates were selected and none gave a verdict, without the user having asked for that when the run began."""
    gates = config.stash.get(SESSION, None)
    judged = gates is not None and bool(gates.result.verdicts)
    return bool(config.stash[TESTS].selected) and not judged and "benchmark_skip" not in _narrowed_by(config)


def _narrowed_by(config: pytest.Config) -> frozenset[str]:
    return config.stash[STARTED].narrowed_by if STARTED in config.stash else frozenset()


def _left_out(config: pytest.Config) -> set[str]:
    """Gates with baselines for this hardware, if the project left all of them out and no session was opened."""
    settings, tests = config.stash[SETTINGS], config.stash[TESTS]
    follows = settings.ranks is not None and settings.ranks.rank != 0  # rank 0 judges what this one measures
    if SESSION in config.stash or follows or _narrowed_by(config) or not settings.demands_all or settings.elsewhere:
        return set()
    stored = [
        one
        for one in read_all(settings.baselines)[0].values()
        if one.test in tests.gates - tests.selected - tests.elsewhere
    ]
    with suppress(UsageError):  # JAX finds no device: nothing could be judged here
        here = ask_hardware() if stored else None
        return {one.test for one in stored if here is not None and one.hardware.same_platform(here)}
    return set()


def collection(config: pytest.Config) -> Collection:
    """What pytest collected; with errors while collecting, nothing was collected whole."""
    tests = config.stash[TESTS]
    return Collection(
        tests=frozenset(tests.collected),
        gates=frozenset(tests.gates),
        selected=frozenset(tests.selected),
        roots=tuple(whole_roots(config)),
        elsewhere=frozenset(tests.elsewhere),
        certain=not config.option.continue_on_collection_errors,
        whole=not _narrowed_by(config),
    )


def whole_roots(config: pytest.Config) -> list[str]:
    """The files and folders that were collected whole: arguments that name no single test."""
    if config.getoption("lf", default=False):
        return []  # it leaves out, while collecting, what passed the last time
    roots = []
    for argument in config.args:
        if "::" in argument or "[" in argument:
            continue
        path = (config.invocation_params.dir / argument).resolve()
        if path.is_relative_to(config.rootpath):
            roots.append(path.relative_to(config.rootpath).as_posix())
    return roots


def _refuse_foreign_code(not_from: Path, only_from: Path) -> None:
    """End a recording of another revision that imported today's code."""
    try:
        refuse_modules_from(not_from)
        refuse_installed_copies(only_from)
    except UsageError as error:
        pytest.exit(str(error), returncode=pytest.ExitCode.USAGE_ERROR)
