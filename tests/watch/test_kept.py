"""The lock file: what is written is read, a line each, and what is none of it is an error that says what to do."""

from __future__ import annotations

import pytest

from jaxgate.ext.watch.kept import read_lock, short_arguments, write_lock
from jaxgate.ext.watch.model import Key, Known, Lock
from jaxgate.model.outcome import UsageError

LOCK = Lock(
    jax="0.12",
    hardware="cpu-amd-epyc-1",
    tests={"test_a.py::test_b[x y]": 3, "test_a.py::test_a": 0},
    programs={
        Key("lib.py::step", "float32[3], n='a b'"): Known(2, {"flops": 12, "temp_bytes": 0}),
        Key("lib.py::<lambda>", "?"): Known(1, {}),
    },
)


def test_what_is_written_is_read(tmp_path):
    """Sorted, a line each."""
    file = tmp_path / "perf-watch.lock"
    write_lock(file, LOCK)
    assert read_lock(file) == LOCK
    lines = file.read_text().splitlines()[2:]
    assert lines == sorted(lines)
    assert len(lines) == 4


def test_branches_that_touch_other_tests_merge(tmp_path):
    """Lines of both, in any order."""
    file = tmp_path / "perf-watch.lock"
    write_lock(file, LOCK)
    first, second, *lines = file.read_text().splitlines()
    file.write_text("\n".join([first, second, *reversed(lines), "test\ttest_c.py::test_c\t0"]))
    found = read_lock(file)
    assert (found.tests, found.programs) == (LOCK.tests | {"test_c.py::test_c": 0}, LOCK.programs)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "expected a line `recorded`, found none"),
        ("<<<<<<< HEAD\n", "perf-watch.lock:1: expected recorded, program or test"),
        ("test\ttest_a\n", "perf-watch.lock:1: expected recorded, program or test"),
        ("test\ttest_a\tmany\n", "perf-watch.lock:1: "),
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
    """A first run has none."""
    assert read_lock(tmp_path / "perf-watch.lock") is None


def test_arguments_stand_on_one_line():
    """Of many the first, with a digest of all; no address of an object."""
    assert short_arguments("f=<function f at 0x7f00>,\n n=\t1") == "f=<function f>, n= 1"
    many = [", ".join(["float32[3]"] * 40 + [last]) for last in ("int32[]", "int8[]")]
    short = [short_arguments(text) for text in many]
    assert short[0] != short[1]
    assert all(len(text) < 180 and ", … " in text for text in short)
