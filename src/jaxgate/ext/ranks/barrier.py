"""Where the ranks of a job meet: in front of each case and each of its stages, and to hand in what they measured.

They write on a board, JAX's coordination service, and read what others wrote. Not JAX's collectives: these wait for ever for a rank
that died. In a meeting each rank brings something and rank 0 answers all of them. A thread of each rank says twice a second that it
lives, whether it waits in a meeting, and if not, where it is; so rank 0 knows who is lost and who hangs, and the others whether rank
0 is.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from jaxgate.ext.ranks.peers import Message, Peer, greet, hanging, own_name
from jaxgate.model.measurement import InvalidCaseError
from jaxgate.observe.source_lines import is_project_file, short_path

if TYPE_CHECKING:
    from jaxgate.ext.ranks.job import Job

TICK_S = 0.5
ANSWER_S = 2.0
"""A rank that has said nothing for so long does not answer."""
GRACE_S = 2.0
"""How long the thread of the tests has to hear that the job is broken; after that it is taken to be stuck in JAX."""
ALONE_GRACE_S = 6.0
"""The tests' thread has this long while rank 0 judges by itself: no other rank can make it wait."""
SLACK_S = 10.0
"""Beyond the limit before a silent rank 0 is given up: while it can speak, it knows more of who hangs."""
LEAVE_S = 10.0
"""How long rank 0 waits for the others to be gone: JAX aborts whoever outlives it."""
NOTHING = "the session began"


class BrokenRanksError(InvalidCaseError):
    """A rank died, hangs or does something else: nothing more can be measured in this run."""

    def __init__(self, text: str) -> None:
        super().__init__("running over several processes", text)


class LeftError(InvalidCaseError):
    """A rank could not go on with this case, and took all others out of it."""

    def __init__(self, left: Message) -> None:
        super().__init__(str(left["stage"]), str(left["reason"]))
        self.left = left


def first(values: Sequence[Any]) -> Any:
    """What rank 0 brings holds for all."""
    return values[0]


