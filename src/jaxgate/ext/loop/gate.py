"""The ``gate_loop`` fixture's object: run a loop, let another process resume it, judge both."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxgate.ext.growth.model import Grown
from jaxgate.ext.loop.model import LIMITS, Loop, Seen
from jaxgate.ext.loop.resume import compare, resume
from jaxgate.ext.loop.watch import watch
from jaxgate.judge.counts import Counted, count, judge_counts
from jaxgate.model.numbers import Samples
from jaxgate.model.verdict import Figures, Verdict
from jaxgate.observe.tools import Announce
from jaxgate.plugin.another_process import Said, judge_elsewhere
from jaxgate.plugin.gate_arguments import usage_errors

if TYPE_CHECKING:
    from jaxgate.plugin.gate import Gate

SAVED = "saved"
_PATIENCE_S, _PATIENCE = 300.0, 10.0
"""Seconds after which the process that resumes is ended, and how many times longer than all the steps here it may take."""
_WORDS = "it is resumed", "another loop is resumed", "a loop is not compiled for", "a loop runs in one process"


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
        return judge_elsewhere(
            self._gate,
            name,
            show=lambda folder, _, progress: resume(loop, folder / SAVED / "1", progress),
            judge=partial(_judge, loop),
            words=_WORDS,
        )


def _judge(
    loop: Loop, case: str, ask: Callable[..., Said], folder: Path, progress: Announce
) -> tuple[Verdict, Samples]:
    seen = watch_both(loop, folder, ask, progress)
    times = tuple(step.took_ns for step in seen.timed)
    return judge_loop(case, loop, seen), Samples(bursts_ns=times, calls_per_burst=1)


def watch_both(loop: Loop, folder: Path, ask: Callable[..., Said], progress: Announce) -> Seen:
    """Watch a loop, and the process that restores it and goes on.

    ``ask`` (see ``another_process.ask``) has it resume what was saved in ``SAVED``, in the folder.

    Raises:
        InvalidCaseError: If a part of the loop fails, or the other process does.
    """
    begin = time.monotonic()
    (folder / SAVED).mkdir()
    end, seen, notes = watch(loop, saved=folder / SAVED, progress=progress)
    if loop.save is None:
        return seen
    progress("resuming it in another process")
    patience_s = max(_PATIENCE_S, _PATIENCE * (time.monotonic() - begin))
    said = ask(folder, "resuming the loop in another process", timeout_s=patience_s)
    return replace(seen, counts={**seen.counts, **compare(notes, end, *said)})


def judge_loop(case: str, loop: Loop, seen: Seen) -> Verdict:
    """Hold each count against its limit. No baseline is needed: each step of a sound loop is like the one before."""
    timeline = Grown(  # where the time of each step went
        sizes=tuple(step.number for step in seen.steps),
        facts={
            name: tuple(getattr(step, name) for step in seen.steps)
            for name in ("took_ns", "wait_ns", "log_ns", "collector_ns")
        },
    )
    figures = Figures(now={}, growth={"step": timeline})
    return judge_counts(case, seen.hardware, _counted(loop, seen), time=str(seen), figures=figures)


def _counted(loop: Loop, seen: Seen) -> Iterator[Counted]:
    for name, limit in LIMITS.items():
        if found := seen.counts.get(name):
            allowed = loop.allow.get(name, limit)
            told = f"{found.what}; allowed {allowed:g}" if allowed else found.what
            yield count(name, found.value, allowed, told, found.where)
