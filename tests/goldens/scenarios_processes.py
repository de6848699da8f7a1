"""Scenarios of several processes: workers, ranks, another revision, another environment."""

from __future__ import annotations

import socket

from goldens.scenarios_verdicts import EXP, MORE, WAVE
from goldens.transcript import ALL, Transcript, scenario
from support.git import git

SIZES = """
import os, signal
import jax, jax.numpy as jnp, pytest

def step(x):
    return jnp.tanh(x)

@pytest.mark.parametrize("size", [8, 16, 32])
def test_step(gate, size):
    if str(size) == os.environ.get("DIES"):
        os.kill(os.getpid(), signal.SIGKILL)
    gate(step, jnp.ones(size))
"""
LARGER = ("jnp.tanh(x)", "jnp.tanh(x) if x.size != 16 else (jnp.tanh(x), x * 2)")
JOB = """
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
from jaxgate import claim

X = np.arange(16, dtype=np.float32).reshape(8, 2)

def spread(*spec):
    mesh = Mesh(np.array(jax.devices()), ("x",))
    return mesh, jax.make_array_from_callback(X.shape, NamedSharding(mesh, P(*spec)), lambda index: X[index])

def test_local(gate):
    gate(lambda x: x + 1, jnp.ones(8))

def test_sum(gate):
    mesh, x = spread("x")
    total = jax.shard_map(lambda x: jax.lax.psum(x.sum(), "x"), mesh=mesh, in_specs=P("x"), out_specs=P())
    gate(jax.jit(total), x, exact_collectives=1)

def test_large(gate):
    gate(lambda x: x * 2, jnp.ones(8), claims=[claim("output_bytes <= 8")])
"""


@scenario
def workers(play: Transcript) -> None:
    """Green, red, and a case that a worker died of."""
    play.fix_clocks_of_processes()
    play.recorded(SIZES)
    play.run("-n2", "--perf-strict")
    play.edit(*LARGER)
    play.patch.setenv("DIES", "32")
    play.run("-n1", files=ALL)


@scenario
def workers_that_record(play: Transcript) -> None:
    """One line in the log."""
    play.fix_clocks_of_processes()
    play.write("test_model.py", SIZES)
    play.run("-n2", "--perf-update", "--perf-why=of two")
    play.tree("baselines")
    play.show("baselines/log/*.md")


@scenario
def ranks(play: Transcript) -> None:
    """Two processes judge in lock-step; rank 0 tells."""
    play.fix_clocks_of_processes()
    play.write("pyproject.toml", '[tool.pytest]\nperf_cpu_devices = "2"\n')
    play.write("test_job.py", JOB)
    with socket.create_server(("127.0.0.1", 0)) as server:
        where = f"127.0.0.1:{server.getsockname()[1]}"
    play.stands_for(where, "<coordinator>")
    play.run_alone(*((f"--perf-distributed={where},2,{rank}",) for rank in range(2)))
    play.show("perf-artifacts/results.json")
    play.show("perf-artifacts/summary.md")


@scenario
def against_a_revision(play: Transcript) -> None:
    """Worse than the last commit; not compared with what git does not know."""
    play.fix_clocks_of_processes()
    play.write("test_model.py", WAVE)
    play.write(".gitignore", "perf-artifacts/\n__pycache__/\n.benchmarks/\n")
    git(play.path, "init", "--quiet", "-b", "main")
    git(play.path, "add", ".")
    git(play.path, "commit", "--quiet", "-m", "one")
    play.run("--perf-against=no-such-revision")
    play.edit(EXP, MORE)
    play.write("test_new.py", WAVE)
    play.run("--perf-against=HEAD", "--perf-strict", files=ALL)
    play.tree("baselines")
    play.show("baselines/log/*.md")


@scenario
def against_an_environment(play: Transcript) -> None:
    """One launch of each: facts only."""
    play.fix_clocks_of_processes()
    play.write("test_model.py", WAVE.replace(EXP, "x @ x if jax.config.jax_enable_x64 else jnp.exp(-x)"))
    play.run("--perf-against=jax_enable_x64=1", "--benchmark-disable")
