"""The lock file: what is written is read, a line each, and what is none of it is an error that says what to do."""

import pytest

from jaxgate.ext.watch.kept import read_lock, short_arguments, write_lock
from jaxgate.ext.watch.model import Key, Known, Lock
from jaxgate.model.outcome import UsageError

LOCK = Lock(
    jax="0.12",
    hardware="cpu-amd-epyc-1",
    tests=frozenset({"test_a.py::test_b[x y]", "test_a.py::test_a"}),
    programs={
        Key("step", "f32[3], s32[]"): Known(2, {"flops": 12, "temp_bytes": 0}),
        Key("<lambda>", ""): Known(1, {}),
    },
    again={"cond": 4},
)


def test_what_is_written_is_read(tmp_path):
    file = tmp_path / "perf-watch.lock"
    write_lock(file, LOCK)
    assert read_lock(file) == LOCK
    lines = file.read_text().splitlines()[2:]
    assert [line.split("\t")[0] for line in lines] == ["program", "program", "again", "test", "test"]


def test_branches_that_touch_other_tests_merge(tmp_path):
    file = tmp_path / "perf-watch.lock"
    write_lock(file, LOCK)
    first, second, *lines = file.read_text().splitlines()
    file.write_text("\n".join([first, second, *reversed(lines), "test\ttest_c.py::test_c"]))
    found = read_lock(file)
    assert (found.tests, found.programs) == (LOCK.tests | {"test_c.py::test_c"}, LOCK.programs)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "expected a line `recorded`, found none"),
        ("<<<<<<< HEAD\n", "perf-watch.lock:1: expected recorded, program, again or test"),
        ("again\tcond\n", "perf-watch.lock:1: "),
        ("again\tcond\tmany\n", "perf-watch.lock:1: "),
        ("program\tf\t?\t1\tflops\n", "perf-watch.lock:1: "),
    ],
)
def test_what_is_none_is_an_error(tmp_path, text, expected):
    """With what is wrong, and the command that writes it anew."""
    file = tmp_path / "perf-watch.lock"
    file.write_text(text)
    with pytest.raises(UsageError, match=expected) as raised:
        read_lock(file)
    assert "pytest --perf-watch=update" in str(raised.value)


def test_no_file_is_none(tmp_path):
    assert read_lock(tmp_path / "perf-watch.lock") is None


def test_many_arguments_are_cut():
    many = [", ".join(["f32[3]"] * 40 + [last]) for last in ("s32[]", "s8[]")]
    short = [short_arguments(text) for text in many]
    assert short[0] != short[1]
    assert all(len(text) < 180 and ", … " in text for text in short)
    assert short_arguments("f32[3], s32[]") == "f32[3], s32[]"
