"""How often the history's judge is right: synthetic histories of duels, looked at after each run as in life.

Usage: python -m ci.creep [--histories 100] [--first-seed 0] [--refreshed 14] [--processes 2]   (some minutes on a 2-core CPU)

A history has 200 runs, one a day, so that a week is 7 runs. Each run has another program, whose duel with the baseline gives
the true ratio times noise; the baseline is refreshed every 14 runs. ``quiet``: nothing happens. ``creep``: from run 60 on each
program is slower, by 1 % a week. ``step``: at a run between 60 and 150 the program gets 5 % slower. After each run the
judge sees what is known then and no more. Prints a Markdown table. Exit status 1 if at normal noise a creep is not found within 12 weeks, a
step within 3 runs, or more than 1 quiet history in 100 raises an alarm.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import exp, log, sqrt
from multiprocessing import get_context
from random import Random
from statistics import median

from jaxgate.ext.history.chain import chain_times
from jaxgate.ext.history.changes import Shifts, find_shifts
from jaxgate.ext.history.drift import Step
from jaxgate.ext.history.model import HistoryPoint
from jaxgate.model.verdict import BaselineName
from jaxgate.model.waiver import TIME

RUNS = 200
WEEK = 7
REFRESHED = 14
LOOKS = 20
"""Looks that are timed; the quickest says what one costs, whoever else uses the machine."""
CREEP_FROM = 60
STEPS_AT = (60, 150)
CREEP = log(1.01) / WEEK
STEP = log(1.05)
FOUND_WITHIN = {"creep": 12 * WEEK, "step": 3}
TYPICAL = 0.006
"""As ``ext/history/changes.py`` takes it from docs/timing.md."""
STUDENT_SPREAD = 1.134
"""Standard deviation of the normal distribution that has the quartiles of Student's t with 3 degrees of freedom."""
KINDS = ("quiet", "creep", "step")
Look = Callable[[Sequence[HistoryPoint]], Shifts]


def time_shifts(points: Sequence[HistoryPoint]) -> Shifts:
    """Steps and creep of a case's time, by the chain of its duels."""
    chain = chain_times(points)
    return Shifts() if chain is None else find_shifts(chain.points, TIME)


def normal(random: Random) -> float:
    """What duels usually show."""
    return random.gauss(0, TYPICAL)


def double(random: Random) -> float:
    """The noise of a machine's noisiest cases."""
    return random.gauss(0, 2 * TYPICAL)


def heavy(random: Random) -> float:
    """Student's t with 3 degrees of freedom, as spread in the middle as the usual: every 50th run is beyond 3.3 times that."""
    chi = sum(random.gauss(0, 1) ** 2 for _ in range(3))
    return TYPICAL / STUDENT_SPREAD * random.gauss(0, 1) / sqrt(chi / 3)


NEAR = 3
"""Runs by which a step may be said to be off: as many as a level has at least."""
NOISES = {"normal": normal, "double": double, "heavy tails": heavy}


@dataclass(frozen=True, slots=True)
class Told:
    """What became of one history."""

    begins: int  # the run from which on there is something to find; the number of runs where there is nothing
    first: int | None  # the first run after which there was an alarm; `None` for never
    said: str  # `creep` or `step`, by that alarm

    @property
    def is_false(self) -> bool:
        """Whether an alarm came before there was anything."""
        return self.first is not None and self.first < self.begins

    @property
    def delay(self) -> int | None:
        """Runs until the alarm, the first with something to find included; ``None`` if there was none, or it came before."""
        return None if self.first is None or self.is_false else self.first - self.begins + 1


def history(
    kind: str, noise: Callable[[Random], float], seed: int, refreshed: int = REFRESHED
) -> tuple[int, tuple[HistoryPoint, ...]]:
    """A history, and the run from which on there is something to find."""
    random = Random(f"{kind} {noise.__name__} {seed}")  # noqa: S311 - the same histories every time
    begins = {"quiet": RUNS, "creep": CREEP_FROM, "step": random.randrange(*STEPS_AT)}[kind]
    baseline, accepted = _baseline(-1), 0.0
    points = []
    for run in range(RUNS):
        true = {"quiet": 0.0, "creep": CREEP * max(0, run - begins + 1), "step": STEP * (run >= begins)}[kind]
        ratio, error = true - accepted + noise(random), TYPICAL / 1.5 * exp(random.gauss(0, 0.25))
        accepts = run % refreshed == refreshed - 1
        points.append(_point(run, baseline, ratio, error, recorded="refreshed" if accepts else ""))
        if accepts:
            baseline, accepted = _baseline(run), true
    return begins, tuple(points)


def _baseline(run: int) -> BaselineName:
    return BaselineName(program=f"program {run}", folder="cpu-any-1-jax-0.12", commit=f"{run + 1:040x}", date=_day(run))


