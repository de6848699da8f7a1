"""Where a recording comes from: the state of the checkout, and a line in the log."""

from __future__ import annotations

import datetime as dt
import subprocess
from types import SimpleNamespace

import pytest

from jaxgate.keep import provenance as module
from jaxgate.keep.provenance import append_log, provenance

DAY = dt.date(2026, 11, 20)
HEADING = "# Baselines: what was recorded, when and why\n\n"


def git(folder, *arguments):
    """Run git in a folder."""
    identity = ["-c", "user.name=A", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
    done = subprocess.run(
        ["git", *identity, *arguments], cwd=folder, capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A repository with one commit, blind to the git settings of whoever runs the tests."""
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    folder = tmp_path / "checkout"
    folder.mkdir()
    git(folder, "init", "--quiet")
    (folder / "model.py").write_text("STEPS = 1\n")
    git(folder, "add", "model.py")
    git(folder, "commit", "--quiet", "-m", "first")
    return folder


def test_a_clean_checkout_has_its_commit(checkout, monkeypatch):
    """Commit, date and version are told, and that nothing differs."""
    monkeypatch.setattr(module, "version", {"jaxgate": "9.8.7"}.__getitem__)
    found = provenance(checkout, today=DAY)
    assert found.commit == git(checkout, "rev-parse", "HEAD")
    assert len(found.commit) == 40
    assert (found.dirty, found.date, found.jaxgate) == (False, "2026-11-20", "9.8.7")


def test_a_folder_inside_the_checkout_is_enough(checkout):
    """The project may be a folder of a larger repository."""
    (checkout / "perf").mkdir()
    assert provenance(checkout / "perf", today=DAY).commit == git(checkout, "rev-parse", "HEAD")


@pytest.mark.parametrize(
    ("change", "dirty"),
    [
        (lambda folder: (folder / "model.py").write_text("STEPS = 2\n"), True),
        (lambda folder: (folder / "model.py").unlink(), True),
        (lambda folder: ((folder / "new.py").write_text(""), git(folder, "add", "new.py")), True),
        (lambda folder: (folder / "notes.txt").write_text("not tracked"), False),
    ],
    ids=["modified", "deleted", "staged", "untracked"],
)
def test_a_tracked_file_that_differs_makes_it_dirty(checkout, change, dirty):
    """The commit alone does not say what was recorded once a tracked file differs from it."""
    change(checkout)
    found = provenance(checkout, today=DAY)
    assert found.dirty is dirty
    assert found.commit == git(checkout, "rev-parse", "HEAD")


def test_a_folder_without_git_has_no_commit(checkout):
    """A project outside any repository is recorded without a commit."""
    outside = checkout.parent / "outside"
    outside.mkdir()
    found = provenance(outside, today=DAY)
    assert (found.commit, found.dirty, found.date) == (None, False, "2026-11-20")


def test_a_repository_without_commits_has_none(checkout):
    """The commit is none before the first one, not a word of git's."""
    empty = checkout.parent / "empty"
    empty.mkdir()
    git(empty, "init", "--quiet")
    assert provenance(empty, today=DAY).commit is None


@pytest.mark.parametrize("error", [FileNotFoundError(), subprocess.TimeoutExpired("git", 20)], ids=["none", "slow"])
def test_without_a_usable_git_there_is_no_commit(checkout, monkeypatch, error):
    """A machine without git, or with one that hangs, can record all the same."""

    def run(*_arguments, **_options):
        raise error

    monkeypatch.setattr(module.subprocess, "run", run)
    assert provenance(checkout, today=DAY).commit is None


def test_a_checkout_whose_state_is_unknown_is_not_called_clean(checkout, monkeypatch):
    """Where git tells the commit and fails to tell the state, the recording does not claim that nothing differs."""
    real = subprocess.run

    def run(command, **options):
        if "status" in command:
            raise subprocess.TimeoutExpired(command, 20)
        return real(command, **options)

    (checkout / "model.py").write_text("STEPS = 2\n")
    monkeypatch.setattr(module.subprocess, "run", run)
    found = provenance(checkout, today=DAY)
    assert found.commit is not None
    assert found.dirty is True


def test_the_date_is_that_of_utc(checkout, monkeypatch):
    """Two people on two sides of midnight write the same date."""
    set_clock(monkeypatch)
    assert provenance(checkout).date == "2026-11-20"


def set_clock(monkeypatch):
    """It is half past eleven at night in UTC."""

    def now(zone):
        assert zone is dt.UTC
        return dt.datetime(2026, 11, 20, 23, 30, tzinfo=zone)

    monkeypatch.setattr(module, "dt", SimpleNamespace(UTC=dt.UTC, datetime=SimpleNamespace(now=now)))


@pytest.fixture
def log(tmp_path, monkeypatch):
    """Appends to the log of a folder that does not exist yet; gives back its text."""
    set_clock(monkeypatch)

    def append(why="a reason", created=(), refreshed=()):
        root = tmp_path / "baselines"
        path = append_log(root, created=created, refreshed=refreshed, hardware="cpu-amd-epyc-1", why=why)
        assert path == root / "LOG.md"
        assert list(root.iterdir()) == [path]
        return path.read_text(encoding="utf-8")

    return append


def test_the_first_line_comes_under_a_heading(log):
    """The file is made with its heading; a line says when, where, what and why."""
    assert log("first recording", created=["scan/rnn"]) == (
        HEADING + "- 2026-11-20 on `cpu-amd-epyc-1`: created `scan/rnn`. Why: first recording\n"
    )


def test_later_lines_are_added_below(log):
    """The heading stands once, earlier lines stay as they are, cases are sorted and told apart."""
    first = log("one", created=["scan/rnn"])
    second = log("two", created=["vmap/b", "vmap/a"], refreshed=["scan/rnn"])
    assert second == (
        first + "- 2026-11-20 on `cpu-amd-epyc-1`: created `vmap/a`, `vmap/b`; refreshed `scan/rnn`. Why: two\n"
    )
    assert second.count(HEADING.strip()) == 1


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
    assert log(why, created=["scan/rnn"]).splitlines()[2:] == [
        f"- 2026-11-20 on `cpu-amd-epyc-1`: created `scan/rnn`. Why: {written}"
    ]


def test_what_people_wrote_stays(log, tmp_path):
    """Lines added by hand are kept, and the next one does not run into the last."""
    path = tmp_path / "baselines/LOG.md"
    path.parent.mkdir()
    path.write_text("# Ours\n\nwritten by hand, without a newline", encoding="utf-8")
    assert log(created=["scan/rnn"]).splitlines() == [
        "# Ours",
        "",
        "written by hand, without a newline",
        "- 2026-11-20 on `cpu-amd-epyc-1`: created `scan/rnn`. Why: a reason",
    ]
