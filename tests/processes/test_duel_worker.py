"""The fresh process of a duel: one real child, and every way to end without an outcome."""

import subprocess
import sys
from dataclasses import replace
from statistics import median

import jax
import jax.numpy as jnp
import pytest

from jaxgate.keep.duel_handoff import Job, read_duels, read_job, write_job
from jaxgate.model.program import Match
from jaxgate.observe.duel.sides import to_files
from jaxgate.observe.machine.jax_settings import settings
from jaxgate.observe.program.export import NotReplayableError, export_program, split_call
from jaxgate.observe.trace.lowering import lower
from jaxgate.processes import duel_worker as cli


def step(times):
    """A donated step with a state, a random key and a weak scalar; larger ``times`` take longer."""

    def update(state, key, rate, *, batch):
        noise = jax.random.normal(key, state.shape, state.dtype)
        for _ in range(times):
            state = jnp.tanh(state + rate * (batch @ batch.T).mean().astype(state.dtype))
        return state + 0 * noise

    return jax.jit(update, donate_argnums=0)


@pytest.fixture
def job(tmp_path):
    """A folder with a tiny job: twelve rounds now, one in the baseline."""
    call = ((jnp.ones((64, 64), jnp.bfloat16), jax.random.key(0), 0.5), {"batch": jnp.ones((64, 32))})
    programs = []
    for times in (12, 1):
        lowered = lower(step(times), *call, role="subject", clock=lambda: 0)
        programs.append(export_program(lowered, call, (0, None, None, None), 0))
        leaves, kinds = to_files(split_call(lowered, call)[0])
    assert [program.record.why_not for program in programs] == ["", ""]
    about = {
        "kinds": [kinds],
        "platform": jax.default_backend(),
        "contract": "latency",
        "seed": 11,
        "settings": settings(),
    }
    write_job(tmp_path, Job(matches=[Match(now=programs[0], baseline=programs[1], leaves=leaves)], about=about))
    return tmp_path


SHORT = """
import runpy
from jaxgate.model.duel import DUEL_BURST_NS
DUEL_BURST_NS["cpu"] //= 20
runpy.run_module("jaxgate.processes.duel_worker", run_name="__main__", alter_sys=True)
"""
"""The worker as a command starts it; twelve times the work shows in short bursts, too."""


def test_a_child_runs_case_and_control(job):
    """All pairs of both duels, no early stop, nothing traced; the planted slow-down is in the times."""
    command = [sys.executable, "-W", "error", "-c", SHORT, str(job)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    duels = read_duels(job)
    assert list(duels) == ["case", "control"]
    for found in duels.values():
        assert (len(found.now_ns), len(found.baseline_ns), found.traces, found.seed) == (60, 60, 0, 11)
        assert found.contract == "latency"
    assert median(duels["case"].logratios) > 0  # twelve rounds against one


def test_a_program_that_cannot_be_run_leaves_no_duels(job):
    """The last line of the child's complaint is the reason."""
    whole = read_job(job)
    (match,) = whole.matches
    damaged = replace(match, baseline=replace(match.baseline, content=match.baseline.content[:-1]))
    write_job(job, replace(whole, matches=[damaged]))
    with pytest.raises(NotReplayableError, match=r"^its file is damaged: the content is not what the baseline says$"):
        cli.main(job)
    assert not (job / "duels.json").exists()


def test_a_failing_control_leaves_no_duels(job):
    """Half an outcome is none: the case was timed, its control was not."""
    seen = []

    def run_duel(*sides, **options):
        seen.append(options["max_pairs"])
        if len(seen) == 2:
            raise RuntimeError("device lost")

    with pytest.raises(RuntimeError, match="device lost"):
        cli.main(job, prepare=lambda *_: object(), run_duel=run_duel)
    assert seen == [60, 60]
    assert not (job / "duels.json").exists()


def test_the_control_is_a_second_copy_of_the_baseline(job):
    """Case: now against baseline; control: the baseline's program, compiled apart, against the baseline."""
    programs = {}
    duels = []

    def prepare(program, leaves, contract):
        assert contract == "latency"
        side = object()
        programs[id(side)] = (program, side)
        return side

    def run_duel(side, baseline, *, settled, **options):
        assert not settled(None)
        duels.append((side, baseline, options))
        return read_duels(job)["case"]

    (job / "duels.json").write_text('{"case": {"now_ns": [], "baseline_ns": [], "calls_per_burst": 1, "seed": 0}}')
    cli.main(job, prepare=prepare, run_duel=run_duel)
    (now, first, options), (second, other, same_options) = duels
    (whole,) = read_job(job).matches
    assert first is other is not second
    assert [programs[id(side.parts[0][0])][0] for side in (now, first, second)] == [
        whole.now,
        whole.baseline,
        whole.baseline,
    ]
    assert {name: options[name] for name in ("seed", "max_pairs", "platform")} == {
        "seed": 11,
        "max_pairs": 60,
        "platform": jax.default_backend(),
    }
    assert options == same_options
