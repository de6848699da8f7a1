"""The ``gate_loop`` fixture's object: run a loop, let another process resume it, judge both."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from jaxgate.engine.run.session import GateSession
from jaxgate.ext.loop.judge import judge_loop
from jaxgate.ext.loop.model import Loop, Seen
from jaxgate.ext.loop.resume import compare, resume
from jaxgate.ext.loop.watch import watch
from jaxgate.keep.cache import ReferenceCache
from jaxgate.model.measurement import InvalidCaseError
from jaxgate.model.numbers import Samples
from jaxgate.model.verdict import Verdict
from jaxgate.observe.tools import Announce
from jaxgate.plugin.gate_arguments import usage_errors
from jaxgate.plugin.reports import nothing_decided
from jaxgate.processes.child import run_child
from jaxgate.processes.pytest_child import ended, last_line, run_test

if TYPE_CHECKING:
    from jaxgate.plugin.gate import Gate

RESUMES = "JAXGATE_RESUMES"
"""The folder of what another process saved, and under which name."""
_SAID, _SAVED = "said", "saved"
_PATIENCE_S, _PATIENCE = 300.0, 10.0
"""Seconds after which the process that resumes is ended, and how many times longer than all the steps here it may take."""


class GateLoop:
    """Call it in a test, with the parts of a training loop."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def __call__(
        self,
        make_state: Callable[[], Any],
        batches: Callable[[], Any],
        step: Callable[[Any, Any], tuple[Any, Any]],
        *,
        name: str | None = None,
        **parts: Any,
    ) -> Verdict:
        """Gate a training loop.

        Args:
            make_state: Makes the state of the first step; called in each process.
            batches: Gives an iterator over batches, from the first one on; called in each process.
            step: Called with state and batch; gives the next state, and what is logged.
            name: Name of the case instead of the test's, as of ``gate``.
            parts: ``log``, called with the number of a step and what it gave; ``save``, with an empty folder and the state;
                ``restore``, with that folder and a new state, gives the saved one; ``steps``, 20 of them by default; ``allow``,
                what of ``docs/loops.md`` may be, by name.

        Returns:
            The verdict, if the test goes on.

        Raises:
            pytest.fail.Exception: If the verdict fails the test, or the arguments do not fit together; its text says why.
        """
        with usage_errors():
            loop = Loop(make_state=make_state, batches=batches, step=step, **parts)
        return self._gate.judge_by(name, partial(_judge, loop, self._gate.test.item.nodeid))


def _judge(
    loop: Loop, test: str, session: GateSession, case: str, progress: Announce
) -> tuple[Verdict, Samples | None]:
    told, _, folder = os.environ.get(RESUMES, "").partition("=")
    if folder and told != case:  # the test goes on to the one that is
        return nothing_decided(case, "another loop is resumed"), None
    if folder:
        leave(loop, Path(folder), progress)
    why = "it is resumed" if folder else _why_not(session)
    if why:
        session.result.left_out[test] = why
        pytest.skip(why)
    begin = time.monotonic()

    def again(folder: Path) -> str:
        patience_s = max(_PATIENCE_S, _PATIENCE * (time.monotonic() - begin))
        run = partial(run_child, timeout_s=patience_s)
        done = run_test(
            session.again, test, {RESUMES: f"{case}={folder}"}, [f"--perf-artifacts={folder / 'pages'}"], run
        )
        return next((reason for _, reason in ended(done)), last_line(done))

    with tempfile.TemporaryDirectory(prefix="jaxgate-") as name:
        seen = watch_both(loop, Path(name), again, progress)
    return judge_loop(case, loop, seen), Samples(
        bursts_ns=tuple(step.took_ns for step in seen.timed), calls_per_burst=1
    )


def _why_not(session: GateSession) -> str:
    """Why a loop is left out of this run; empty if it is not."""
    if session.target is not None:
        return f"a loop is not compiled for {session.target}"
    if session.settings.ranks is not None:
        return "a loop runs in one process"
    return "the other side of a comparison" if session.settings.other_side else ""


def watch_both(loop: Loop, folder: Path, again: Callable[[Path], str], progress: Announce) -> Seen:
    """Watch a loop, and the process that restores it and goes on.

    ``again`` has another process ``leave`` what it shows in the folder, empty at first; gives its last words.

    Raises:
        InvalidCaseError: If a part of the loop fails, or the other process does.
    """
    (folder / _SAVED).mkdir()
    end, seen, notes = watch(loop, saved=folder / _SAVED, progress=progress)
    if loop.save is None:
        return seen
    progress("resuming it in another process")
    try:
        words = again(folder)
    except TimeoutError as error:
        raise InvalidCaseError("resuming the loop in another process", str(error)) from error
    said = ReferenceCache(folder).load(_SAID)
    if said is None:
        raise InvalidCaseError("resuming the loop in another process", words)
    return replace(seen, counts={**seen.counts, **compare(notes, end, *said)})


def leave(loop: Loop, folder: Path, progress: Announce) -> None:
    """Restore what ``watch_both`` saved in a folder, go on, and leave there what that shows."""
    said, end = resume(loop, folder / _SAVED / "1", progress)
    ReferenceCache(folder).save(_SAID, said, end)