def _day(run: int) -> str:
    return f"2026-{1 + max(run, 0) // 28:02}-{1 + max(run, 0) % 28:02}"


def _point(run: int, baseline: BaselineName, ratio: float, error: float, *, recorded: str) -> HistoryPoint:
    return HistoryPoint(
        run=str(run),
        moment=f"{_day(run)}T12:00:00+00:00",
        case="synthetic/step",
        folder=baseline.folder,
        commit=f"{run + 1:040x}",
        status="SAME",
        recorded=recorded,
        program=f"program {run}",
        baseline=baseline,
        time_status="SAME",
        ratio=exp(ratio),
        low=exp(ratio - 2.21 * error),
        high=exp(ratio + 2.21 * error),
    )


def watch(kind: str, noise: str, seed: int, look: Look = time_shifts, refreshed: int = REFRESHED) -> Told:
    """Look at one history after each of its runs, until the first alarm."""
    begins, points = history(kind, NOISES[noise], seed, refreshed)
    for run in range(RUNS):
        shifts = look(points[: run + 1])
        steps = [one for one in shifts.steps if _is_found(kind, begins, one)]
        creeps = shifts.creep is not None and (kind == "quiet" or shifts.creep.ratio > 1)
        if creeps or steps:
            return Told(begins, run, "step" if steps else "creep")
    return Told(begins, None, "")


def _is_found(kind: str, begins: int, step: Step) -> bool:
    """Whether a step is an alarm: any in a quiet history; any upwards in a creep; else an early one, or one near its begin."""
    if kind == "quiet":
        return True
    early, near = int(step.run) < begins, abs(int(step.run) - begins) <= NEAR
    return step.ratio > 1 and (kind == "creep" or early or near)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What became of all histories of a kind at a noise."""

    kind: str
    noise: str
    told: tuple[Told, ...]

    @property
    def false(self) -> int:
        """Histories with an alarm while there was nothing."""
        return sum(one.is_false for one in self.told)

    @property
    def in_time(self) -> int:
        """Histories whose alarm came within the promised time."""
        return sum(one.delay is not None and one.delay <= FOUND_WITHIN[self.kind] for one in self.told)

    @property
    def holds(self) -> bool:
        """Whether the promise is kept: everything found in time; of 100 quiet histories at most one alarm."""
        if self.kind == "quiet":
            return self.false * 100 <= len(self.told)
        return self.in_time + self.false == len(self.told) and self.false * 100 <= len(self.told)

    def cells(self) -> Iterator[str]:
        """Cells of the table."""
        count = len(self.told)
        yield from (self.kind, self.noise, f"{self.false} of {count}")
        delays = sorted(one.delay for one in self.told if one.delay is not None)
        if self.kind == "quiet":
            yield from ("", "", "", "")
            return
        steps = sum(one.said == "step" and not one.is_false for one in self.told)
        yield f"{self.in_time} of {count}"
        yield f"{median(delays):g}" if delays else ""
        yield f"{delays[-1]}" if delays else ""
        yield f"{steps} of {len(delays)}"


def measure(histories: int, first_seed: int, processes: int, refreshed: int) -> Iterator[Row]:
    """Measure all kinds at all noises."""
    seeds = range(first_seed, first_seed + histories)
    with get_context("spawn").Pool(processes) as pool:
        for noise in NOISES:
            for kind in KINDS:
                told = pool.map(partial(watch, kind, noise, refreshed=refreshed), seeds)
                yield Row(kind=kind, noise=noise, told=tuple(told))


def _timed(points: Sequence[HistoryPoint]) -> float:
    start = time.perf_counter()
    time_shifts(points)
    return time.perf_counter() - start


def main(arguments: Sequence[str]) -> int:
    """Print the table, and what a look costs."""
    parser = argparse.ArgumentParser(prog="python -m ci.creep", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--histories", type=int, default=100, choices=range(1, 10_001), metavar="N", help="of each kind (default: 100)"
    )
    parser.add_argument("--first-seed", type=int, default=0, help="another one gives other histories")
    parser.add_argument("--refreshed", type=int, default=REFRESHED, help="runs between two refreshes (default: 14)")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args(arguments)
    print("| history | noise | alarms before | found in time | runs to it, median | at most | said as a step |")
    print("|---|---|---|---|---|---|---|")
    broken = []
    for row in measure(options.histories, options.first_seed, options.processes, options.refreshed):
        print(f"| {' | '.join(row.cells())} |", flush=True)
        if row.noise == "normal" and not row.holds:
            broken.append(row.kind)
    _, points = history("quiet", normal, 0)
    time_shifts(points)  # imports what it needs
    print(f"\nA look at {RUNS} runs takes {min(map(_timed, [points] * LOOKS)) * 1e3:.1f} ms.")
    print(f"Not as promised: {', '.join(broken)}." if broken else "Everything is as promised at normal noise.")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
