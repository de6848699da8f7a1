"""How large a history becomes and how long it takes: ``python ci/history_size.py``; docs/history.md quotes it.

The runs are made up: facts of a case stay but for one in a hundred, what a clock measures is another number in each run.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from jaxgate.ext.history.model import HistoryPoint, HistoryRun
from jaxgate.ext.history.store import HistoryStore
from jaxgate.model.verdict import BaselineName

CASES, RUNS, FACTS, TIMES = 247, 200, 28, 7
MOVES = 0.01
FOLDER = "cpu-amd-epyc-1-jax-0.10"
ENVIRONMENT = {f"jax_some_setting_{number}": "False" for number in range(18)}


def run(number: int, facts: list[dict[str, float]], chance: random.Random) -> HistoryRun:
    """One run; its facts are the last run's, but for one case in a hundred."""
    name = f"{number:016x}"
    moment = f"20{number // 336:02}-{number // 28 % 12 + 1:02}-{number % 28 + 1:02}T02:30:00+00:00"
    points = []
    for place, known in enumerate(facts):
        if chance.random() < MOVES:
            known[chance.choice(list(known))] += chance.randrange(1, 1000)
        times = {f"phase_{each}_ns": chance.randrange(10**6, 10**8) for each in range(TIMES - 1)}
        points.append(
            HistoryPoint(
                run=name,
                moment=moment,
                case=f"family-{place % 30}/a-sentence-of-a-usual-length-{place}",
                folder=FOLDER,
                commit=f"{number:040x}",
                status="SAME",
                program=f"{chance.getrandbits(128):032x}",
                baseline=BaselineName(program=f"{place:032x}", folder=FOLDER, commit="0" * 40, date="2026-11-20"),
                time_status="SAME",
                ratio=chance.gauss(1, 0.01),
                low=0.99,
                high=1.01,
                figures={**known, **times, "run_ns": chance.gauss(80_000, 1_000)},
                environment=ENVIRONMENT,
            )
        )
    return HistoryRun(run=name, moment=moment, commit=f"{number:040x}", points=tuple(points))


def timed(what: str, act: Callable[[], object]) -> None:
    """Print how long something takes, the median of five times."""
    taken = []
    for _ in range(5):
        begin = time.perf_counter()
        act()
        taken.append(time.perf_counter() - begin)
    print(f"{what}: {sorted(taken)[2] * 1000:.0f} ms")


def main() -> None:
    """Fill a history and look at it."""
    chance = random.Random(7)  # noqa: S311 - made-up figures
    facts = [{f"some_fact_{each}_bytes": float(chance.randrange(10**5)) for each in range(FACTS)} for _ in range(CASES)]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "history.sqlite"
        store = HistoryStore(file)
        taken = []
        for number in range(1, RUNS + 1):
            one = run(number, facts, chance)
            begin = time.perf_counter()
            store.add(one)
            taken.append(time.perf_counter() - begin)
        print(f"{CASES} cases x {RUNS} runs x {FACTS + TIMES} figures")
        print(f"file: {file.stat().st_size / 1e6:.1f} MB")
        print(f"adding a run: {sorted(taken)[RUNS // 2] * 1000:.0f} ms, the slowest {max(taken) * 1000:.0f} ms")
        name = store.cases()[100].case
        timed("reading a case", lambda: store.points(name))
        timed("reading all cases", lambda: store.points(None))
        timed("listing the cases", store.cases)
        timed("reading the run of a commit", lambda: store.at_commit(f"{100:040x}"))


if __name__ == "__main__":
    main()
