"""Messages between ranks and the place where they meet: in one process, on a board of its own, with a clock that stands."""

import itertools
import json
import os
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait

import pytest
from support.ranks import LEFT, NAMES, Board, error_of

from jaxgate.ext.ranks.barrier import LeftError, first
from jaxgate.ext.ranks.case import RankedCase
from jaxgate.ext.ranks.peers import SILENT_S, AbsentRankError, Peer, greet, hanging, name_of, watch
from jaxgate.ext.ranks.plugin import disagreement
from jaxgate.model.measurement import InvalidCaseError


def test_all_are_given_what_rank_0_decides(ranks):
    """Values come to rank 0 in the order of the ranks, and its decision to all."""
    job = ranks(3)
    others = [job.later(station.meet, "a door", station.rank) for station in job.others]
    assert job.lead.meet("a door", 0, lambda values: [*values, "decided"]) == [0, 1, 2, "decided"]
    assert [future.result(timeout=60) for future in others] == [[0, 1, 2, "decided"]] * 2


def test_nobody_goes_on_before_all_are_there(ranks):
    """Rank 1 waits for rank 2, though rank 0 is there."""
    job = ranks(3)
    lead, first = job.later(job.lead.meet, "a door"), job.later(job.others[0].meet, "a door")
    time.sleep(0.1)
    assert not lead.done()
    assert not first.done()
    job.others[1].meet("a door")
    lead.result(timeout=60)
    first.result(timeout=60)


def test_ranks_at_different_places_are_told_so_by_name(ranks):
    job = ranks(3)
    futures = [
        job.later(job.lead.meet, "gate a"),
        job.later(job.others[0].meet, "gate b"),
        job.later(job.others[1].meet, "gate a"),
    ]
    for future in futures:
        assert error_of(future) == (
            "the ranks are not at the same place: rank 0 (a, pid 10) is at gate a, rank 1 (b, pid 11) at gate b"
        )


@pytest.mark.parametrize("who", [0, 1])
def test_a_rank_that_cannot_go_on_with_a_case_stops_the_others_at_the_next_door(ranks, who):
    """All of them hear why, wherever they are, and meet again after that."""
    job = ranks(3)
    stations = [job.lead, *job.others]
    futures = [
        job.later(station.meet, "", left=LEFT)
        if station.rank == who
        else job.later(station.meet, f"stage {station.rank}")
        for station in stations
    ]
    assert [error_of(future, LeftError) for future in futures] == ["no"] * 3
    again = [job.later(station.meet, "the verdict", station.rank, first) for station in stations]
    assert [future.result(timeout=60) for future in again] == [0, 0, 0]


def test_what_was_said_is_wiped_out(ranks):
    """A long run does not fill the board: the last meeting is on it, and how each rank is."""
    job = ranks()
    for number in range(12):
        other = job.later(job.others[0].meet, f"stage {number}")
        job.lead.meet(f"stage {number}")
        other.result(timeout=60)
    kept = {name for name in job.board.texts if name.startswith("met/")}
    assert kept == {"met/12/1", "met/12/answer"}


def test_a_rank_that_dies_is_named_to_all(ranks):
    job = ranks(3)
    lead, other = job.later(job.lead.meet, "a door"), job.later(job.others[1].meet, "a door")
    job.others[0].stop()  # a dead one says nothing
    job.dead.add(1)
    assert error_of(lead) == error_of(other) == "rank 1 (b, pid 11) died while `scan/rnn` ran"


def test_rank_0_that_dies_is_named(ranks):
    job = ranks()
    other = job.later(job.others[0].meet, "a door")
    job.lead.stop()
    job.dead.add(0)
    assert error_of(other) == "rank 0 (a, pid 10) died while `scan/rnn` ran"


