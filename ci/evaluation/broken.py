"""Break the engine on purpose, in four ways: the evaluation must notice each, or it would pass whatever the gate says."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from ci.evaluation.parts import of_planted, power
from ci.evaluation.result import Requirement, Result
from jaxgate.judge import verdict
from jaxgate.model.policy import FactPolicy
from jaxgate.observe.machine.virtual_devices import give_cpu_devices
from tests.faults.programs import FAULTS, controls
from tests.faults.runner import DEVICES, Bench

TRIED, QUICKLY = slice(None, None, 3), slice(3, None, 12)
"""The mistakes in small programs that are planted; in both are some that are within ten tolerances, or a break would not show."""
LEFT = slice(None, None, 12)
"""The programs that only look different."""


@contextmanager
def _always_identical() -> Iterator[None]:
    judge_time = verdict.judge_time

    def identical(*arguments: Any, **options: Any) -> Any:
        return judge_time(*arguments, **options | {"same_executable": True, "arrives_worse": False})

    with patch.object(verdict, "judge_time", identical):
        yield


@contextmanager
def _last_culprit_first() -> Iterator[None]:
    rank = verdict.rank_causes
    with patch.object(verdict, "rank_causes", lambda *given, **more: tuple(reversed(rank(*given, **more)))):
        yield


@contextmanager
def _tolerance_times_ten() -> Iterator[None]:
    worst = FactPolicy.worst_allowed
    with patch.object(
        FactPolicy, "worst_allowed", lambda policy, before: before + 10 * (worst(policy, before) - before)
    ):
        yield


BREAKS: Mapping[str, Callable[[], Any]] = {
    "an identical program is seen everywhere": _always_identical,
    "the last culprit comes first": _last_culprit_first,
    "tolerances are ten times as wide": _tolerance_times_ten,
}


def broken(*, quick: bool) -> Result:
    """The parts must hold as the engine is, and each break must make one of them fail."""
    begin = time.perf_counter()
    give_cpu_devices(DEVICES, alone=True)
    sound = _planted(quick=quick)
    found = [Requirement(what=f"as the engine is, this fails: {sound or 'nothing'}", held=not sound)]
    for name, broke in BREAKS.items():
        with broke():
            failed = _planted(quick=quick)
        found.append(Requirement(what=f"where {name}, this fails: {failed or 'nothing'}", held=bool(failed)))
    _, sees = power("-p", "ci.evaluation.reversed_duel", quick=True).requirements
    failed = "" if sees.held else sees.what
    name = "both sides of a duel are exchanged"
    found.append(Requirement(what=f"where {name}, this fails: {failed or 'nothing'}", held=bool(failed)))
    return Result(part="broken", requirements=tuple(found), rows={}, seconds=time.perf_counter() - begin)


def _planted(*, quick: bool) -> str:
    """What does not hold of planted mistakes; empty if all of it holds."""
    faults, unchanged = FAULTS[QUICKLY if quick else TRIED], tuple(controls(quick=True))[LEFT]
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        outcomes = [bench.plant(fault) for fault in faults]
        alone = [bench.leave(control) for control in unchanged]
    return "; ".join(each.what for each in of_planted(outcomes, alone) if not each.held)
