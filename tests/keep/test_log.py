"""The log of who recorded what and why: one file for each entry."""

import datetime as dt
from types import SimpleNamespace

import pytest

from jaxgate.keep import log as module
from jaxgate.keep.log import append_log, log_trimmed, read_log
from jaxgate.model.inventory import LogEntry


@pytest.fixture
def log(tmp_path, monkeypatch):
    """Adds an entry to a log that does not exist yet, half an hour before midnight in UTC; gives back its text."""

    def now(zone):
        assert zone is dt.UTC
        return dt.datetime(2026, 11, 20, 23, 30, tzinfo=zone)

    monkeypatch.setattr(module, "dt", SimpleNamespace(UTC=dt.UTC, datetime=SimpleNamespace(now=now)))

    def append(why="a reason", created=(), refreshed=(), **figures):
        root, folder = tmp_path / "baselines", "cpu-amd-epyc-1-jax-0.10"
        path = append_log(root, created=created, refreshed=refreshed, folder=folder, why=why, **figures)
        assert path.parent == root / "log"
        assert path.name.startswith("2026-11-20T23-30-00-")
        return path.read_text(encoding="utf-8")

    return append


def test_an_entry_says_when_where_what_and_why(log):
    """And the energy where it is known, beside what is worse than before: no baseline keeps it."""
    figures = {
        "worse": {"scan/rnn": "temp_bytes 2 MB"},
        "energy": dict.fromkeys(("scan/rnn", "vmap/a"), "31 mJ a call"),
    }
    assert log("two", created=["vmap/b", "vmap/a"], refreshed=["scan/rnn"], **figures) == (
        "- 2026-11-20 on `cpu-amd-epyc-1-jax-0.10`: created `vmap/a` (31 mJ a call), `vmap/b`; "
        "refreshed `scan/rnn` (temp_bytes 2 MB; 31 mJ a call). Why: two\n"
    )


def test_entries_do_not_meet(log, tmp_path):
    """Two in one second have files of their own: nothing is overwritten, and no branch meets another."""
    log(created=["scan/rnn"])
    log(created=["scan/rnn"])
    assert len(list((tmp_path / "baselines/log").iterdir())) == 2


@pytest.mark.parametrize(
    ("why", "written"),
    [
        ("one\ntwo\r\n  three\tfour \n", "one two three four"),
        ("\n- 2026-01-01 on `gpu`: created", "- 2026-01-01 on `gpu`: created"),
        ("größer × 2", "größer × 2"),
        ("", "(no reason given)"),
        (" \n\t ", "(no reason given)"),
    ],
    ids=["lines", "a line like ours", "not ASCII", "none", "blank"],
)
def test_a_reason_is_one_line(log, why, written):
    """A reason cannot make lines of its own, and none is written down as such."""
    assert log(why, created=["scan/rnn"]).splitlines() == [
        f"- 2026-11-20 on `cpu-amd-epyc-1-jax-0.10`: created `scan/rnn`. Why: {written}"
    ]


def test_the_log_is_read_in_the_order_of_its_files(log, tmp_path):
    """A file may have several entries; what people wrote by hand in other words, and a trim, are no recordings."""
    assert read_log(tmp_path / "baselines") == ()
    log("later", refreshed=["scan/rnn"])
    log_trimmed(tmp_path / "baselines", removed=["cpu-amd-epyc-1/scan/old"], programs=2, why="tidy")
    (tmp_path / "baselines/log/2026-01-01.md").write_text(
        "# Ours\n\nby hand\n- 2026-01-01 on `gpu-1`: created `a/b`, `a/c`; refreshed `a/d`. Why: first. Why: not\n"
        "- 2026-01-02 on `gpu-1`: created `a/e`. Why: second\n"
    )
    assert read_log(tmp_path / "baselines") == (
        LogEntry(date="2026-01-01", folder="gpu-1", cases=("a/b", "a/c", "a/d"), why="first. Why: not"),
        LogEntry(date="2026-01-02", folder="gpu-1", cases=("a/e",), why="second"),
        LogEntry(date="2026-11-20", folder="cpu-amd-epyc-1-jax-0.10", cases=("scan/rnn",), why="later"),
    )


def test_a_trim_says_what_it_removed(tmp_path):
    text = log_trimmed(tmp_path, removed=["cpu-1/b/two", "cpu-1/a/one"], programs=1, why="tidy").read_text()
    assert text.endswith(
        " trimmed baselines `cpu-1/a/one`, `cpu-1/b/two` and 1 program that no baseline names. Why: tidy\n"
    )
    assert "trimmed 3 programs that" in log_trimmed(tmp_path, removed=[], programs=3, why="").read_text()
