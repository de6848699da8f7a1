"""Rank 0 and its followers in threads of one process, with a board and a clock of the test's."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from jaxgate.ext.ranks.barrier import BrokenRanksError, RankBarrier
from jaxgate.ext.ranks.peers import Peer

NAMES = {0: "rank 0 (a, pid 10)", 1: "rank 1 (b, pid 11)", 2: "rank 2 (c, pid 12)"}
LEFT = {"stage": "tracing", "reason": "no", "largest": None}


class Board:
    """JAX's coordination service, as far as ranks use it."""

    def __init__(self):
        self.texts, self.changed = {}, threading.Condition()

    def put(self, name, text):
        """In place of what was there."""
        with self.changed:
            self.texts[name] = text
            self.changed.notify_all()

    def take(self, name, wait_s):
        """Wait for it."""
        with self.changed:
            self.changed.wait_for(lambda: name in self.texts, wait_s)
            return self.texts.get(name)

    def below(self, name):
        """All of a folder."""
        with self.changed:
            return [text for key, text in self.texts.items() if key.startswith(f"{name}/")]

    def wipe(self, name):
        """All of a folder."""
        with self.changed:
            for key in [key for key in self.texts if key.startswith(f"{name}/")]:
                del self.texts[key]


class Ranks:
    """Rank 0 and its followers, each meeting in a thread of its own."""

    def __init__(self, count=2, *, start=True):
        self.now, self.dead, self.board = 0.0, set(), Board()

        def made(rank):
            others = range(1, count) if rank == 0 else [0]
            peers = {other: Peer(NAMES[other], "here", lambda other=other: other not in self.dead) for other in others}
            return RankBarrier(self.board, rank, count, peers, NAMES[rank], timeout_s=60.0, clock=lambda: self.now)

        self.lead, *self.others = map(made, range(count))
        self.pool = ThreadPoolExecutor(8)
        for station in [self.lead, *self.others]:
            station.doing = "`scan/rnn` ran"
            if start:
                station.start()

    def later(self, function, *args, **kwargs):
        """Call it in another thread."""
        return self.pool.submit(function, *args, **kwargs)

    def close(self):
        """End all threads."""
        for station in [self.lead, *self.others]:
            station.stop()
        self.pool.shutdown()


def error_of(future, kind=BrokenRanksError):
    """The text of the error that a meeting ended with."""
    with pytest.raises(kind) as caught:
        future.result(timeout=60)
    return caught.value.reason
