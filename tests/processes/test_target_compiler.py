"""A target's compiler in a process of its own: what it answers, how it may end, and that the next program finds a new one."""

import os
from importlib.util import find_spec

import jax
import jax.numpy as jnp
import pytest

from jaxgate.ext.targets.model import Target
from jaxgate.ext.targets.process import TargetError, TargetProcess
from jaxgate.ext.targets.topology import NoTargetError
from jaxgate.model.program import ProgramRecord, StoredProgram
from jaxgate.observe.errors import NotOnTargetError, read_exhausted
from jaxgate.observe.program.export import NotReplayableError, export_program
from jaxgate.observe.trace.lowering import lower
from jaxgate.observe.trace.stages import compiled_facts

TARGET = Target.parse("tpu:v5e:2x4")
WORKER = """
import json, os, sys, time
print(json.dumps({"version": "a compiler", "devices": 8, "pid": os.getpid()}), flush=True)
for line in sys.stdin:
    question, how = json.loads(line), os.environ["HOW"]
    if how == "crash":
        print("F0000 00:00:00.000000 1 allocator.cc:1] the heap is broken @", file=sys.stderr)
        print("    @ 0x7f a frame", file=sys.stderr, flush=True)
        os._exit(11)
    if how == "hang":
        time.sleep(60)
    if how == "no tiles":
        answer = {"refused": "INTERNAL: Couldn't find output tile sizes that satisfy hlo: %dot.48 = f32[144,128]{1,0} dot()"}
    elif how == "refuse":
        answer = {"refused": "RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 20.0G of 15.75G hbm."}
    else:
        answer = {"memory": {"temp_size_in_bytes": 7}, "cost": {}, "text": "HloModule", "reused": question["donated"],
                  "inputs": [{}], "outputs": [{}]}
    print(json.dumps(answer), flush=True)
"""


def doubled(donated=(), platform="tpu"):
    """A function, lowered for a platform; that needs no compiler of it."""
    function = jax.jit(lambda x: x * 2, donate_argnums=donated)
    return lower(function, (jnp.ones((8, 128)),), {}, role="subject", clock=lambda: 0, platform=platform)