class RankBarrier:
    """One rank. Rank 0 watches all others as ``peers``, any other one rank 0.

    A rank hangs after ``timeout_s`` without any progress of the job. ``name`` is for people.

    Attributes:
        broken: What is wrong with the job; empty while nothing is.
        doing: What was going on, as the end of "while …".
        alone: Rank 0 does something that no other rank waits in; it may take what it takes.
        over: The job ended as it should.
        signs: It makes progress for as long as this is set.
        on_broken: Called once, in the watching thread, with the text.
    """

    def __init__(
        self,
        board: Job,
        rank: int,
        count: int,
        peers: dict[int, Peer],
        name: str,
        *,
        timeout_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._board, self._peers, self._clock = board, peers, clock
        self.rank, self.count, self.name, self.timeout_s = rank, count, name, timeout_s
        self.broken, self.doing, self.alone, self.over, self.signs = "", NOTHING, False, False, False
        self.on_broken: Callable[[str], None] = lambda _: None
        self.progressed = clock()
        for peer in peers.values():
            peer.heard = clock()
        self._mine: Message = {
            "rank": rank,
            "beat": 0,
            "signs": 0,
            "waits": False,
            "place": "",
            "why": "",
            "gone": False,
        }
        self._met = 0
        self._tests = threading.get_ident()
        self._owner: int | None = None
        self._lock, self._writing = threading.Lock(), threading.Lock()
        self._watcher = threading.Thread(target=self._watch, daemon=True, name="jaxgate ranks")

    @property
    def names(self) -> list[str]:
        """Names of this rank and of all that it watches."""
        return [self.name, *(peer.name for peer in self._peers.values())]

    @property
    def on_one_machine(self) -> bool:
        """Whether all watched ranks run on this machine."""
        return {peer.host for peer in self._peers.values()} == {socket.gethostname()}

    def start(self) -> None:
        """Begin to watch."""
        self._watcher.start()

    def stop(self) -> None:
        """Watch no more: at the end of Python no thread may be within JAX."""
        self.over = True
        if self._watcher.ident:
            self._watcher.join(4 * TICK_S)

    def meet(
        self,
        what: str,
        value: Any = None,
        decide: Callable[[list[Any]], Any] = lambda _: None,
        *,
        left: Message | None = None,
    ) -> Any:
        """Wait until every rank is here: at the same ``what``, or the job is broken.

        Gives what rank 0 makes, with ``decide``, of the values of all, by rank. ``left`` says why this rank cannot go on with the
        case: then all leave it here, wherever the others are.

        Raises:
            BrokenRanksError: If the ranks cannot go on together.
            LeftError: If a rank could not go on with the case.
        """
        self._met += 1
        mine: Message = {"at": what, "value": value, "left": left}
        self.alone = False
        self.sign()
        here = f"met/{self._met}"
        if self.rank:
            self._board.put(f"{here}/{self.rank}", json.dumps(mine))
            answer = self._wait(f"{here}/answer")
        else:
            found = [mine, *(self._wait(f"{here}/{other}") for other in self._peers)]
            answer = self._answer(found, decide)
            self._board.put(f"{here}/answer", json.dumps(answer))
            self._board.wipe(f"met/{self._met - 1}")
        self.sign()
        if "apart" in answer:
            self.break_up(answer["apart"])
            self.refuse_broken()
        if "left" in answer:
            raise LeftError(answer["left"])
        return answer["go"]

    def _answer(self, found: list[Message], decide: Callable[[list[Any]], Any]) -> Message:
        """What rank 0 tells all who came."""
        left = next((message["left"] for message in found if message["left"]), None)
        if left is not None:
            return {"left": left}
        places = [message["at"] for message in found]
        other = next((rank for rank, place in enumerate(places) if place != places[0]), None)
        if other is not None:
            there = f"{self._peers[other].name} at {places[other]}"
            return {"apart": f"the ranks are not at the same place: {self.name} is at {places[0]}, {there}"}
        return {"go": decide([message["value"] for message in found])}

    def _wait(self, name: str) -> Message:
        self._mine["waits"] = True
        try:
            while True:
                self.refuse_broken()
                text = self._board.take(name, TICK_S)
                if text is not None:
                    message: Message = json.loads(text)
                    return message
        finally:
            self._mine["waits"] = False

    def sign(self) -> None:
        """Note that this rank makes progress."""
        self._mine["signs"] += 1
        self.progressed = self._clock()

    def wait_for_others(self) -> None:
        """Before it ends, rank 0 waits for ranks that JAX would abort; any other rank says that it goes."""
        self._mine["gone"] = True
        self._publish()
        end = self._clock() + LEAVE_S
        while not self.rank and self._clock() < end and any(peer.open for peer in self._peers.values()):
            time.sleep(0.05)

    def leave(self, text: str) -> None:
        """End the job: this rank goes, and the others get the reason."""
        self.take_over()
        if self.rank:
            self._mine["why"], self.over = text, True
            self._publish()
        else:
            self.break_up(f"{self.name} {text}")

    def take_over(self) -> bool:
        """Whether the calling thread ends the run; the first to ask does."""
        with self._lock:
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
        """Note that the job is broken; rank 0 notifies everybody who can be reached."""
        with self._lock:
            if self.broken or self.over:
                return
            self.broken = text
        if not self.rank:
            self._mine["why"] = text
            self._publish()
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

    def _watch(self) -> None:
        with suppress(StopIteration):
            while True:
                self.tick()
                time.sleep(TICK_S)

    def tick(self) -> None:
        """Say how this rank is, and see how the others are.

        Raises:
            StopIteration: If there is nobody to watch any more.
        """
        peers = self._peers.values()
        if self.over or (self.broken and not any(peer.open for peer in peers)):
            raise StopIteration
        self._mine["beat"] += 1
        if self.signs:
            self.sign()
        self._publish()
        now = self._clock()
        for state in map(json.loads, self._board.below("others" if self.rank == 0 else "first")):
            peer = self._peers[state["rank"]]
            if state["beat"] != peer.state.get("beat"):
                peer.heard = now
            if state["signs"] != peer.state.get("signs"):
                self.progressed = now
            peer.state = state
        for peer in peers:
            self._look_at(peer, now)
        if not (self.rank or self.alone or self.broken or now - self.progressed < self.timeout_s):
            self._name_who_hangs(now)

    def _look_at(self, peer: Peer, now: float) -> None:
        if peer.state.get("why"):
            self.break_up(peer.state["why"] if self.rank else f"{peer.name} {peer.state['why']} while {self.doing}")
        if peer.state.get("gone"):
            peer.open = False
        elif peer.is_lost(now):
            peer.open = False
            self.break_up(f"{peer.name} died while {self.doing}")
        elif self.rank and now - peer.heard > self.timeout_s + SLACK_S:
            self.break_up(f"{peer.name} has not been heard of for {self.timeout_s:g} s while {self.doing}")

    def _name_who_hangs(self, now: float) -> None:
        places = [] if self._mine["waits"] else [(self.name, self.where())]
        for peer in self._peers.values():
            answers = now - peer.heard < ANSWER_S
            if not answers or not peer.state["waits"]:
                places.append((peer.name, peer.state["place"] if answers else ""))
        self.break_up(hanging(places, self.timeout_s, self.doing))

    def _publish(self) -> None:
        with self._writing:  # else an older state could follow a newer one
            self._mine["place"] = "" if self._mine["waits"] else self.where()
            self._board.put(f"others/{self.rank}" if self.rank else "first/0", json.dumps(self._mine))


def enter(
    coordinator: str | None, count: int | None, process: int | None, *, limit_s: float, timeout_s: float
) -> RankBarrier:
    """Join a job (see ``job.join``), and hear who the others are; nobody watches yet.

    Raises:
        NotJoinedError: If the job could not be joined.
        AbsentRankError: If another rank does not say who it is.
    """
    from jaxgate.ext.ranks.job import join  # noqa: PLC0415 - imports JAX

    end = time.monotonic() + limit_s
    board = join(coordinator, count, process, limit_s=limit_s)
    rank, count = board.membership.process, board.membership.count
    peers = greet(board, rank, count, wait_s=end - time.monotonic())
    return RankBarrier(board, rank, count, peers, own_name(rank), timeout_s=timeout_s)
