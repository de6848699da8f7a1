"""Where a recording comes from, and what git knows of the files that it wrote."""

import datetime as dt
import subprocess
from types import SimpleNamespace

import pytest
from support.git import commit, git

from jaxgate.keep import git as module
from jaxgate.keep.git import last_committers, read_provenance, uncommitted

DAY = dt.date(2026, 11, 20)


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A repository with one commit, blind to the git settings of whoever runs the tests."""
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    folder = tmp_path / "checkout"
    folder.mkdir()
    (folder / "model.py").write_text("STEPS = 1\n")
    commit(folder)
    return folder


def test_a_clean_checkout_has_its_commit(checkout, monkeypatch):
    """Commit, date and version are told, and that nothing differs."""
    monkeypatch.setattr(module, "version", {"jaxgate": "9.8.7"}.__getitem__)
    (checkout / "perf").mkdir()
    for folder in (checkout, checkout / "perf"):  # the project may be a folder of a larger repository
        found = read_provenance(folder, today=DAY)
        assert found.commit == git(checkout, "rev-parse", "HEAD")
        assert len(found.commit) == 40
        assert (found.dirty, found.date, found.jaxgate) == (False, "2026-11-20", "9.8.7")


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
    found = read_provenance(checkout, today=DAY)
    assert found.dirty is dirty
    assert found.commit == git(checkout, "rev-parse", "HEAD")


def test_a_folder_without_git_has_no_commit(checkout):
    """A project outside any repository is recorded without a commit, and so is one before its first."""
    outside = checkout.parent / "outside"
    outside.mkdir()
    assert (uncommitted(outside), uncommitted(checkout / "none")) == (None, None), (
        "not known is not the same as nothing"
    )
    for _ in ("no repository", "no commit"):
        found = read_provenance(outside, today=DAY)
        assert (found.commit, found.dirty, found.date) == (None, False, "2026-11-20")
        git(outside, "init", "--quiet")


@pytest.mark.parametrize("error", [FileNotFoundError(), subprocess.TimeoutExpired("git", 20)], ids=["none", "slow"])
@pytest.mark.parametrize("asked", ["rev-parse", "status"])
def test_without_a_usable_git_nothing_is_claimed(checkout, monkeypatch, error, asked):
    """A machine without git, or with one that hangs, can record: without a commit, or as one that may differ from it."""
    real = subprocess.run

    def run(command, **options):
        if asked in command:
            raise error
        return real(command, **options)

    monkeypatch.setattr(subprocess, "run", run)
    found = read_provenance(checkout, today=DAY)
    assert (found.commit is None, found.dirty) == ((True, False) if asked == "rev-parse" else (False, True))


def test_the_date_is_that_of_utc(checkout, monkeypatch):
    """Two people on two sides of midnight write the same date."""

    def now(zone):
        assert zone is dt.UTC
        return dt.datetime(2026, 11, 20, 23, 30, tzinfo=zone)

    monkeypatch.setattr(module, "dt", SimpleNamespace(UTC=dt.UTC, datetime=SimpleNamespace(now=now)))
    assert read_provenance(checkout).date == "2026-11-20"


def test_files_that_git_does_not_have_are_named(checkout):
    """Changed, removed, staged and new ones under the folder, relative to it; none outside, none that is committed."""
    folder = checkout / "baselines"
    folder.mkdir()
    for name in ("changed", "gone", "same"):
        (folder / name).write_text("1")
    commit(checkout)
    assert uncommitted(folder) == ()
    (folder / "changed").write_text("2")
    (folder / "gone").unlink()
    (folder / "deep").mkdir()
    (folder / "deep/new one").write_text("1")
    (folder / "staged").write_text("1")
    git(checkout, "add", "baselines/staged")
    (checkout / "outside").write_text("1")
    assert uncommitted(folder) == ("changed", "deep/new one", "gone", "staged")


def test_who_committed_a_file_last(checkout):
    """The last one to touch it, by one look at the history; a shallow checkout cannot tell."""
    (checkout / "two.py").write_text("1")
    git(checkout, "add", ".")
    git(checkout, "commit", "--quiet", "--author", "B <b@b.c>", "-m", "second")
    assert last_committers(checkout) == {checkout / "model.py": "A", checkout / "two.py": "B"}
    clone = checkout.parent / "clone"
    git(checkout.parent, "clone", "--quiet", "--depth=1", f"file://{checkout}", str(clone))
    assert last_committers(clone) == {}
