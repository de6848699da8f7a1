"""Where the ranks of a job meet: in front of each case and each of its stages, and to hand in what they measured.

Rank 0 leads: it compares where the others are with where it is itself, answers them, and notifies them when one is lost. A
thread listens on each rank; the thread of the tests only ever waits in a meeting, where a message can reach it.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from jaxgate.ext.ranks.transport import TICK_S, Connection, Message, listen
from jaxgate.model.measurement import InvalidCaseError
from jaxgate.observe.source_lines import is_project_file, short_path

GRACE_S = 2.0
"""How long the thread of the tests has to hear that the job is broken; after that it is taken to be stuck in JAX."""
ALONE_GRACE_S = 6.0
"""The same while rank 0 judges by itself, and no other rank can make it wait."""
ANSWER_S = 2.0
NOTHING = "the session began"


class BrokenRanksError(InvalidCaseError):
    """A rank died, hangs, or does something else than the others: nothing more can be measured in this run."""

    def __init__(self, text: str) -> None:
        super().__init__("running over several processes", text)


class LeftError(InvalidCaseError):
    """Another rank could not go on with this case."""


class RankBarrier:
    """One rank.

    Args:
        rank: Which one.
        lines: Its connections: those of rank 0 to all others, that of another one to rank 0.
        name: Of this rank, for people.
        timeout_s: Seconds without any progress of the job after which a rank hangs.
        clock: Monotonic seconds.

    Attributes:
        broken: What is wrong with the job; empty while nothing is.
        count: How many ranks there are.
        doing: What was going on, as the end of "while …".
        alone: Rank 0 does something that no other rank waits in; it may take what it takes.
        on_broken: Called once, in the listening thread, with the text.
    """

    def __init__(
        self,
        rank: int,
        lines: Sequence[Connection],
        name: str,
        *,
        timeout_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.rank, self.name, self.lines = rank, name, list(lines)
        self.count = 1 + len(lines)
        self.timeout_s, self._clock = timeout_s, clock
        self.changed = threading.Condition()
        self.broken, self.doing, self.alone, self.over = "", NOTHING, False, False
        self.on_broken: Callable[[str], None] = lambda _: None
        self._tests, self._threads = threading.get_ident(), list[threading.Thread]()
        self._owner: int | None = None
        self.progressed = clock()

    @property
    def names(self) -> list[str]:
        """Those of this rank and of all that it is connected to."""
        return [self.name, *(line.name for line in self.lines)]

    def start(self) -> None:
        """Begin to listen."""
        self._threads = listen(self.lines, self._heard, self._tick)

    def stop(self) -> None:
        """Listen no more: at the end of Python no thread may be within JAX."""
        self.over = True
        for thread in self._threads:
            thread.join(4 * TICK_S)

    def meet(self, what: str, value: Any = None, decide: Callable[[list[Any]], Any] = lambda _: None) -> Any:
        """Wait until every rank is here.

        Args:
            what: Where: the same on all ranks, or the job is broken.
            value: What this rank brings.
            decide: What rank 0 makes of the values of all, by rank.

        Returns:
            What rank 0 made of them.

        Raises:
            BrokenRanksError: If the ranks cannot go on together.
            LeftError: If another rank could not go on with the case.
        """
        raise NotImplementedError

    def sign(self) -> None:
        """Note that this rank makes progress."""
        raise NotImplementedError

    def wait_for_others(self) -> None:
        """Before this rank ends: rank 0 waits for those that JAX would abort, any other one says that it goes."""
        raise NotImplementedError

    def leave(self, text: str) -> None:
        """End the job: this rank goes, and the others get the reason."""
        raise NotImplementedError

    def take_over(self) -> bool:
        """Whether the calling thread is the one that ends the run; the first to ask is."""
        with self.changed:
            self._owner = self._owner or threading.get_ident()
            return self._owner == threading.get_ident()

    def refuse_broken(self) -> None:
        """End here if the job is broken; where another thread is ending the run already, wait for that.

        Raises:
            BrokenRanksError: If it is, with the reason.
        """
        if self.broken:
            if not self.take_over():
                threading.Event().wait()
            raise BrokenRanksError(self.broken)

    def is_stuck(self) -> bool:
        """Whether the thread of the tests, which must learn that the job is broken, does not get the message."""
        end = self._clock() + (ALONE_GRACE_S if self.alone else GRACE_S)
        while self._clock() < end and self._owner is None:
            time.sleep(0.05)
        return self.take_over()

    def break_up(self, text: str) -> None:
        """Note that the job is broken, and notify everybody who can be reached."""
        with self.changed:
            if self.broken or self.over:
                return
            self.broken = text
            self.changed.notify_all()
        self._pass_on(text)
        threading.Thread(target=self.on_broken, args=(text,), daemon=True, name="jaxgate ending").start()

    def where(self) -> str:
        """The line that the thread of the tests is at: the project's own where there is one."""
        frame = sys._current_frames().get(self._tests)  # noqa: SLF001 - CPython's only way to look at another thread
        innermost = frame
        while frame is not None and not is_project_file(frame.f_code.co_filename):
            frame = frame.f_back
        found = frame or innermost
        if found is None:
            return "nowhere"
        return f"{short_path(found.f_code.co_filename)}:{found.f_lineno} in {found.f_code.co_name}"

    def _pass_on(self, text: str) -> None:
        """Notify others that the job is broken."""

    def _heard(self, line: Connection, message: Message | None) -> None:
        raise NotImplementedError

    def _tick(self) -> None:
        raise NotImplementedError


def hanging(places: Sequence[tuple[str, str]], timeout_s: float, doing: str) -> str:
    """What to say of ranks that hang: all of those that nobody waits for, each with its place.

    Args:
        places: Name and place of each; an empty place is that of a rank that does not answer.
        timeout_s: How long nothing came.
        doing: What was going on.
    """
    each = [f"{name} {f'is at {place}' if place else 'does not answer'}" for name, place in places]
    hang = "hangs" if len(places) == 1 else "hang"
    names = " and ".join(name for name, _ in places)
    return f"{names} {hang}: no progress for {timeout_s:g} s while {doing} (the last number of --perf-distributed); {'; '.join(each)}"
