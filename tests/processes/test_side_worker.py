"""The sides of a duel in processes of their own: real children, what they are refused for, and how they may end."""

import json
import os
import re
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import asdict

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.corpora import nightly

from jaxgate.keep.duel_handoff import Job, write_job
from jaxgate.model.program import Match
from jaxgate.observe.duel.duel import agree
from jaxgate.observe.duel.sides import to_files
from jaxgate.observe.execute.correctness import Closeness
from jaxgate.observe.machine.environment import read_environment
from jaxgate.observe.machine.jax_settings import know_defaults
from jaxgate.observe.machine.recreated_environment import variables_of
from jaxgate.observe.program.export import export_program, split_call
from jaxgate.observe.trace.lowering import lower
from jaxgate.processes.child import run_child
from jaxgate.processes.duel_worker import ready, start_side
from jaxgate.processes.jax_query import find_defaults
from jaxgate.processes.live_worker import LiveWorker, WorkerError

OTHERWISE = {"NCCL_PROTO": "LL", "jax_default_matmul_precision": "float32"}
"""A variable and a setting: neither changes what a CPU does."""


def step(x):
    """Two for what is no number; a compiler that supposes that all are numbers leaves the question out."""
    return jnp.where(x * 0 == 0, jnp.tanh(x), 2.0)


@pytest.fixture
def start(tmp_path):
    """Start sides of a job, each with an environment and, if they are to be others, the variables."""
    defaults = find_defaults()
    know_defaults(defaults)
    call = ((jnp.ones((8, 8)).at[0, 0].set(jnp.nan),), {})
    lowered = lower(jax.jit(step, donate_argnums=0), *call, role="subject", clock=lambda: 0)
    program = export_program(lowered, call, None, 0)
    leaves, kinds = to_files(split_call(lowered, call)[0])
    usual = read_environment(jax.devices()[0])
    with ExitStack() as children:

        def start_sides(timeout_s=60.0, variables=None, platform="cpu", defaults=defaults, **differs):
            environments = {name: usual | other for name, other in differs.items()}
            about = {"kinds": [kinds], "platform": platform, "contract": "latency", "environments": environments}
            about["defaults"] = None if defaults is None else asdict(defaults)
            write_job(tmp_path, Job(matches=[Match(now=program, baseline=program, leaves=leaves)], about=about))
            started = []
            for name, environment in environments.items():
                found = variables_of(environment, os.environ, platform) if variables is None else variables
                started.append(children.enter_context(start_side(tmp_path, name, found, timeout_s)))
            return started

        yield start_sides


def test_each_has_its_own_environment(start, tmp_path, monkeypatch):
    """Both are there at the same time, and each is asked for bursts; in the folder of a project that has a ``types.py``."""
    (tmp_path / "types.py").write_text("raise SystemExit('the types of a project')")
    monkeypatch.chdir(tmp_path)
    now, baseline = map(ready, start(now={}, baseline=OTHERWISE))
    for side in (now, baseline, now):
        assert side.burst(1, time.perf_counter_ns) > 0
    assert (now.contract, now.consumed, baseline.consumed) == ("latency", True, True)


@nightly
def test_results_are_compared(start):
    """A flag of XLA changes them, and the environment named it; they leave no file behind, nor do larger ones."""
    flags = {"XLA_FLAGS": "--xla_cpu_enable_fast_math=true"}
    asked = [sys.executable, "-m", "jaxgate.processes.jax_query", "defaults"]
    options = json.loads(run_child(asked, variables=os.environ | flags).stdout)["compile_options"]
    now, baseline = map(ready, start(now=flags | {"compile_options": options}, baseline={}))
    assert agree(now, baseline, Closeness(1e-5, 1e-5)) is False
    assert agree(now, now, Closeness(1e-5, 1e-5)) is True
    (given,) = baseline.results()
    assert given[0, 0] == 2
    np.testing.assert_allclose(given[1:], np.tanh(np.ones((7, 8))), rtol=1e-5)
    assert [side.results(most_bytes=8 * 8 * 4 - 1) for side in (now, baseline)] == [None, None]
    assert list(now.process.complaints.parent.glob("now.npz")) == []
    assert now.burst(1, time.perf_counter_ns) > 0


def test_one_that_came_out_otherwise_is_none(start):
    """What set it is not known here: a conftest, a file, the system. Nor may it run on another device."""
    (side,) = start(now=OTHERWISE, variables=dict(os.environ))
    with pytest.raises(WorkerError, match=r"^NCCL_PROTO was LL, a process of its own has absent$"):
        ready(side)
    (side,) = start(now={}, platform="gpu")
    with pytest.raises(WorkerError, match=r"^a process of its own would run on cpu$"):
        ready(side)


def test_none_is_had_where_the_defaults_are_not_known(start):
    """It does not look for them: who starts it could not find them either, and the environments were read without."""
    (side,) = start(now={}, defaults=None)
    with pytest.raises(WorkerError, match=r"^JAX's defaults are not known, "):
        ready(side)


def test_one_that_ended_is_none(start):
    for side in start(now={}, timeout_s=0.01):
        with pytest.raises(WorkerError, match=r"^a process of its own ended: exit status -9$"):
            ready(side)
    (process,) = start(now={})
    side = ready(process)
    process.live.kill()
    process.live.wait()
    with pytest.raises(WorkerError, match="ended: exit status -9"):
        side.burst(1, time.perf_counter_ns)


def test_xla_says_why_it_ended_one(start):
    """A flag that XLA does not know, or knows no longer, ends the process: it is named, without when and where."""
    (side,) = start(now={"XLA_FLAGS": "--xla_nosuch=/some/where"})
    with pytest.raises(WorkerError) as caught:
        ready(side)
    what = r"a process of its own ended: exit status -?\d+: Unknown flags? in XLA_FLAGS: --xla_nosuch=path:\w{8}"
    assert re.fullmatch(what, str(caught.value))


HEAD = "1122 23:10:27.294104   27641 file.cc:234] "
"""When and where, as XLA writes it."""


@pytest.mark.parametrize(
    ("complaints", "words"),
    [
        pytest.param("", "", id="none"),
        pytest.param(f"W{HEAD}slow\n\nValueError: no\n\n", ": ValueError: no", id="the-last"),
        pytest.param(f"W{HEAD}slow\n", ": slow", id="a-warning"),
        pytest.param(
            f"F{HEAD}no flag\n*** Check failure stack trace: ***\n    @     0x7f main\n", ": no flag", id="a-stack"
        ),
        pytest.param("Killed by a check\n*** Begin ***\n    @     0x7f\n", ": Killed by a check", id="a-stack-alone"),
        pytest.param(f"F{HEAD}no flag\nW{HEAD}goodbye\n", ": no flag", id="the-fatal-one"),
        pytest.param("x" * 1_000, f": {'x' * 200} …", id="a-long-one"),
        pytest.param("x\n" * 6_000_000, "", id="a-flood"),
        pytest.param("\udcff\n", ": ���", id="no-text"),
    ],
)
def test_the_last_useful_line_is_shown(tmp_path, complaints, words):
    """One line of bounded length, whatever the process wrote."""
    path = tmp_path / "now.stderr"
    path.write_bytes(complaints.encode(errors="surrogatepass"))
    with (
        subprocess.Popen(["false"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as live,
        pytest.raises(WorkerError) as caught,
    ):
        LiveWorker(live, path).answer()
    assert str(caught.value) == f"a process of its own ended: exit status 1{words}"
