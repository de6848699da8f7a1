"""Programs of plain Python beside those of its baseline: which are duelled, with what, and why not."""

from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.factories import SAMPLES, TEST, baseline

from jaxgate.engine.duels.launched_duel import differs_here, match_all, match_programs, recompiled
from jaxgate.engine.record import Candidate
from jaxgate.model.baseline import StoredBaseline
from jaxgate.model.computation import Computation
from jaxgate.model.program import StoredProgram
from jaxgate.observe.duel.duel import agree, prepare
from jaxgate.observe.duel.sides import prepare_side
from jaxgate.observe.execute.correctness import Closeness
from jaxgate.observe.measure import observe
from jaxgate.observe.tools import Tools

W, X = jnp.eye(16), jnp.ones((4, 16))


def loop(activate=jnp.tanh, *, steps=3, after=lambda w: w * 2.0, name="step", donate=False, eager=True):
    """A case: a loop of plain Python around a jitted step, and an eager operation."""

    def step(w, x):
        return w - 0.1 * w, activate(x @ w).sum()

    step.__name__ = step.__qualname__ = name
    jitted = jax.jit(step, donate_argnums=(0,) if donate else ())

    def train(w, x):
        for _ in range(steps):
            w, loss = jitted(w, x)
        return after(w), loss

    whole = train if eager else jax.jit(step)
    build = lambda: Computation(subject=whole, args=(W, X), eager=eager)  # noqa: E731 - as a project writes it
    found = observe(build, Tools(store={}, sampling=False))
    return replace(found, measurement=replace(found.measurement, samples=SAMPLES))


def recorded(observed):
    """Its baseline, and what reads the programs of that."""
    candidate = Candidate.of(observed, None, case="a/loop", test=TEST, provenance=baseline().provenance)

    def load(_structure, about):
        return StoredProgram(record=about, content=candidate.contents[about.digest] if about.stored else b"")

    return candidate.baseline, load


@cache
def unchanged():
    """The loop as it was, observed once."""
    return loop()


def matched(today, before=None, *, equal_ones=False):
    """Today's programs beside those of before; of the loop as it was where nothing is given."""
    return match_programs(today, *recorded(before or unchanged()), equal_ones=equal_ones)


def test_equal_programs_are_left_out():
    assert matched(loop()).matches == ()
    everything = matched(loop(), equal_ones=True)
    assert [one.calls for one in everything.matches] == [(3, 3), (1, 1)]
    assert [one.name for one in everything.before] == ["step", "multiply"]


def test_a_changed_program_is_fed_with_what_it_was_called_with():
    """Both sides take the arguments of its first call of today."""
    found = matched(loop(jnp.sin))
    (match,) = found.matches
    assert (match.calls, found.why_not) == ((3, 3), "")
    assert [np.asarray(leaf).shape for leaf in match.leaves] == [(16, 16), (4, 16)]
    sides = [prepare_side(found.matches, side, "throughput") for side in ("now", "baseline")]
    assert np.allclose(sides[0].results()[1], np.sin(np.ones(64)).sum())
    assert np.allclose(sides[1].results()[1], np.tanh(np.ones(64)).sum())
    assert not agree(*sides, Closeness(1e-3, 1e-3))


def test_a_renamed_program_is_the_same():
    assert matched(loop(name="renamed")).matches == ()
    assert loop(name="renamed").measurement.fingerprints.program == unchanged().measurement.fingerprints.program


def test_more_launches_of_a_program_are_more_work():
    """A call of each side calls it as often as that side does."""
    found = matched(loop(steps=5))
    (match,) = found.matches
    assert match.calls == (5, 3)
    now, before = prepare(match.now, match.leaves), prepare(match.baseline, match.leaves)
    assert differs_here(match, now, before)
    assert not differs_here(replace(match, calls=(3, 3)), now, before)
    ticks = iter(range(1_000))
    sides = [prepare_side(found.matches, side, "throughput") for side in ("now", "baseline")]
    assert [side.burst(2, lambda: next(ticks)) for side in sides] == [1, 1]  # one burst each, of 10 calls and of 6


@pytest.mark.parametrize(
    ("today", "why"),
    [
        (loop(after=lambda w: jnp.clip(w * 2.0, 0, 1)), "clip is new"),
        (loop(after=lambda w: w), "multiply is gone"),
        (loop(after=lambda w: w[:8] * 2.0), "multiply takes other arguments"),
        (
            loop(lambda x: jax.pure_callback(np.tanh, jax.ShapeDtypeStruct(x.shape, x.dtype), x)),
            "step cannot be stored: jax.export refuses it",
        ),
    ],
    ids=["new", "gone", "arguments", "callback"],
)
def test_why_a_program_has_no_opponent(today, why):
    assert why in matched(today).why_not


def test_a_program_whose_baseline_has_no_content_has_no_opponent():
    before, load = recorded(unchanged())
    bare = replace(before, launched_programs=tuple(replace(one, program=None) for one in before.launched_programs))
    found = match_programs(loop(jnp.sin), bare, load, equal_ones=False)
    assert found.why_not == "step cannot be stored: its baseline has its facts only"


def test_donated_arguments_are_there_for_each_call():
    """Calls of one burst are made one by one, from copies."""
    before = loop(donate=True)
    found = matched(loop(jnp.sin, donate=True), before)
    side = prepare_side(found.matches, "now", "throughput")
    assert side.consumed
    ticks = iter(range(1_000))
    assert side.burst(1, lambda: next(ticks)) == 3  # a burst for each of the three calls
    assert side.burst(1, lambda: next(ticks)) == 3


def test_all_programs_are_paired_where_settings_changed():
    """A jitted function is the only one of its call."""
    assert [one.calls for one in match_all(loop(), *recorded(unchanged()))[0]] == [(3, 3), (1, 1)]
    jitted = loop(eager=False)
    ((only,), why_not) = match_all(jitted, *recorded(jitted))
    assert (only.calls, why_not) == ((1, 1), "")


def test_facts_of_the_baselines_programs_are_those_that_they_have_here():
    """Another compiler may make more of them; what was recorded is kept beside it."""
    before, load = recorded(unchanged())
    other = tuple(
        replace(one, facts={**one.facts, "xla_flops": 1, "temp_bytes": 1}) for one in before.launched_programs
    )
    old = replace(before, launched_programs=other, facts=replace(before.facts, xla_flops=4, temp_bytes=1))
    found = match_programs(loop(), old, load, equal_ones=True)
    contenders = [prepare(one.baseline, one.leaves) for one in found.matches]
    record = recompiled(StoredBaseline(baseline=old, path=None, borrowed=False), found, contenders)
    assert record.recorded == old.facts
    assert record.baseline.facts.xla_flops == unchanged().measurement.facts.xla_flops
    assert record.baseline.facts.temp_bytes == unchanged().measurement.facts.temp_bytes
    assert record.baseline.facts.matmul_flops == old.facts.matmul_flops
    assert [one.facts["xla_flops"] for one in record.baseline.launched_programs] == [
        one.facts["xla_flops"] for one in unchanged().measurement.launched_programs
    ]
