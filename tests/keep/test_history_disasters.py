"""A history is whole whatever happens: processes that are killed, two at once, a full disk, files that are none."""

import os
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from support import history_child
from support.histories import run, runs_of
from support.paths import REPOSITORY

from jaxgate.ext.history.store import HistoryError, HistoryStore, find_place

PASSWORD = "hunter2"
KILLS = 15


def child(*arguments):
    """Run the program of ``support/history_child.py``."""
    path = os.pathsep.join([str(REPOSITORY / "tests"), str(REPOSITORY / "src")])
    command = [sys.executable, history_child.__file__, *map(str, arguments)]
    done = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


@pytest.fixture
def place(tmp_path):
    """An empty place."""
    return find_place("history.sqlite", tmp_path)


def runs(place):
    """How many runs are there, each of them whole."""
    store = HistoryStore(place)
    found = len(runs_of(store))
    history_child.whole(place, found)
    return found


def test_a_kill_at_any_moment_leaves_whole_runs(place):
    """After each of many: what is stored is sound, no run was lost, and none is there in part."""
    stored, inside = map(int, child("kill", place, KILLS, 7).split())
    assert stored >= KILLS - 5  # before the first run is stored a kill may leave nothing
    assert inside > 0  # a journal was left: whoever opened the file next undid half a run
    assert runs(place) == stored


def test_two_processes_at_once_store_all(place):
    """Those of both, and what both wanted to add once."""
    assert child("race", place, 15) == "0 0"
    assert runs(place) == 3 * 15


def test_a_full_disk_loses_nothing(tmp_path):
    """One line says it; what was stored is there, and the next run is added once there is room."""
    file = tmp_path / "history.sqlite"
    number, _, said = child("full", file, 3, 400_000).partition(" ")
    assert re.fullmatch(f"{re.escape(str(file))}: OperationalError: (disk I/O error|database or disk is full)", said)
    assert runs(find_place(str(file), tmp_path)) == int(number) > 3
    store = HistoryStore(find_place(str(file), Path()))
    assert store.append(history_child.wide(int(number))) is True


def test_a_full_file_system_loses_nothing(tmp_path):
    """The same of one that is really full, where this process may mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(disk)], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {mounted.stderr.strip()}")
    try:
        number, _, said = child("full", disk / "history.sqlite", 3, 0).partition(" ")
        assert said == f"{disk}/history.sqlite: OperationalError: database or disk is full"
        assert runs(find_place("history.sqlite", disk)) == int(number) > 3
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_writer_that_does_not_end_is_named(place, tmp_path):
    """After as long as a run may wait; the run is not added, and can be later."""
    store = HistoryStore(place, busy_s=0.01)
    store.append(run(1))
    assert list(tmp_path.iterdir()) == [place], "no journal is left"
    with closing(sqlite3.connect(place, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(HistoryError, match="database is locked"):
            store.append(run(2))
    assert store.append(run(2)) is True


@pytest.mark.parametrize("content", [b"not a database, but long enough to look like one" * 40, b"half"])
def test_a_file_that_is_no_database_is_left_alone(place, content):
    place.write_bytes(content)
    for act in (lambda: HistoryStore(place).append(run(1)), HistoryStore(place).cases):
        with pytest.raises(HistoryError, match="file is not a database"):
            act()
    assert place.read_bytes() == content


@pytest.mark.parametrize("kind", ["folder", "pipe", "device"])
def test_a_place_that_is_no_file_is_refused(tmp_path, kind):
    path = tmp_path / "history.sqlite"
    {"folder": path.mkdir, "pipe": lambda: os.mkfifo(path), "device": lambda: path.symlink_to("/dev/zero")}[kind]()
    with pytest.raises(HistoryError, match="no regular file"):
        find_place(str(path), tmp_path)


@pytest.mark.parametrize(("name", "why"), [("x" * 300, "File name too long"), ("x\0", "embedded null")])
def test_a_place_that_cannot_be_looked_at_is_not_an_empty_one(tmp_path, name, why):
    """As in a folder that nobody may read; such names fail for everybody alike."""
    place = tmp_path / name
    for look in (lambda: find_place(place.name, tmp_path), HistoryStore(place).cases):
        with pytest.raises(HistoryError, match=why):
            look()


def test_a_folder_that_cannot_be_made_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(HistoryError, match=r"file/history.sqlite: .*(File exists|Not a directory)"):
        HistoryStore(find_place("file/history.sqlite", tmp_path)).append(run(1))


def test_the_own_folder_stays_out_of_git(tmp_path):
    """Another one is the project's: it may be meant to be committed."""
    for name in (".jaxgate/history.sqlite", "kept/history.sqlite"):
        store = HistoryStore(find_place(name, tmp_path))
        store.append(run(1))
    assert (tmp_path / ".jaxgate/.gitignore").read_text() == "*\n"
    assert not (tmp_path / "kept/.gitignore").exists()


@pytest.mark.parametrize("url", [f"postgresql+psycopg://me:{PASSWORD}@127.0.0.1:1/runs", f"sqlite:///{PASSWORD}"])
def test_a_url_is_no_place_and_its_password_is_never_said(url, tmp_path):
    with pytest.raises(HistoryError, match="expected the path of a file, or none, found a URL, ") as found:
        find_place(url, tmp_path)
    assert PASSWORD not in str(found.value)
    assert list(tmp_path.iterdir()) == []
    assert find_place("none", tmp_path) is None