def test_a_rank_that_goes_says_why(ranks):
    job = ranks(3)
    waits = [job.later(job.lead.meet, "a door"), job.later(job.others[1].meet, "a door")]
    job.others[0].leave("ended its session with exit code 2")
    for future in waits:
        assert error_of(future) == "rank 1 (b, pid 11) ended its session with exit code 2 while `scan/rnn` ran"


def test_why_a_rank_goes_is_not_overwritten_by_what_it_was_before(ranks):
    """A thread that says how the rank is may be slow: it had begun before the rank went."""
    job = ranks(start=False)
    station, put, begun, slow = job.others[0], job.board.put, threading.Event(), threading.Event()

    def put_late(name, text):
        if not json.loads(text)["why"]:
            begun.set()
            slow.wait(60)
        put(name, text)

    job.board.put = put_late
    told = job.later(station.tick)
    begun.wait(60)
    gone = job.later(station.leave, "ended its session")
    wait([gone], timeout=0.2)
    slow.set()
    told.result(timeout=60)
    gone.result(timeout=60)
    assert json.loads(job.board.texts["others/1"])["why"] == "ended its session"


def test_who_hangs_is_who_does_not_wait(ranks):
    """Rank 2 is at the door like rank 0; rank 1 is not, and tells the line that it is at."""
    job = ranks(3, start=False)
    lead, other = job.later(job.lead.meet, "a door"), job.later(job.others[1].meet, "a door")
    while not (job.others[1]._mine["waits"] and job.lead._mine["waits"]):
        time.sleep(0.01)
    for job.now in (0.0, 61.0):
        for station in (*job.others, job.lead):
            station.tick()
    text = error_of(lead)
    assert text.startswith(
        "rank 1 (b, pid 11) hangs: no progress for 60 s while `scan/rnn` ran (the last number of --perf-distributed)"
    )
    assert "rank 1 (b, pid 11) is at" in text
    assert "rank 2" not in text
    job.others[1].tick()
    assert error_of(other) == text


def test_progress_of_any_rank_puts_the_limit_off(ranks):
    job = ranks()
    job.now = 50.0
    job.others[0].sign()
    while job.lead.progressed < 50:
        time.sleep(0.01)
    job.now = 100.0
    job.lead.tick()
    assert not job.lead.broken


def test_rank_0_may_take_its_time_alone(ranks):
    """It judges a case: the others wait for nothing that could hang."""
    job = ranks(start=False)
    job.others[0].tick()
    job.lead.tick()
    job.lead.alone, job.now = True, 1000.0
    job.lead.tick()
    assert not job.lead.broken
    job.lead.alone = False
    job.lead.tick()
    assert "rank 1 (b, pid 11) does not answer" in job.lead.broken


def test_rank_0_that_is_silent_hangs(ranks):
    job = ranks(start=False)
    follower = job.others[0]
    job.now = 69.0
    follower.tick()
    assert not follower.broken
    job.now = 71.0
    follower.tick()
    assert follower.broken == "rank 0 (a, pid 10) has not been heard of for 60 s while `scan/rnn` ran"


def test_one_thread_ends_the_run(ranks):
    """The first that asks; another one that comes to hear it waits for the end."""
    job = ranks(start=False)
    assert job.lead.take_over()
    assert job.lead.take_over()
    assert not job.later(job.lead.take_over).result(timeout=60)


def test_a_thread_that_does_not_come_to_hear_it_is_stuck(ranks):
    job = ranks(start=False)
    job.lead._clock = itertools.count().__next__
    assert job.lead.is_stuck()
    job.others[0].take_over()
    assert not job.later(job.others[0].is_stuck).result(timeout=60)


def test_hanging_names_places():
    """One rank with its line, and one that does not answer."""
    text = hanging([("rank 1", "x.py:3 in f"), ("rank 2", "")], 5, "`c` ran")
    assert text == (
        "rank 1 and rank 2 hang: no progress for 5 s while `c` ran (the last number of --perf-distributed); rank 1 is at x.py:3 in f; "
        "rank 2 does not answer"
    )


