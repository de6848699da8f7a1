"""Ranks in fresh processes: each rank starts one, and these are a job of their own. They run a duel again, or a whole test.

``python -m jaxgate.ext.ranks.again FOLDER HOST:PORT COUNT RANK TIMEOUT_S``
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from jaxgate.ext.ranks.barrier import TICK_S, RankBarrier, enter, first
from jaxgate.ext.ranks.case import RankedCase
from jaxgate.model.duel import Duel
from jaxgate.observe.duel.duel import Side, run_duel
from jaxgate.processes import duel_worker
from jaxgate.processes.child import Finished, own_program, run_child
from jaxgate.processes.duel_worker import DUEL_TIMEOUT_S
from jaxgate.processes.pytest_child import Selection, record_selection
from jaxgate.processes.pytest_child import Side as OtherSide

TOGETHER = "the duel again, in fresh processes"
RECORDING = "the test again, in fresh processes"


def where_to_meet(station: RankBarrier) -> str:
    """Where the fresh processes of all ranks find that of rank 0, which says so."""
    with socket.create_server(("", 0)) as server:
        port = server.getsockname()[1]
    address = f"{'127.0.0.1' if station.on_one_machine else socket.gethostname()}:{port}"
    return str(station.meet("the address of fresh processes", address, first))


def record_over_ranks(
    station: RankBarrier, side: OtherSide, chosen: Selection, into: Path, *, plain: OtherSide, variable: str
) -> dict[str, str]:
    """Record a test in a run of its own over as many ranks; the variables that rank 0 adds to its own hold for all.

    Rank 0 alone records. ``record_selection`` says what is raised. ``plain`` has nothing added; ``variable`` makes a run of
    pytest a rank.
    """
    rank = f"{where_to_meet(station)},{station.count},{station.rank},{station.timeout_s}"
    added = {name: value for name, value in side.environment.items() if plain.environment.get(name) != value}
    given = station.meet("the variables of fresh processes", added, first)
    joined = replace(side, environment={**plain.environment, **given, variable: rank})
    with _alive(station):
        return record_selection(joined, chosen, into, partial(run_child, timeout_s=DUEL_TIMEOUT_S))


def run_fresh_rank(station: RankBarrier, address: str, folder: Path) -> Finished:
    """Run the duel of a folder in a process that is one rank of a job (``keep.write_job``).

    Raises:
        TimeoutError: If it takes too long.
        OSError: If no process could be started.
    """
    about = map(str, (folder, address, station.count, station.rank, station.timeout_s))
    with _alive(station):
        return run_child([*own_program("jaxgate.ext.ranks.again"), *about], timeout_s=DUEL_TIMEOUT_S)


@contextmanager
def _alive(station: RankBarrier) -> Iterator[None]:
    """Say meanwhile that this rank makes progress: its fresh process has a limit of its own."""
    station.signs = True
    try:
        yield
    finally:
        station.signs = False


def main(folder: Path, coordinator: str, count: int, rank: int, timeout_s: float) -> None:
    """Run the duel of a folder as one rank of a job."""
    end_with_parent()
    station = enter(coordinator, count, rank, limit_s=timeout_s, timeout_s=timeout_s)
    station.on_broken = _give_up
    station.start()
    together = RankedCase(station, "the duel")

    def in_step(now: Side, baseline: Side, *, seed: int, **options: Any) -> Duel:
        (seed,) = together.first("its order", (seed,))
        return run_duel(together.side(now), together.side(baseline), seed=seed, **options)

    duel_worker.main(folder, run_duel=in_step)
    station.meet("its end")
    station.stop()


def end_with_parent() -> None:
    """End this process once the one that started it is gone: nobody reads what comes of it."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(TICK_S)
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="jaxgate ranks").start()


def _give_up(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201 - its last words
    os._exit(1)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]))
