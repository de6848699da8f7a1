"""Programs that depend on the process that makes them: red when they are recorded, and when they changed."""

import subprocess
import sys
import tempfile

import pytest
from support.corpora import nightly

from jaxgate.ext.second_process import check
from jaxgate.model.outcome import UsageError

MODEL = """
import os
import jax, jax.numpy as jnp
NAMES = {f"layer{number}" for number in range(12)}
@jax.jit
def scaled(x):
    for name in NAMES:
        x = jnp.tanh(x * (hash(name) % 1000))
    return x
@jax.jit
def settled(x):
    for name in sorted(NAMES):
        x = jnp.tanh(x * len(name))
    return x
def test_scaled(gate):
    gate(scaled, jnp.ones(3))
def test_settled(gate):
    gate(settled, jnp.ones(3))
"""
DRAWN = """
import numpy as np
def test_drawn(gate):
    gate(settled, jnp.asarray(np.random.default_rng().normal(size=8)))
def test_seeded(gate):
    gate(settled, jnp.asarray(np.random.default_rng(0).normal(size=4)))
"""
TOLD = "another program in each process, so that none finds it in the compile cache"


@pytest.fixture
def asking(project, monkeypatch):
    """A project whose runs ask a second process."""
    monkeypatch.setenv("JAXGATE_OPINION", "20")
    return project.write("test_model.py", MODEL)


def told(result):
    """What a run says of a second process; empty if it says nothing."""
    return next(
        (line for line in result.text.splitlines() if "in each process" in line or "second process" in line), ""
    )


def test_what_depends_on_the_process_is_red_when_it_is_recorded(asking):
    """With a line of the program; what is the same is not named, and all is recorded.

    Inputs without a seed are told: no baseline could say what their values decide.
    """
    result = asking.write("test_model.py", MODEL + DRAWN).run("--perf-update", "--benchmark-disable")
    assert (result.code, len(asking.baselines())) == (1, 4)
    assert "1 case has other inputs in each process: draw them with a fixed seed: model/drawn\n" in result.text
    (problem,) = asking.results()["problems"]
    assert problem in result.text
    assert f"1 case has {TOLD}" in problem
    assert "model/scaled (%" in problem
    assert "model/settled" not in problem


POINTERS = """
import jax, jax.numpy as jnp
from jax.experimental.custom_partitioning import custom_partitioning
@custom_partitioning
def scaled(x):
    return x * 2
scaled.def_partition(
    partition=lambda mesh, args, result: (mesh, lambda x: x * 2, result.sharding, (args[0].sharding,)),
    infer_sharding_from_operands=lambda mesh, args, result: args[0].sharding,
    sharding_rule="i -> i",
)
def test_partitioned(gate):
    mesh = jax.make_mesh((2,), ("i",), axis_types=(jax.sharding.AxisType.Auto,), devices=jax.devices()[:2])
    x = jax.device_put(jnp.ones(8), jax.NamedSharding(mesh, jax.P("i")))
    gate(jax.jit(lambda x: scaled(x) + 1), x)
def test_callback(gate):
    gate(jax.jit(lambda x: jax.pure_callback(lambda x: x, x, x) + 1), jnp.ones(8))
"""


@nightly
def test_a_pointer_in_a_program_is_told(project):
    """Custom partitioning (jax#25123) names a place in memory; callbacks, which did so in earlier releases, do not."""
    project.write("test_model.py", POINTERS)
    command = ("-m", "pytest", "--perf-update", "--benchmark-disable")
    result = project.alone(*command, JAXGATE_OPINION="20", JAXGATE_CPU_DEVICES="2")
    assert result.returncode == 1, result.stdout
    assert f"1 case has {TOLD}" in result.stdout
    assert "decides it: model/partitioned\n" in result.stdout


OUTSIDE = """
import os
import jax, jax.numpy as jnp
@jax.jit
def step(x):
    return x * float(os.environ["SCALE"])
@jax.jit
def other(x):
    return x + 1
def test_step(gate):
    gate(step, jnp.ones(3))
def test_other(gate):
    gate(other, jnp.ones(3))
"""


