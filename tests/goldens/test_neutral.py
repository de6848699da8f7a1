"""What is made neutral hides no regression: a change that a user would see is a difference still."""

import json

import pytest
from goldens.neutral import neutral, neutral_json

NAMES = {"/home/me/project": "<project>", "cpu-amd-epyc-1": "cpu-here-1"}
TEXT = """\
$ pytest --perf-strict
exit code 1
============== test session starts ==============
test_model.py F                            [100%]
REGRESSED  model/wave  on cpu-amd-epyc-1
  found     matmul_flops 1.02 kFLOP against 0 FLOP, allowed 0 FLOP; also trace_ns 2.1 ms against 1.8 ms = 1.17 ×
  time      SLOWER: 1.300 × [1.300, 1.300], n=20; median call 10 ms
  baseline  0123456789abcdef0123456789abcdef01234567 of 2026-11-21 (jax 0.10.2, n=3); source changed
  next      reproduce: pytest 'test_model.py::test_wave'   accept: add --perf-update
1 bundle in /home/me/project/perf-artifacts
=============== 1 failed in 1.92s ===============
"""
RESULTS = {"exit_status": 1, "phases": {"trace_ns": 813, "host_ns": None}, "jax": "0.10.2", "facts": {"temp_bytes": 64}}


def of(text):
    """A text as a golden file has it."""
    return neutral(text, NAMES)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("cpu-amd-epyc-1", "cpu-here-1"),
        ("/home/me/project", "<project>"),
        ("trace_ns 2.1 ms against 1.8 ms = 1.17 ×", "trace_ns 900 µs against 1.2 s = 0.01 ×"),
        ("jax 0.10.2", "jax 0.12.0.1"),
        ("0123456789abcdef0123456789abcdef01234567", "fedcba9876543210fedcba9876543210fedcba98"),
        ("in 1.92s", "in 71.04s (0:01:11)"),
        ("F                            [100%]", "F           [100%]"),
        ("============== test session starts ==============", "=== test session starts ==="),
    ],
)
def test_another_machine_day_or_release_is_no_difference(before, after):
    assert before in TEXT
    assert of(TEXT) == of(TEXT.replace(before, after))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("REGRESSED", "IMPROVED"),
        ("exit code 1", "exit code 2"),
        ("  next      reproduce: pytest 'test_model.py::test_wave'   accept: add --perf-update\n", ""),
        ("1.02 kFLOP", "1.03 kFLOP"),
        ("--perf-update", "--perf-accept"),
        ("--perf-strict", "--perf-lax"),
        ("trace_ns", "lower_ns"),
        ("n=20", "n=21"),
        ("1.300 × [1.300", "1.301 × [1.300"),
        ("median call 10 ms", "median call 11 ms"),
        ("1 failed in", "2 failed in"),
        ("test_model.py F", "test_model.py ."),
        ("2026-11-21", "2026-11-22"),
        ("source changed", "source changed, inputs changed"),
        ("; also ", ", also "),
        ("test session starts", "test session began"),
        ("/home/me/project/perf-artifacts", "/home/me/project/artifacts"),
    ],
)
def test_what_a_user_would_see_is_a_difference(before, after):
    """Verdicts, exit codes, lines, figures of facts and of faked clocks, options, dates of a fixed day."""
    assert TEXT.count(before) == 1
    assert of(TEXT) != of(TEXT.replace(before, after))


@pytest.mark.parametrize(
    "changed",
    [
        RESULTS | {"exit_status": 2},
        RESULTS | {"facts": {"temp_bytes": 65}},
        RESULTS | {"facts": {"temporary_bytes": 64}},
        RESULTS | {"phases": {"trace_ns": None, "host_ns": None}},
        RESULTS | {"phases": {"trace_ns": 813}},
        dict(reversed(RESULTS.items())),
        RESULTS | {"more": None},
    ],
)
def test_a_machine_reads_the_same(changed):
    """A value, a key, the order of keys, and whether a clock's number is there."""
    assert neutral_json(json.dumps(changed), {}) != neutral_json(json.dumps(RESULTS), {})


def test_only_the_clocks_numbers_and_releases_are_neutral():
    assert json.loads(neutral_json(json.dumps(RESULTS), {})) == {
        "exit_status": 1,
        "phases": {"trace_ns": "<time>", "host_ns": None},
        "jax": "<version>",
        "facts": {"temp_bytes": 64},
    }


def test_frames_of_ours_are_one_and_those_of_the_project_stay():
    """A module that moves is no difference; a line of the user's that is no longer named is."""
    ours = '  File "<repository>/src/jaxgate/{}.py", line {}, in {}\n    run()\n    ^^^^^\n'
    theirs = '  File "<project>/test_model.py", line 6, in wave\n    raise ValueError\n'
    before = ours.format("a/b", 1, "c") + ours.format("d", 20, "e") + theirs
    assert of(before) == of(ours.format("other", 3, "f") + theirs) == f'  File "<jaxgate>"\n{theirs}'
    assert of(before) != of(ours.format("a/b", 1, "c"))


def test_a_commit_without_a_letter_is_neutral():
    """One commit in a hundred has ten decimal digits first: it is a hash all the same where a commit stands."""
    assert neutral("5859845330+changes of 2026-11-21", {}) == "<hash>+changes of 2026-11-21"
    assert neutral("5859845330 of 2026-11-21", {}) == "<hash> of 2026-11-21"
