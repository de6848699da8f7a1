"""The ``gate_start`` fixture's object: start a job in two fresh processes, judge what the second one did again."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from jaxgate.engine.run.session import GateSession
from jaxgate.ext.start.judge import Texts, judge_start
from jaxgate.ext.start.model import Job, Started
from jaxgate.ext.start.watch import begin, cache_variables
from jaxgate.keep.cache import ReferenceCache
from jaxgate.keep.files import read_text
from jaxgate.model.measurement import InvalidCaseError
from jaxgate.model.numbers import Samples
from jaxgate.model.verdict import Verdict
from jaxgate.observe.machine.environment import first_device
from jaxgate.observe.tools import Announce
from jaxgate.plugin.gate_arguments import usage_errors
from jaxgate.plugin.reports import nothing_decided
from jaxgate.processes.child import run_child
from jaxgate.processes.pytest_child import ended, last_line, run_test

if TYPE_CHECKING:
    from jaxgate.plugin.gate import Gate

STARTS = "JAXGATE_STARTS"
"""When a process was started, the folder for what it shows, and the name of the case."""
_SAID = "said"
_SEED = "PYTHONHASHSEED"
_PATIENCE_S = 3600.0
"""Seconds after which a process that starts the job is ended."""


class GateStart:
    """Call it in a test, with a function that takes a job to its first result."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def __call__(self, start: Callable[[], Any], *, name: str | None = None, **limits: Any) -> Verdict:
        """Gate the start of a job.

        Args:
            start: Called without arguments in a fresh process; gives what the job waits for first, as arrays in any tree.
            name: Name of the case instead of the test's, as of ``gate``.
            limits: ``programs``, how many may be asked for until then; ``seconds``, how long the second process may take from
                its start; ``allow``, how many ``missed_programs`` and ``repeated_programs`` there may be.

        Returns:
            The verdict, if the test goes on.

        Raises:
            pytest.fail.Exception: If the verdict fails the test, or the arguments do not fit together; its text says why.
        """
        with usage_errors():
            job = Job(start=start, **limits)
        return self._gate.judge_by(name, partial(_judge, job, self._gate.test.item.nodeid))


def _judge(job: Job, test: str, session: GateSession, case: str, progress: Announce) -> tuple[Verdict, Samples | None]:
    began, _, rest = os.environ.get(STARTS, "").partition("=")
    told, _, folder = rest.partition("=")
    if folder and told != case:  # the test goes on to the one that is
        return nothing_decided(case, "another job is started"), None
    if folder:
        leave(job.start, float(began), Path(folder))
    why = "it is started" if folder else _why_not(session)
    if why:
        session.result.left_out[test] = why
        pytest.skip(why)

    def start(number: int, folder: Path) -> Started:
        progress(f"starting it in a fresh process, {number} of 2")
        variables = cache_variables(str(_cache_of(folder)), str(folder / "programs"))
        variables |= {_SEED: str(number), STARTS: f"{time.time()}={case}={folder}"}
        run = partial(run_child, timeout_s=_PATIENCE_S)
        try:
            done = run_test(session.again, test, variables, [f"--perf-artifacts={folder / 'pages'}"], run)
        except TimeoutError as error:
            raise InvalidCaseError("starting the job in another process", str(error)) from error
        said = ReferenceCache(folder).load(_SAID)
        if said is None:
            why = next((reason for _, reason in ended(done)), last_line(done))
            raise InvalidCaseError("starting the job in another process", why)
        if "failed" in said[0]:
            stage, reason = said[0]["failed"]
            raise InvalidCaseError(f"{stage} in another process", reason)
        return Started.of(said[0])

    with tempfile.TemporaryDirectory(prefix="jaxgate-") as name:
        folders = Path(name) / "first", Path(name) / "second"
        first, second = start(1, folders[0]), start(2, folders[1])
        if job.seconds is not None and second.total_s > job.seconds:  # somebody else may have worked meanwhile
            second = min(second, start(2, Path(name) / "again"), key=lambda one: one.total_s)
        texts = _texts(folders[0]), _texts(folders[1])
        return judge_start(case, first_device(), job, (first, second), texts), None


def leave(start: Callable[[], Any], began: float, folder: Path) -> None:
    """Start the job in this process, and leave in a folder what that shows, or what it fails of."""
    try:
        said = begin(start, began, str(_cache_of(folder)))
    except InvalidCaseError as error:
        said = {"failed": [error.stage, error.reason]}
    ReferenceCache(folder).save(_SAID, said, [])


def _cache_of(folder: Path) -> Path:
    return folder.parent / "cache"


def _why_not(session: GateSession) -> str:
    """Why a start is left out of this run; empty if it is not."""
    if session.target is not None:
        return f"nothing is started on {session.target}"
    if session.settings.ranks is not None:
        return "a start is that of one process"
    return "the other side of a comparison" if session.settings.other_side else ""


def _texts(folder: Path) -> Texts:
    files = sorted((folder / "programs").glob("jax_ir*_compile.mlir"))

    def text(place: int) -> str:
        try:
            return read_text(files[place], errors="replace")
        except (IndexError, OSError):
            return ""

    return text
