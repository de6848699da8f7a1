"""What is held against the lock file: each kind of mistake is red with its function, each kind of innocent difference is not."""

from __future__ import annotations

from dataclasses import replace

from jaxgate.ext.watch.judge import changes, new_tests
from jaxgate.ext.watch.model import IMPORT, Made, Seen, lock_of, merged

HERE = {"jax": "0.12", "hardware": "cpu-amd-epyc-1"}


def made(test="test_a", function="step", defined="lib.py", arguments="float32[3]", program="p1", **facts):
    """A program of a test."""
    return Made(
        test=test,
        function=function,
        defined=defined,
        arguments=arguments,
        program=program,
        facts={"flops": 100, "temp_bytes": 0, **facts},
        traced_s=0.1,
        compiled_s=0.2,
        where="lib.py:3",
        cause="x: float32[3] → float32[4]",
    )


def seen(*programs, tests=("test_a", "test_b"), cleared=0):
    """What a process saw."""
    return Seen(tests=dict.fromkeys(tests, 1.0), made=list(programs), cleared=cleared)


SHARED = made()
KNOWN = lock_of(seen(SHARED, made("test_b", "own", program="p2"), made("test_b", "own", program="p2")), **HERE)


def texts(*processes, known=KNOWN, **here):
    """What is red."""
    return [str(change.text) for change in changes(known, processes, **{**HERE, **here})]


def test_the_same_run_is_green():
    """Also where another test is the first to compile what both share, and where each test has a process of its own."""
    own = [made("test_b", "own", program="p2")] * 2
    assert texts(seen(SHARED, *own)) == []
    assert texts(seen(replace(SHARED, test="test_b"), *own)) == []
    assert texts(seen(SHARED, tests=["test_a"]), seen(replace(SHARED, test="test_b"), *own, tests=["test_b"])) == []


def test_a_part_of_the_tests_is_green():
    """It compiles what others compile for it else."""
    assert texts(seen(SHARED, tests=["test_a"])) == []


def test_a_program_made_again_by_a_test_is_red():
    """With the function, its line and why."""
    (change,) = changes(KNOWN, [seen(SHARED, *[made("test_b", "own", program="p2")] * 4)], **HERE)
    assert change.text == "test_b makes 3 programs again that it had made, 1 before"
    assert change.cause == "own at lib.py:3, 3 × the same: x: float32[3] → float32[4]"


def test_what_tests_shared_and_each_makes_now_is_red():
    """A function that is jitted anew in each call: no test makes it twice."""
    assert texts(seen(SHARED, replace(SHARED, test="test_b"))) == [
        "lib.py::step is compiled 2 times for float32[3], 1 before"
    ]


def test_emptied_caches_explain_as_many_more():
    """Whoever comes after pays again."""
    again = [SHARED, replace(SHARED, test="test_b")]
    assert texts(seen(*again, cleared=1)) == []
    assert texts(seen(*again, replace(SHARED, test="test_b", program="p9"), cleared=1)) == [
        "lib.py::step is compiled 3 times for float32[3], 1 before"
    ]


def test_other_arguments_are_red():
    """Of several the first one is told."""
    other, third = made(arguments="float32[4]", program="p4"), made(arguments="float32[5]", program="p5")
    assert texts(seen(SHARED, other, third)) == [
        "lib.py::step is compiled for other arguments than known: float32[4], and 1 more"
    ]


def test_a_function_that_nobody_compiled_is_red():
    """Known tests did without."""
    assert texts(seen(made(function="new"))) == ["lib.py::new is compiled which no test compiled before: float32[3]"]


def test_a_program_that_needs_more_is_red_by_more_than_a_hundredth():
    """On the hardware that the lock file is from; elsewhere compilers differ."""
    assert texts(seen(made(flops=101))) == []
    assert texts(seen(made(flops=102, temp_bytes=8))) == ["lib.py::step needs more: flops 100 → 102, temp_bytes 0 → 8"]
    assert texts(seen(made(flops=102)), hardware="cpu-other-1") == []


def test_new_tests_are_told_and_not_red():
    """Whatever they compile, and however often."""
    new = [made("test_new", "other", program="p9")] * 3 + [made("test_new", flops=900)] * 2
    run = seen(SHARED, *new, tests=["test_a", "test_new"])
    assert texts(run) == []
    assert new_tests(KNOWN, [run]) == ["test_new"]


def test_what_is_compiled_while_modules_are_imported_is_no_new_test():
    """It is held to the file as what a test compiles."""
    assert texts(seen(SHARED, made(IMPORT, "table"), tests=["test_a", IMPORT])) == [
        "lib.py::table is compiled which no test compiled before: float32[3]"
    ]


def test_helpers_of_jax_are_only_held_to_be_made_once_by_a_test():
    """Which test is the first to add two arrays is chance."""
    helper = made(function="add", defined="", program="p5")
    assert texts(seen(SHARED, helper)) == []
    assert texts(seen(SHARED, helper, helper)) == ["test_a makes 1 program again that it had made, 0 before"]


def test_another_jax_is_no_comparison():
    """It is red, as nothing was held against anything."""
    assert texts(seen(SHARED), jax="0.13") == ["expected jax 0.12, as recorded, found 0.13"]


def test_a_part_that_is_recorded_leaves_the_rest():
    """What is gone goes, unless it is still compiled by others."""
    part = lock_of(seen(made("test_b", "own", program="p2"), tests=["test_b"]), **HERE)
    both = merged(KNOWN, part, [])
    assert (both.tests, both.programs) == ({"test_a": 0, "test_b": 0}, KNOWN.programs)
    assert merged(KNOWN, part, ["test_a"]) == part
    assert merged(replace(KNOWN, jax="0.11"), part, []) == part
