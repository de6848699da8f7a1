"""The store of the history."""

import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest
from support.histories import BASELINE, CASE, COMMIT, ENVIRONMENT, FOLDER, case, run, runs_of

from jaxgate.ext.history.store import HistoryError, HistoryStore, find_place
from jaxgate.model.outcome import TimeRecord


@pytest.fixture
def place(tmp_path):
    """An empty place."""
    return find_place("history.sqlite", tmp_path)


@pytest.fixture
def store(place):
    """The history of the test."""
    return HistoryStore(place)


def test_a_run_comes_back_whole(store):
    """Every field of a point, of integers and floats to the last digit; its moment in UTC."""
    told = case(run_ns=81_839.96153846153, recorded="refreshed")
    about = {"moment": "2026-11-25T02:01:00+02:00", "elsewhere": "--perf-against abc"}
    store.append(run(1, case(status="REGRESSED"), told, **about))  # of a case that two tests have, the last stays
    (point,) = store.points(CASE)
    assert (point.run, point.moment, point.commit) == ("run-0001", "2026-11-25T00:01:00+00:00", COMMIT)
    assert (point.case, point.folder, point.status, point.fails) == (CASE, FOLDER, "SAME", False)
    assert (point.recorded, point.elsewhere, point.program) == ("refreshed", "--perf-against abc", "p" * 32)
    assert (point.time_status, point.ratio, point.low, point.high) == ("SAME", 1.01, 0.99, 1.03)
    assert point.figures == {"temp_bytes": 4_000, "traces": 1, "compile_ns": 50_000_000, "run_ns": 81_839.96153846153}
    assert (point.baseline, point.environment, point.source) == (BASELINE, ENVIRONMENT, "jaxgate")


def test_a_run_is_added_once(store):
    """The second time nothing is changed, whatever it says."""
    assert store.append(run(1)) is True
    assert store.append(run(1, case(status="REGRESSED"))) is False
    assert [point.status for point in store.points(CASE)] == ["SAME"]
    assert len(runs_of(store)) == 1


def test_what_is_not_known_stays_unknown(store):
    """A case without hardware and figures; a time without a duel, or a ratio that is none; a commit that git does not know."""
    for number, ratio in enumerate((None, float("nan"), float("inf"))):
        time = TimeRecord(status="UNDECIDED", ratio=ratio)
        store.append(run(number, case(hardware=None, figures=None, status="INVALID", time=time), commit=None))
    for point in store.points(CASE):
        assert (point.folder, point.program, point.baseline, point.commit) == ("", "", None, None)
        assert (point.ratio, point.low, point.high, point.figures, point.environment) == (None, None, None, {}, {})


def test_points_are_oldest_first_whenever_they_were_added(store):
    """By the moment of the run; of one moment, as they were added."""
    for number in (3, 1, 2):
        store.append(run(number, case(temp_bytes=number)))
    store.append(replace(run(2, case(temp_bytes=2.5)), run="the same minute"))
    assert [point.figures["temp_bytes"] for point in store.points(CASE)] == [1, 2, 2.5, 3]
    assert [one.run for one in runs_of(store)] == ["run-0001", "run-0002", "the same minute", "run-0003"]


def test_a_case_is_apart_on_each_hardware(store):
    store.append(run(1, case(), case(hardware="gpu-nvidia-h200-1"), case("vmap/loss")))
    assert [point.folder for point in store.points(CASE, "gpu-nvidia-h200-1-jax-0.10")] == [
        "gpu-nvidia-h200-1-jax-0.10"
    ]
    assert len(store.points(CASE)) == 2
    assert store.points(CASE, "nowhere") == ()
    assert store.points("scan/rn") == ()
    assert [point.case for point in store.points(None, FOLDER)] == [CASE, "vmap/loss"]
    assert len(store.points(None)) == 3


def test_cases_are_listed_with_their_newest_status(store):
    """By name, whatever the order of the database; newest by moment, not by number."""
    store.append(run(5, case("vmap/loss"), case("Vmap/loss"), case(status="SLOWER")))
    store.append(run(2, case(status="REGRESSED")))
    found = [(one.case, one.folder, one.runs, one.status, one.moment[11:16]) for one in store.cases()]
    assert found == [
        ("Vmap/loss", FOLDER, 1, "SAME", "00:05"),
        (CASE, FOLDER, 2, "SLOWER", "00:05"),
        ("vmap/loss", FOLDER, 1, "SAME", "00:05"),
    ]