def test_ranks_hear_of_each_other():
    """Rank 0 of all others, any other one of rank 0 alone."""
    board = Board()
    with ThreadPoolExecutor() as pool:
        found = list(pool.map(lambda rank: greet(board, rank, 3, wait_s=60), range(3)))
    assert [list(peers) for peers in found] == [[1, 2], [0], [0]]
    assert found[1][0].name == name_of(0, socket.gethostname(), os.getpid())


def test_a_rank_that_does_not_come_is_named():
    with pytest.raises(AbsentRankError, match="expected 3 ranks, found no rank 1, 2 in time"):
        greet(Board(), 0, 3, wait_s=0.02)


def test_a_rank_is_lost_once_its_process_is_gone():
    """One that can be seen may be silent for as long as it likes, and one that cannot for a minute."""
    lives = True
    seen, unseen = Peer(NAMES[1], "here", lambda: lives), Peer(NAMES[2])
    assert [peer.is_lost(SILENT_S) for peer in (seen, unseen)] == [False, False]
    assert [peer.is_lost(2 * SILENT_S) for peer in (seen, unseen)] == [False, True]
    lives = False
    assert seen.is_lost(0.0)


def test_only_a_process_that_can_be_seen_is_known_to_be_gone():
    """Not one of another machine, nor one that was gone from the beginning."""
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    here = watch(socket.gethostname(), child.pid)
    assert here()
    assert watch("elsewhere", child.pid) is None
    child.kill()
    while here():  # nobody has asked how it ended yet
        time.sleep(0.01)
    child.wait()
    child.stdin.close()
    assert not here()
    assert watch(socket.gethostname(), child.pid) is None


def test_ranks_with_other_programs_do_not_call_them(ranks):
    """The first line that differs is named with both ranks, on all of them; equal programs cost one meeting."""
    job = ranks(3)
    cases = [RankedCase(station, "scan/rnn") for station in (job.lead, *job.others)]

    def compared(*texts):
        return [
            job.later(case.same, "the program", lambda text=text: text.replace(" ", "\n"))
            for case, text in zip(cases, texts, strict=True)
        ]

    for future in compared("add psum", "add psum", "add psum"):
        assert future.result(timeout=60) is None
    for future in compared(
        "f at 0x7f01 psum", "f at 0x7fff psum", "f at 0x1 psum"
    ):  # where an object lies says nothing
        assert future.result(timeout=60) is None
    for future in compared("add psum mul", "add psum mul", "add mul psum"):
        assert error_of(future, InvalidCaseError) == (
            "expected the program to be the same on all ranks, found psum on rank 0 (a, pid 10) and mul on rank 2 (c, pid 12)"
        )
    for future in compared("add psum", "add", "add"):
        assert "found psum on rank 0 (a, pid 10) and no more of it on rank 1" in error_of(future, InvalidCaseError)


def told(name, *tests, failed=0):
    """What a rank says of its tests."""
    return {"name": name, "tests": list(tests), "failed": failed}


@pytest.mark.parametrize(
    ("found", "pieces"),
    [
        ([told("r0", "a", "b"), told("r1", "a", "b")], []),
        ([told("r0", "a", "b"), told("r1", "a")], ["found 2 on r0 and 1 on r1", "differ are b and no more tests"]),
        ([told("r0", "a", "b"), told("r1", "b", "a")], ["the first that differ are a and b"]),
        ([told("r0"), told("r1", "a")], ["found 0 on r0 and 1 on r1", "no more tests and a"]),
        ([told("r0", "a"), told("r1", "a", failed=2)], ["r1: 2 errors while collecting"]),
    ],
    ids=["same", "fewer", "order", "none", "errors"],
)
def test_tests_that_differ_are_named(found, pieces):
    text = disagreement(found)
    assert bool(text) == bool(pieces)
    for piece in pieces:
        assert piece in text
