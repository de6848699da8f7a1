"""The report: where the time of a suite goes, what is made again, which tests would be faster."""

from jaxgate.ext.watch.model import Made, Seen
from jaxgate.ext.watch.text import report


def made(test, program, *, function="step", seconds=1.0, cause=""):
    """A program of a test."""
    return Made(
        test=test,
        function=function,
        arguments="f32[3]",
        program=program,
        facts={},
        traced_s=seconds / 4,
        compiled_s=seconds * 3 / 4,
        where="lib.py:3",
        cause=cause,
    )


def test_a_report_names_functions_and_tests():
    """By what they lose; what is worth less than a tenth of a second is left out."""
    seen = Seen(
        tests={"test_a": 4.0, "test_b": 3.0, "test_c": 1.0},
        made=[
            *[made("test_a", "p1", cause="a new function object")] * 3,
            made("test_b", "p2", function="init"),
            made("test_c", "p2", function="init", seconds=0.5),
            *[made("test_c", "p3", function="add", seconds=0.02)] * 2,
        ],
    )
    assert list(report([seen])) == [
        "3 tests in 8.0 s, 57% of it making programs: tracing 1.1 s, compiling 3.4 s; 7 programs",
        "made again, though the same program had been made:",
        "      2 ×     2.0 s  step at lib.py:3, 2 × in test_a: a new function object",
        "      1 ×     0.5 s  init at lib.py:3 in 1 test",
        "tests that would be faster if they made each program once:",
        "     4.0 → 2.0 s (2.0 ×)  test_a",
    ]


def test_workers_do_not_share_what_they_make():
    workers = [Seen(tests={test: 2.0}, made=[made(test, "p1")]) for test in ("test_a", "test_b")]
    assert len(list(report(workers))) == 1


def test_nothing_ran_nothing_is_told():
    assert list(report([Seen()])) == []
