"""The folder of this user's locks: where somebody else was first, nothing is read or written there."""

import json
import os
import stat
import subprocess
import sys

import pytest

from jaxgate.keep.cache import remembered_defaults
from jaxgate.keep.files import RefusedFileError
from jaxgate.keep.machine import HELD, Machine, lock_folder, lock_of, made_private
from jaxgate.model.machine import JaxDefaults

MINE = "alias important=1\n"
DEFAULTS = JaxDefaults(jax="0.10.2", file="jax/__init__.py", config={}, compile_options="0123")


@pytest.fixture
def shared(tmp_path, monkeypatch):
    """A folder for temporary files that all users share, as /tmp is one; gives the name that this user takes there."""
    monkeypatch.delenv(HELD, raising=False)
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    monkeypatch.setattr("tempfile.tempdir", str(shared))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return shared / f"jaxgate-{os.geteuid()}"


@pytest.fixture
def victim(tmp_path):
    """A file of this user's that somebody else's links lead to."""
    (tmp_path / "bashrc").write_text(MINE)
    return tmp_path / "bashrc"


def in_cache(tmp_path):
    """The folder where the first one is not taken."""
    return tmp_path / "cache" / "jaxgate" / f"locks-{os.uname().nodename}"


def use():
    """All that is done in that folder: the locks of the machine, a lock of a path, and JAX's defaults."""
    machine = Machine()
    machine.alone()
    machine.leave()
    with lock_of(lock_folder() / "x"):
        pass
    remembered_defaults("one", lambda: DEFAULTS)
    return machine


def planted(folder, victim):
    """What another user lays into the folder: links of every name that this process might write to."""
    folder.mkdir(exist_ok=True)
    (folder / "held").mkdir()
    for name in (f"{os.getpid()}.holder", f"held/{os.getpid()}", "turn.lock", "timing.db"):
        (folder / name).symlink_to(victim)
    folder.chmod(0o777)


def to_a_folder(folder, victim):
    """A link to a folder of this user's, which is private itself."""
    (victim.parent / "keys").mkdir(mode=0o700)
    folder.symlink_to(victim.parent / "keys")


OTHERS = {
    "writable by all": planted,
    "writable by a group": lambda folder, _: folder.mkdir() or folder.chmod(0o770),
    "a link to a folder of mine": to_a_folder,
    "a link to nothing": lambda folder, victim: folder.symlink_to(victim.parent / "nothing"),
    "a file": lambda folder, _: folder.write_text(""),
    "no sticky bit": lambda folder, _: folder.mkdir(mode=0o700) or folder.parent.chmod(0o777),
}


@pytest.mark.parametrize("make", OTHERS.values(), ids=OTHERS)
def test_what_is_not_this_users_alone_is_left_as_it_is(shared, victim, tmp_path, make):
    """The user's cache serves instead: nothing is written through a link, and the locks keep their promise."""
    make(shared, victim)
    before = sorted((path, path.lstat().st_mtime_ns) for path in (tmp_path / "shared").rglob("*"))
    machine = use()
    assert victim.read_text() == MINE
    assert sorted((path, path.lstat().st_mtime_ns) for path in (tmp_path / "shared").rglob("*")) == before
    assert not list((tmp_path / "keys").glob("*"))
    assert not (tmp_path / "nothing").exists()
    assert not machine.problem
    folder = in_cache(tmp_path)
    assert {"turn.lock", "timing.db"} <= {path.name for path in folder.iterdir()}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_folder_of_another_user_is_left_as_it_is(shared, tmp_path, monkeypatch):
    """However well it is closed: its owner may open it again."""
    shared.mkdir(mode=0o700)

    lstat = type(shared).lstat

    def of_somebody(path):
        about = lstat(path)
        return os.stat_result((*about[:4], about.st_uid + 1, *about[5:])) if path == shared else about

    monkeypatch.setattr(type(shared), "lstat", of_somebody)
    assert lock_folder() == in_cache(tmp_path)
    with pytest.raises(RefusedFileError, match=rf"found one of user {os.geteuid() + 1}; remove it$"):
        made_private(shared)


def test_one_line_says_that_there_is_no_lock(shared, tmp_path):
    """Where both names are somebody else's: both are named, the run goes on, and nobody is asked for what was remembered."""
    shared.symlink_to(tmp_path)
    in_cache(tmp_path).parent.mkdir(parents=True)
    in_cache(tmp_path).write_text("")
    machine = Machine()
    machine.alone()
    machine.leave()
    assert machine.problem.splitlines() == [
        "no lock keeps other runs away from the times of this one: "
        f"expected {shared} to be a folder of this user alone, found a link; remove it; "
        f"expected {in_cache(tmp_path)} to be a folder of this user alone, found a file; remove it"
    ]
    assert remembered_defaults("one", lambda: DEFAULTS) == DEFAULTS
    with pytest.raises(RefusedFileError):
        lock_of(tmp_path)


def test_it_is_made_for_this_user_alone(shared):
    """Whatever the umask, and the second time it is found."""
    before = os.umask(0)
    try:
        assert [lock_folder(), lock_folder()] == [shared, shared]
    finally:
        os.umask(before)
    assert stat.S_IMODE(shared.stat().st_mode) == 0o700


def test_who_holds_it_writes_its_own_file_anew(shared, victim):
    """A link in its place, left by whomever, is replaced and not followed."""
    lock_folder()
    (shared / f"{os.getpid()}.holder").symlink_to(victim)
    machine = Machine()
    machine.work()
    (holder,) = shared.glob("*.holder")
    assert not holder.is_symlink()
    assert json.loads(holder.read_text())["state"] == "working"
    assert victim.read_text() == MINE


def test_processes_of_one_user_still_wait_for_each_other(shared, victim, tmp_path):
    """In the cache as in the folder for temporary files."""
    planted(shared, victim)
    code = (
        "import sys; from jaxgate.keep.machine import Machine; machine = Machine(); machine.alone(); print(flush=True); "
        "sys.stdin.readline()"
    )
    environ = {name: value for name, value in os.environ.items() if name != HELD} | {"TMPDIR": str(tmp_path / "shared")}
    command, pipe, told = [sys.executable, "-c", code], subprocess.PIPE, []
    with subprocess.Popen(command, env=environ, stdin=pipe, stdout=pipe, text=True) as other:
        other.stdout.readline()
        machine = Machine()

        def say():
            told.append(machine.others())
            other.stdin.write("\n")
            other.stdin.close()

        machine.alone(say)
        machine.leave()
    assert told == [f"process {other.pid}"]