@pytest.fixture
def changed(asking, monkeypatch):
    """A project whose step reads a number from outside, which is another one since it was recorded."""
    monkeypatch.setenv("JAXGATE_OPINION", "0")
    monkeypatch.setenv("SCALE", "2")
    asking.write("test_model.py", OUTSIDE).record()
    monkeypatch.setenv("JAXGATE_OPINION", "20")
    monkeypatch.setenv("SCALE", "3")
    return asking


def test_a_program_that_changed_alone_is_asked_about(lab, changed):
    """A second process that makes a third program shows that the process decides; nobody asks about what is the same."""
    lab.recorded.clear()
    result = changed.run("--benchmark-disable")
    assert [chosen.paths for chosen in lab.recorded] == [("test_model.py::test_step",)]
    assert result.code == 1
    assert told(result).endswith("an earlier trace decides it: model/step")


@nightly
def test_what_every_process_makes_alike_is_not_told(changed):
    """A value from outside that is another one today changes the program, and the second process agrees."""
    assert told(changed.run("--benchmark-disable")) == ""


@nightly
def test_what_changed_with_its_source_is_asked_about(asking):
    """The change that brings the set brings the process."""
    asking.write(
        "test_model.py", MODEL.replace("hash(name)", "len(name)").replace("in NAMES", "in sorted(NAMES)")
    ).record()
    asking.write("test_model.py", MODEL)
    assert "model/scaled" in told(asking.run("--benchmark-disable"))


@pytest.mark.parametrize("words", [(), ("--perf-against=HEAD",), ("-k", "other")])
def test_nobody_is_asked(lab, changed, monkeypatch, words):
    """Where the user wants no second opinion, something else is compared with, or nothing changed."""
    lab.recorded.clear()
    if not words:
        monkeypatch.setenv("JAXGATE_OPINION", "0")
    changed.run("--benchmark-disable", *words)
    assert lab.recorded == []


def test_a_few_are_asked_about(lab, asking, monkeypatch):
    """Those that were judged last are asked about first."""
    monkeypatch.setattr(check, "MAX_ASKED", 1)
    result = asking.run("--perf-update", "--benchmark-disable")
    assert result.code == 0
    assert [chosen.paths for chosen in lab.recorded] == [("test_model.py::test_scaled",)]


def test_a_second_process_that_fails_changes_no_verdict(lab, asking):
    def broken(*_):
        raise UsageError("it died")

    lab.instruments["record"] = broken
    result = asking.run("--perf-update", "--benchmark-disable")
    assert result.code == 0
    assert told(result).endswith("a second process was to make the programs of this run, and failed: it died")


@pytest.mark.parametrize(("ours", "theirs"), [("1", "2"), (None, "1")])
def test_the_hash_seed_and_the_order_are_others(lab, asking, monkeypatch, ours, theirs):
    """A set of strings has one order for each seed, and a user may have fixed theirs."""
    given = []
    lab.instruments["record"] = lambda side, chosen, _: (
        given.append((side.environment["PYTHONHASHSEED"], chosen.paths)) or {}
    )
    if ours is None:
        monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    else:
        monkeypatch.setenv("PYTHONHASHSEED", ours)
    asking.run("--perf-update", "--benchmark-disable")
    assert given == [(theirs, ("test_model.py::test_settled", "test_model.py::test_scaled"))]


ALONE = "import sys; from jaxgate.keep.machine import Machine; Machine().alone(lambda: sys.exit(3))"


def test_the_second_process_can_have_the_machine(lab, asking, monkeypatch, tmp_path):
    """The run does not hold it meanwhile: with a third one that waits for it alone, both would wait for ever."""
    monkeypatch.delenv("JAXGATE_MACHINE_HELD")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    codes = []

    def record(*_):
        codes.append(subprocess.run([sys.executable, "-c", ALONE], check=False, timeout=60).returncode)
        return {}

    lab.instruments["record"] = record
    asking.run("--perf-update", "--benchmark-disable")
    assert codes == [0]


@nightly
def test_workers_have_one_second_process(asking):
    """The controller asks it about all that its workers recorded."""
    assert f"1 case has {TOLD}" in told(asking.run("--perf-update", "--benchmark-disable", "-n2"))