@pytest.fixture
def compiler(tmp_path):
    """One that does as it is asked to, in a real process."""
    (tmp_path / "a_worker.py").write_text(WORKER)
    made = []

    def make(how, **options):
        environ = {**os.environ, "PYTHONPATH": str(tmp_path), "HOW": how}
        made.append(TargetProcess(TARGET, environ, module="a_worker", **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_it_answers_with_the_facts_of_a_program(compiler):
    """It is started when it is first asked, and once."""
    asked = compiler("answer")
    assert asked.versions["backend"] == "a compiler"
    found = asked.compile(doubled(donated=0))
    assert (compiled_facts(found)["temp_bytes"], found.reused, found.as_text()) == (7, (0,), "HloModule")
    assert asked.compile(doubled()).reused == ()


def test_one_that_crashes_gives_its_last_words_and_is_started_again(compiler):
    """The case is INVALID with them; the next one is compiled as ever."""
    asked = compiler("crash")
    for _ in range(2):
        with pytest.raises(
            TargetError, match=r"the compiler of tpu:v5e:2x4 ended: .* status 11: the heap is broken @$"
        ):
            asked.compile(doubled())


def test_one_that_hangs_is_killed(compiler):
    asked = compiler("hang", timeout_s=1.0)
    with pytest.raises(TargetError, match=r"the compiler of tpu:v5e:2x4 ended: .* status -9"):
        asked.compile(doubled())


def test_what_the_compiler_refuses_is_in_its_own_words(compiler):
    asked = compiler("refuse")
    with pytest.raises(TargetError) as caught:
        asked.compile(doubled())
    exhausted = read_exhausted(caught.value)
    assert (exhausted.asked_bytes, exhausted.limit_bytes) == (20 * 2**30, int(15.75 * 2**30))


@pytest.mark.jax_text
def test_what_the_compiler_would_have_to_time_is_left_out(compiler):
    """It is no fault of the program: on a device the compiler times one kernel after the other."""
    with pytest.raises(NotOnTargetError, match="finds no tiles for a product that it cannot try out"):
        compiler("no tiles").compile(doubled())


def test_a_stored_program_is_compiled_again(compiler):
    """One that the compiler refuses cannot be compared with, in one line; nor one that nobody stored."""
    lowered = doubled()
    stored = export_program(lowered, lowered.call, None, 0)
    assert stored.record.stored
    assert compiler("answer").recompile(stored, lowered).as_text() == "HloModule"
    with pytest.raises(NotReplayableError, match=r"^RESOURCE_EXHAUSTED: Ran out of memory"):
        compiler("refuse").recompile(stored, lowered)
    unstored = StoredProgram(
        record=ProgramRecord(digest=None, donated=(), feeds=None, why_not="too large"), content=b""
    )
    with pytest.raises(NotReplayableError, match="it was not stored: too large"):
        compiler("answer").recompile(unstored, lowered)


def test_one_that_cannot_be_started_says_so(tmp_path):
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    with pytest.raises(NoTargetError, match=r"ended: exit status 1: .*No module named .*none_such"):
        _ = TargetProcess(TARGET, environ, module="none_such").versions


COMPILERS = {"tpu:v5e:2x4": ("libtpu", "tpu-aot"), "gpu:h200:8": ("jax_cuda13_plugin", "cuda-aot")}


@pytest.mark.parametrize("target", COMPILERS)
def test_without_the_compiler_one_line_says_what_to_install(target):
    package, extra = COMPILERS[target]
    if find_spec(package) is not None:
        pytest.skip(f"{package} is installed")
    with pytest.raises(NoTargetError) as caught:
        _ = TargetProcess(Target.parse(target)).versions
    assert "\n" not in str(caught.value)
    assert f"{target} cannot be compiled for: " in str(caught.value)
    assert f"pip install 'jaxgate[{extra}]'" in str(caught.value)


@pytest.mark.parametrize("target", COMPILERS)
def test_the_real_compiler_answers(target):
    """A donated array is reused; what the memory of a device does not hold is refused, with what it would take."""
    package, extra = COMPILERS[target]
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed: pip install 'jaxgate[{extra}]'")
    asked = Target.parse(target)
    compiler = TargetProcess(asked)
    try:
        found = compiler.compile(doubled(donated=0, platform=asked.lowering))
        assert compiler.versions["libtpu" if asked.platform == "tpu" else "jax-cuda13-plugin"]
        facts = compiled_facts(found)
        assert facts["argument_bytes"] >= 8 * 128 * 4
        assert facts["xla_flops"] >= 8 * 128
        assert found.reused == (0,)
        big = jax.ShapeDtypeStruct((48 * 2**30,), jnp.float32)
        too_big = lower(jax.jit(jnp.sin), (big,), {}, role="subject", clock=lambda: 0, platform=asked.lowering)
        with pytest.raises(TargetError, match="RESOURCE_EXHAUSTED") as caught:
            compiler.compile(too_big)
        assert read_exhausted(caught.value).asked_bytes > 2**35
    finally:
        compiler.close()


TPUS = ("tpu:v4:2x2x1", "tpu:v5e:2x4", "tpu:v5p:2x2x1", "tpu:v6e:2x4", "tpu:7x:2x2x1")


@pytest.mark.parametrize("target", TPUS)
def test_the_memory_of_a_tpu_is_what_its_compiler_says(target):
    """It is the budget of a largest batch. Releases of libtpu differ by 0.01 GiB."""
    if find_spec("libtpu") is None:
        pytest.skip("libtpu is not installed: pip install 'jaxgate[tpu-aot]'")
    big = jax.ShapeDtypeStruct((48 * 2**30,), jnp.float32)
    too_big = lower(jax.jit(jnp.sin), (big,), {}, role="subject", clock=lambda: 0, platform="tpu")
    compiler = TargetProcess(Target.parse(target))
    try:
        with pytest.raises(TargetError, match="RESOURCE_EXHAUSTED") as caught:
            compiler.compile(too_big)
    finally:
        compiler.close()
    granted = read_exhausted(caught.value).limit_bytes
    assert granted == pytest.approx(compiler.target.memory_bytes, abs=0.011 * 2**30)
