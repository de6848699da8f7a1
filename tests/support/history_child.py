"""Appends runs to a history from processes that are killed, race each other or run out of disk; a program, without JAX.

``python history_child.py kill PLACE KILLS SEED``, ``race PLACE RUNS``, ``full PLACE RUNS BYTES``.
"""

import os
import random
import resource
import signal
import sqlite3
import sys
from dataclasses import replace
from pathlib import Path

from support.histories import case, run, runs_of

from jaxgate.ext.history.store import HistoryError, HistoryStore, find_place

CASES = 40
"""Of a run: enough that its transaction takes some pages."""


COUNTS = "SELECT run_id, count(*) FROM jaxgate_points GROUP BY run_id"
"""The cases of each run."""


def say(*words):
    """Print them."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")


def wide(number, start=0):
    """A run of many cases, each with facts of its own, so that all tables grow."""
    return run(
        number, *(case(f"scan/case-{place}", temp_bytes=start + number * 1000.5 + place) for place in range(CASES))
    )


def kill(place, kills, seed):
    """Append in a child, one run and more until a timer ends it, at another moment each time; look at what is left after each."""
    chance, number, through = random.Random(seed), 0, 0
    for _ in range(kills):
        child = os.fork()
        if child == 0:
            store = HistoryStore(place)
            if number or chance.random() < 0.5:
                store.append(wide(number))
            signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends the process there and then, as SIGKILL does
            signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.0001, 0.06))
            for more in range(1, 1000):
                store.append(wide(number + more))
            os._exit(3)
        chance.random()  # the next moment is another one
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status), f"the child ended by itself: {status}"
        through += whole(place, number)
        store = HistoryStore(place)
        number = len(runs_of(store))
    say(number, through)


def whole(place, at_least):
    """Whether a journal was left; what is there is sound, nothing that was there is gone, and each run has all of its cases."""
    left = Path(f"{place}-journal").exists()
    if not place.exists():
        assert not at_least
        return left
    numbers = [one.run for one in runs_of(HistoryStore(place))]
    assert len(numbers) == len(set(numbers)) >= at_least
    connection = sqlite3.connect(place)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    if numbers:
        counts = dict(connection.execute(COUNTS).fetchall())
        assert len(counts) == len(numbers)
        assert set(counts.values()) == {CASES}
    connection.close()
    return left


def race(place, runs):
    """Append from two processes at once, some runs from both."""
    children = []
    for first in (0, 1):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                store = HistoryStore(place)
                for number in range(runs):
                    store.append(wide(2 * number + first))
                    store.append(replace(wide(number), run=f"both-{number}"))
                status = 0
            finally:
                os._exit(status)
        children.append(child)
    say(*(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))


def full(place, runs, nbytes):
    """Append some runs, then let no file grow beyond so many bytes and append until that fails; print the error."""
    store = HistoryStore(place)
    for number in range(runs):
        store.append(wide(number))
    if nbytes:
        resource.setrlimit(resource.RLIMIT_FSIZE, (nbytes, resource.RLIM_INFINITY))
    number = runs
    try:
        while number < 2000:
            store.append(wide(number))
            number += 1
    except HistoryError as error:
        say(number, error)


def main(task, named, *more):
    """Do one of them."""
    place = find_place(named, Path())
    assert place is not None
    {"kill": kill, "race": race, "full": full}[task](place, *map(int, more))


if __name__ == "__main__":
    main(*sys.argv[1:])
