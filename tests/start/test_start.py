"""What a start asks the compiler for, and what two of them differ in."""

import time

import jax
import jax.numpy as jnp
import pytest

from jaxgate.ext.start.gate import _judge, _show
from jaxgate.ext.start.judge import judge_start
from jaxgate.ext.start.model import PHASES, Job, Program, Started
from jaxgate.ext.start.watch import CACHE, begin, cache_variables
from jaxgate.model.decision import Status
from jaxgate.model.machine import HardwareKey
from jaxgate.model.measurement import InvalidCaseError

HERE_FILE = "tests/start/test_start.py"
HERE = HardwareKey(platform="cpu", device_kind="AMD EPYC", devices=1)
SECONDS = dict.fromkeys(PHASES, 0.0) | {"imports": 2.0, "compile": 1.0, "rest": 0.1}
TEXTS = {"step": "module {\n  %cst = 1\n}", "init": "module {\n}", "anew": ""}


def nothing():
    """Starts nothing."""


def started(*programs, seconds=SECONDS):
    """A start that asked for programs by name; a star stands before one that the cache had."""
    return Started(
        programs=[Program(name.lstrip("*"), "train.py:7", name.startswith("*")) for name in programs], seconds=seconds
    )


def verdict(first, second, *, other=None, **about):
    """The verdict of two starts; ``other`` has texts of the second that are not the first's."""
    texts = [
        lambda place, one=one, known=known: known[one.programs[place].function]
        for one, known in ((first, TEXTS), (second, TEXTS | (other or {})))
    ]
    return judge_start("train/start", HERE, Job(start=nothing, **about), (first, second), texts)


FIRST, LOADED = started("init", "step"), started("*init", "*step")
AGAIN = "the second process compiles again what the first one kept: 1 program"
OTHER = {"other": {"step": "module {\n  %cst = 2\n}"}}


@pytest.mark.parametrize(
    ("second", "about", "found", "culprit"),
    [
        (LOADED, {}, "", ""),
        (started("*init", "step"), OTHER, AGAIN, "step at train.py:7: %cst = 1 → %cst = 2"),
        (started("*init", "step"), {}, AGAIN, "step at train.py:7: the same program; JAX does not keep it"),
        (started("*init", "*step", "init"), {}, AGAIN, "init at train.py:7: the first process made no such program"),
        (started("*init", "step"), {"allow": {"missed_programs": 1}}, "", ""),
        (LOADED, {"programs": 2, "seconds": 3.2}, "", ""),
        (LOADED, {"programs": 1}, "2 programs until the first result, allowed 1", "1 × init, 1 × step"),
        (LOADED, {"seconds": 3}, "3.1 seconds with a full cache, allowed 3", "most of it is imports: 2 s"),
    ],
    ids=["all loaded", "another", "not kept", "new", "allowed", "within", "too many", "too long"],
)
def test_what_the_second_process_does_again_is_red(second, about, found, culprit):
    """With the first line that differs; a limit is held where one is given."""
    judged = verdict(FIRST, second, **about)
    assert judged.status is (Status.REGRESSED if found else Status.SAME)
    assert judged.fails is bool(found)
    assert judged.findings[0].detail == found
    assert [str(cause) for cause in judged.causes] == ([culprit] if culprit else [])


def test_one_process_asks_once_for_a_program():
    """A function that is jitted anew, or compiled ahead and then called."""
    for first in (started("init", "step", "step"), started("init", "step", "*anew")):
        judged = verdict(first, started("*init", "*step", "*step"))
        assert judged.findings[0].detail == "one process asks the compiler again for what it has: 1 program"
        assert str(judged.causes[0]) == f"{first.programs[-1].function} at train.py:7"


def test_the_line_says_where_the_time_goes():
    found = verdict(FIRST, started("*init", "*step", seconds=SECONDS | {"compile": 0.0}))
    assert found.time.reason == "2 programs, 3.1 s (imports 2, compile 1); with a full cache 2.1 s (imports 2)"


@pytest.mark.parametrize(
    ("about", "error"),
    [
        ({"start": 3}, "expected a function without arguments, found 3"),
        ({"allow": {"missed": 1}}, "expected some of missed_programs, repeated_programs in allow=, found missed"),
        ({"programs": 0}, "expected programs= above 0, found 0"),
        ({"seconds": float("nan")}, "expected seconds= above 0, found nan"),
    ],
)
def test_what_says_nothing_is_refused(about, error):
    with pytest.raises((TypeError, ValueError), match=error):
        Job(**{"start": nothing} | about)


def test_a_start_is_noted_program_by_program():
    @jax.jit
    def doubled(x):
        return x * 2

    def start():
        doubled(jnp.ones(3))
        return doubled(jnp.ones(5))

    found = Started.of(begin(start, time.time() - 3, getattr(jax.config, CACHE)))
    ours = [one for one in found.programs if one.function == "doubled"]
    assert [(one.where.rpartition(":")[0], one.loaded) for one in ours] == [(HERE_FILE, False)] * 2
    assert tuple(found.seconds) == PHASES
    assert found.seconds["imports"] >= 3
    assert found.seconds["trace"] > 0
    assert found.seconds["load"] == 0


def test_what_is_no_start_is_invalid(tmp_path):
    """A folder of its own, which a run before has filled, set by the job or by whoever imports it; nothing that is asked for; an error."""
    before = getattr(jax.config, CACHE)
    try:
        with pytest.raises(InvalidCaseError, match="expected jax_compilation_cache_dir to be left alone"):
            begin(lambda: jax.config.update(CACHE, str(tmp_path)), time.time(), before)
    finally:
        jax.config.update(CACHE, before)
    with pytest.raises(InvalidCaseError, match="expected jax_compilation_cache_dir to be left alone"):
        begin(lambda: None, time.time(), str(tmp_path))
    with pytest.raises(InvalidCaseError, match="expected a program that is asked for, found none"):
        begin(lambda: None, time.time(), before)
    with pytest.raises(InvalidCaseError, match="starting: ZeroDivisionError"):
        begin(lambda: 1 / 0, time.time(), before)


def test_what_fails_in_the_other_process_is_told(tmp_path):
    """By the stage and the error that it left."""

    def ask(folder, *_, **__):
        return _show(lambda: 1 / 0, folder, time.time(), print)

    with pytest.raises(InvalidCaseError, match="starting in another process: ZeroDivisionError"):
        _judge(Job(start=nothing), "train/start", ask, tmp_path, lambda _: None)


def test_jax_knows_the_variables():
    """A setting that is renamed would be no setting, and every start cold."""
    known = [
        name for name in cache_variables("a", "b") if "DUMP" not in name
    ]  # of those tests/runs/test_start.py reads the files
    assert all(hasattr(jax.config, name.lower()) for name in known)
    assert len(known) == 4
