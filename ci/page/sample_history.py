"""A made-up history of a case: 1 % slower a week, each refresh within its tolerance, and a fact that moved once."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from math import exp

from jaxgate.ext.history.model import HistoryPoint
from jaxgate.model.verdict import BaselineName

FOLDER = "cpu-amd-epyc-1-jax-0.12"
BEGINS = datetime(2026, 3, 2, 12, tzinfo=UTC)
_RUNS, _REFRESHED = 150, 14
_CREEPS_FROM, _MOVES_AT = 30, 70
_NOISE, _BOUND = 0.006, 0.013


def sample_history() -> list[HistoryPoint]:
    """A run a day; the program is another one in each."""
    chance = random.Random(5)  # noqa: S311 - the same numbers every time
    found: list[HistoryPoint] = []
    baseline, accepted = None, 1.0
    for number in range(_RUNS):
        slower = exp(0.01 / 7 * max(0, number - _CREEPS_FROM))
        refreshed = number % _REFRESHED == 0
        ratio = None if baseline is None else slower / accepted * exp(chance.gauss(0, _NOISE))
        moment, commit = BEGINS + timedelta(days=number), f"{chance.getrandbits(160):040x}"
        found.append(
            HistoryPoint(
                run=f"run-{number}",
                moment=moment.isoformat(),
                commit=commit,
                case="model/train_step",
                folder=FOLDER,
                status="SAME",
                recorded="" if not refreshed else "created" if baseline is None else "refreshed",
                program=f"program-{number}",
                baseline=baseline,
                time_status="SAME",
                ratio=ratio,
                low=None if ratio is None else ratio * (1 - _BOUND),
                high=None if ratio is None else ratio * (1 + _BOUND),
                figures={
                    "temp_bytes": 1_048_576 if number < _MOVES_AT else 1_101_005,
                    "run_ns": 1e6 * slower * exp(chance.gauss(0, 0.08)),
                    "compile_ns": 8e7 * exp(chance.gauss(0, 0.05)),
                },
            )
        )
        if refreshed:
            program = f"program-{number}"
            baseline = BaselineName(program=program, folder=FOLDER, commit=commit, date=moment.date().isoformat())
            accepted = slower
    return found