def test_the_newest_figures_of_a_commit(store):
    """By the beginning of its id: of each case the newest, from whichever run has it; a run of one case hides no other."""
    store.append(run(2, case("vmap/loss", temp_bytes=2), case(temp_bytes=2)))
    store.append(run(1, case("other/one"), case(temp_bytes=1)))
    store.append(run(3, case(temp_bytes=3, hardware="tpu-v5e-2x4-1")))
    store.append(run(4, case(temp_bytes=4), commit="5bb" + COMMIT[3:]))
    store.append(run(5, case(temp_bytes=5), dirty=True))
    store.append(run(6, case(temp_bytes=6), elsewhere="--perf-against=main"))
    found = [(point.case, point.folder[:3], point.figures["temp_bytes"]) for point in store.at_commit("5aa7")]
    assert found == [("other/one", "cpu", 4000), (CASE, "cpu", 2), (CASE, "tpu", 3), ("vmap/loss", "cpu", 2)]
    assert store.at_commit(COMMIT) == store.at_commit("5aa7")
    assert store.at_commit("0123abcd") == ()


def test_what_is_no_commit_is_refused(store):
    """Also signs that mean something to a database, and a beginning of two."""
    store.append(run(1))
    store.append(run(2, commit=COMMIT[:10] + "0" * 30))
    for text in ("5aa", "HEAD", "5aa7%", "____", ""):
        with pytest.raises(HistoryError, match="expected a commit by four or more characters"):
            store.at_commit(text)
    with pytest.raises(HistoryError, match=f"expected one commit that begins with 5aa7, found {COMMIT[:10]}0"):
        store.at_commit("5aa7")


def test_results_of_an_earlier_jaxgate_are_refused(store):
    """They do not say which run it was: added twice it would stand twice."""
    with pytest.raises(HistoryError, match="expected results with `run` and `moment`"):
        store.append(run(1, run=""))
    with pytest.raises(HistoryError, match="expected date and time"):
        store.append(run(1, moment="yesterday"))
    assert runs_of(store) == ()


def test_signs_that_a_database_refuses(store):
    """NUL, half a character, quotes and a statement: they are stored as text, and the run with them."""
    hostile = case("scan/x'; DROP TABLE jaxgate_runs; --\0\ud800", recorded='"%s')
    store.append(run(1, hostile, elsewhere="\0"))
    (found,) = store.cases()
    assert found.case.startswith("scan/x'; DROP TABLE")
    assert store.points(found.case)[0].recorded == '"%s'


def test_nothing_was_remembered_yet(store, place):
    assert (store.cases(), runs_of(store), store.points(CASE), store.at_commit(COMMIT)) == ((), (), (), ())
    assert not place.exists()


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("PRAGMA user_version = 7", "expected a history of schema 1, found 7, .*; nothing was"),
        ("DROP TABLE jaxgate_runs", "found another program's database; nothing was written"),
        ("PRAGMA user_version = 0", "found another program's database; nothing was written"),
    ],
)
def test_a_newer_schema_and_another_programs_database_are_refused(place, store, statement, found):
    """By who reads and who writes, in one line that says what to do; nothing is written."""
    store.append(run(1))
    with closing(sqlite3.connect(place)) as connection:
        connection.execute(statement)
    before = place.read_bytes()
    for act in (lambda: store.append(run(2)), store.cases, lambda: store.points(CASE)):
        with pytest.raises(HistoryError, match=found) as said:
            act()
        assert "\n" not in str(said.value)
    assert place.read_bytes() == before


def test_a_run_that_fails_half_way_is_not_there(store, monkeypatch):
    """Neither the run nor any of its points; the next one is added."""
    from jaxgate.ext.history import store as module

    store.append(run(1))

    def cells(point):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, "_cells", cells)
        with pytest.raises(KeyboardInterrupt):
            store.append(run(2, case("vmap/new", temp_bytes=17)))
    assert [one.run for one in runs_of(store)] == ["run-0001"]
    assert [one.case for one in store.cases()] == [CASE]
    assert store.append(run(2)) is True


def test_a_slow_down_that_was_not_confirmed_is_none(store):
    """Its ratio would become a link, and turn a budget red for what fresh processes did not see."""

    def timed(status, low):
        return TimeRecord(status=status, ratio=1.3, low=low, high=1.33, margin=0.03)

    for number, time in enumerate((timed("UNDECIDED", 1.28), timed("UNDECIDED", 1.01), timed("SLOWER", 1.28)), 1):
        store.append(run(number, case(time=time)))
    assert [(point.ratio, point.low, point.high) for point in store.points(CASE)] == [
        (None, None, None),
        (1.3, 1.01, 1.33),
        (1.3, 1.28, 1.33),
    ]
