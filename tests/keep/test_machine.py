"""The lock of the machine: work side by side, times alone, and no waiting for oneself."""

import json
import os
import subprocess
import sys
import threading

import pytest

from jaxgate.keep.machine import HELD, Machine, lock_of, started


@pytest.fixture(autouse=True)
def _nobody_holds(monkeypatch):
    monkeypatch.delenv(HELD, raising=False)


class WaitedError(Exception):
    """Raised instead of waiting."""


def told():
    """What a machine calls when it would have to wait."""
    raise WaitedError


def waits(take):
    """Whether a machine would have to wait."""
    try:
        take(told)
    except WaitedError:
        return True
    return False


@pytest.mark.parametrize(("held", "wanted"), [("work", "alone"), ("alone", "work"), ("alone", "alone")])
def test_who_times_is_alone(tmp_path, monkeypatch, held, wanted):
    """In whichever order they come, and only until the first leaves; work goes on side by side."""
    first, second = Machine(tmp_path), Machine(tmp_path)
    first.work()
    assert not waits(second.work)
    second.leave()
    getattr(first, held)()
    assert waits(getattr(second, wanted))
    first.leave()
    assert not waits(getattr(second, wanted))


def test_who_waits_to_time_is_not_kept_out(tmp_path):
    """Nobody new may begin to work meanwhile: two that take over from each other would keep it waiting for ever."""
    first, newcomer = Machine(tmp_path), Machine(tmp_path)
    first.work()
    seen = []

    def told():
        seen.append(waits(newcomer.work))
        first.leave()

    Machine(tmp_path).alone(told)
    assert seen == [True]


def test_the_same_process_goes_from_one_to_the_other(tmp_path):
    """It does not wait for itself, nor twice for the same."""
    machine = Machine(tmp_path)
    for take in (machine.work, machine.alone, machine.alone, machine.work, machine.leave, machine.leave, machine.alone):
        take()
    machine.leave()
    assert not waits(Machine(tmp_path).alone)


def test_what_it_starts_measures_in_its_name(tmp_path):
    """A process that is started while this one is alone does not wait for it."""
    machine = Machine(tmp_path)
    machine.alone()
    assert os.environ[HELD] == str(os.getpid())
    assert not waits(Machine(tmp_path).alone)
    machine.leave()
    assert HELD not in os.environ


def test_who_died_is_not_waited_for_though_another_one_has_its_number(tmp_path):
    """A process, or a thread of one: a number is given again."""
    thread = threading.Thread(target=threading.Event().wait, args=(30,), daemon=True)
    thread.start()
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    (tmp_path / f"{gone.pid}.holder").write_text(json.dumps({"run": "another", "state": "alone", "about": "a case"}))
    for number in (os.getppid(), thread.native_id):
        note = {"run": "another", "started": "long ago", "state": "alone", "about": "a case"}
        (tmp_path / f"{number}.holder").write_text(json.dumps(note))
    assert not Machine(tmp_path).others()
    assert not list(tmp_path.glob("*.holder")), "nobody else would remove them"
    here = {**note, "started": started(os.getppid())}
    (tmp_path / f"{os.getppid()}.holder").write_text(json.dumps(here))
    assert Machine(tmp_path).others() == f"process {os.getppid()} (a case)"


def test_without_a_lock_it_says_so(tmp_path):
    (tmp_path / "file").write_text("")
    machine = Machine(tmp_path / "file" / "folder")
    machine.alone()
    machine.leave()
    assert "no lock keeps other runs away" in machine.problem
    first = lock_of(tmp_path / "a" / ".." / "b")
    assert first.lock_file == lock_of(tmp_path / "b").lock_file != lock_of(tmp_path / "c").lock_file


def other_process(folder, *steps):
    """A process that uses the machine of a folder step by step; gives it, and what lets it do the next step."""
    code = "import sys; from pathlib import Path; from jaxgate.keep.machine import Machine\n"
    code += "machine = Machine(Path(sys.argv[1])); machine.about = 'model/step of /project'\n"
    code += "".join(f"{step}; print(flush=True); sys.stdin.readline()\n" for step in steps)
    command = [sys.executable, "-c", code, str(folder)]
    other = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
    other.stdout.readline()

    def on():
        other.stdin.write("\n")
        other.stdout.readline()

    return other, on


def test_who_holds_it_says_who_it_is(tmp_path):
    """For those who wait: number, what it does; nothing once it has left, and a process that is killed lets go."""
    mine = Machine(tmp_path)
    other, on = other_process(tmp_path, "machine.alone()", "machine.leave()", "machine.work()")
    with other:
        assert mine.others() == f"process {other.pid} (model/step of /project)"
        on()
        assert mine.others() == ""
        on()
        assert mine.others() == f"process {other.pid} (model/step of /project)"
        other.kill()
        other.wait()
        assert mine.others() == ""
        assert waits(mine.alone) is False


def test_workers_of_one_run_know_each_other(tmp_path, monkeypatch):
    """What they wait for is their own run, and no news."""
    monkeypatch.setenv("PYTEST_XDIST_TESTRUNUID", "one")
    mine = Machine(tmp_path)
    mine.work()
    other, on = other_process(tmp_path, "machine.work()")
    with other:
        assert mine.others() is None
        monkeypatch.setenv("PYTEST_XDIST_TESTRUNUID", "two")
        assert str(other.pid) in Machine(tmp_path).others()
        on()


def test_it_is_held_for_a_while_and_let_go_whatever_happens(tmp_path):
    """Alone or beside others; who waits is given one line."""
    other, machine, said = Machine(tmp_path), Machine(tmp_path), []

    def raising(alone):
        with machine.hold(said.append, alone=alone):
            raise KeyError

    for alone in (False, True):
        with machine.hold(said.append, alone=alone):
            assert waits(other.alone)
            assert (HELD in os.environ) == alone
        with pytest.raises(KeyError):
            raising(alone)
        assert not waits(other.alone)
        other.leave()
    assert said == []
