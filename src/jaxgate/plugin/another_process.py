"""A gate that has its own test run again: there it shows something and leaves it in a folder, here that is judged."""

from __future__ import annotations

import json
import os
import re
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from jaxgate.engine.run.session import GateSession
from jaxgate.keep.cache import ReferenceCache
from jaxgate.model.decision import Status
from jaxgate.model.measurement import InvalidCaseError
from jaxgate.model.numbers import Samples
from jaxgate.model.verdict import TimeVerdict, Verdict
from jaxgate.observe.tools import Announce
from jaxgate.processes.child import run_child
from jaxgate.processes.pytest_child import run_test

if TYPE_CHECKING:
    from jaxgate.plugin.gate import Gate

SHOWS = "JAXGATE_SHOWS"
"""What a process of pytest was started for, as JSON: a case, the folder for what it shows, and the ``time.time()`` of its start."""
_SAID = "said"
_ENDED = re.compile(r"^(?:FAILED|ERROR|SKIPPED) (.*)$", re.MULTILINE)

Said = tuple[dict[str, Any], list[Any]]
"""What a process shows: numbers and texts, and arrays."""


def judge_elsewhere(
    gate: Gate,
    name: str | None,
    *,
    show: Callable[[Path, float, Announce], Said],
    judge: Callable[[str, Callable[..., Said], Path, Announce], tuple[Verdict, Samples | None]],
    words: tuple[str, str, str, str],
) -> Verdict:
    """Gate what another process shows of a case.

    ``show`` is called there, with a folder and the time of its start; ``judge`` here, with the case, what asks another process
    (see ``ask``), and an empty folder. ``words`` say why nothing is judged: where it is shown, where another case of the test
    is, on a target, which is named behind it, and on ranks.
    """
    test = gate.test.item.nodeid
    here, others, target, ranks = words

    def decide(session: GateSession, case: str, progress: Announce) -> tuple[Verdict, Samples | None]:
        shown, folder, began = json.loads(os.environ.get(SHOWS, '["", "", 0]'))
        if shown and shown != case:  # the test goes on to the one that is
            time = TimeVerdict(status=Status.UNDECIDED, reason=others)
            left = Verdict(case=case, hardware=None, status=time.status, fails=False, findings=(), time=time)
            return left, None
        why = ""
        if shown:
            ReferenceCache(Path(folder)).save(_SAID, *show(Path(folder), began, progress))
            why = here
        elif session.target is not None:
            why = f"{target} {session.target}"
        elif session.settings.ranks is not None:
            why = ranks
        elif session.settings.other_side:
            why = "the other side of a comparison"
        if why:
            session.result.left_out[test] = why
            pytest.skip(why)
        with tempfile.TemporaryDirectory(prefix="jaxgate-") as into:
            return judge(case, partial(ask, session, test, case), Path(into), progress)

    return gate.judge_by(name, decide)


def ask(
    session: GateSession,
    test: str,
    case: str,
    folder: Path,
    stage: str,
    *,
    timeout_s: float,
    variables: Mapping[str, str] | None = None,
) -> Said:
    """Have another process show a case, and leave that in a folder.

    Raises:
        InvalidCaseError: If it leaves nothing, with its last words.
    """
    told = {**(variables or {}), SHOWS: json.dumps([case, str(folder), time.time()])}
    run = partial(run_child, timeout_s=timeout_s)
    try:
        done = run_test(session.again, test, told, [f"--perf-artifacts={folder / 'pages'}"], run)
    except TimeoutError as error:
        raise InvalidCaseError(stage, str(error)) from error
    said = ReferenceCache(folder).load(_SAID)
    if said is None:
        last = (done.stderr + done.stdout).strip().splitlines() or ["it said nothing"]
        raise InvalidCaseError(stage, [*_ENDED.findall(done.stdout), last[-1]][0])
    return said
