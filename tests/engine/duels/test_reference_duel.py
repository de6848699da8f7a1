"""The duel with a reference: when it is run, what it is fed with, and what is remembered of it."""

from dataclasses import replace
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import pytest
from support.fakes import duel

from jaxgate.engine.duels.duel_processes import DuelBudget
from jaxgate.engine.duels.reference_duel import ReferenceDuels
from jaxgate.engine.instruments import Instruments
from jaxgate.keep.cache import DuelCache, ReferenceCache
from jaxgate.model.claim import claim
from jaxgate.model.computation import Computation
from jaxgate.model.duel import ReferenceDuel
from jaxgate.observe.duel.sides import export_opponents, opponents_fingerprint
from jaxgate.observe.measure import observe
from jaxgate.observe.program.export import NotReplayableError
from jaxgate.observe.tools import Tools
from jaxgate.observe.trace.stages import devices_of

CLAIM = claim("run_ns <= 0.8 * reference")
SHARED = "virtual CPU devices share their cores, so no clock judges them"


def step(state, batch):
    """A training step that adds a batch to its state."""
    return state + batch, jnp.sum(state)


def watch(**changes):
    """A donated step against the same step that copies."""
    values = {
        "subject": jax.jit(step, donate_argnums=0),
        "reference": jax.jit(step),
        "args": (jnp.zeros(4), jnp.ones(4)),
        **changes,
    }
    return observe(lambda: Computation(**values), Tools(store=ReferenceCache(None)))


@pytest.fixture
def duels(tmp_path):
    """Duels that find 0.7, each noted with its sides; returns what runs them and the notes."""
    notes = []

    def run_duel(subject, reference, *, settled, **options):
        notes.append((subject, reference, settled, options))
        return duel(0.7)

    return runs(tmp_path, run_reference_duel=run_duel), notes


def runs(folder, **instruments):
    """Duels without a budget, remembered below a folder."""
    memory = DuelCache(ReferenceCache(folder / "cache"))
    return ReferenceDuels(DuelBudget(None), memory, Instruments(**instruments))


# What duels


def test_both_sides_step_alike():
    """The reference donates nothing, and is threaded as the subject is: its first output feeds its first argument."""
    subject, reference = export_opponents(watch())
    assert (subject.record.donated, reference.record.donated) == ((0,), ())
    assert subject.record.feeds == reference.record.feeds == (0, None)


def test_neither_is_threaded_where_one_cannot_be():
    """A state that only one side can thread would make it do other work than the other."""
    observed = replace(watch(), reference_feeds=None)
    assert [program.record.feeds for program in export_opponents(observed)] == [None, None]


def test_the_programs_are_those_of_the_case(duels):
    """The subject is the first side, the reference the other, with the case's arguments; the claims say when to stop."""
    timing, notes = duels
    observed = watch(subject=lambda x: x * 3, reference=lambda x: x + x + x, args=(jnp.arange(3.0),))
    told = timing.time([CLAIM], observed, lambda _: None)
    ((subject, reference, settled, options),) = notes
    assert "multiply" in subject.function.as_text()
    assert "multiply" not in reference.function.as_text()
    assert [leaf.tolist() for leaf in reference.feeder.fresh()[0]] == [[0.0, 1.0, 2.0]]
    assert options["platform"] == "cpu"
    assert (settled(duel(0.7)), settled(duel(0.7, 10))) == (True, False)
    (again,) = (repeat.duel for repeat in told.repeats)
    (match,) = again.matches
    assert (again.claim, match.now.record.stored, match.baseline.record.stored) == (CLAIM, True, True)
    assert match.now.content != match.baseline.content


def test_the_duel_keeps_the_contract_of_its_case(duels):
    """Latency is claimed of latency: both sides, and the fresh processes, wait for each call."""
    timing, notes = duels
    told = timing.time([CLAIM], watch(contract="latency"), lambda _: None)
    assert [side.contract for side in notes[0][:2]] == ["latency"] * 2
    assert told.repeats[0].duel.contract == "latency"


def test_one_claim_written_twice_is_one(duels):
    """It is repeated once, whatever the words beside it."""
    told = duels[0].time(
        [CLAIM, replace(CLAIM, why="again"), claim("run_ns >= 0.1 * reference")], watch(), lambda _: None
    )
    assert [str(again.duel.claim) for again in told.repeats] == ["run_ns ≤ 0.8 × reference", "run_ns ≥ 0.1 × reference"]


@pytest.mark.parametrize(
    ("claims", "changes"), [([], {}), ([claim("temp_bytes <= 2 * reference")], {}), ([CLAIM], {"reference": None})]
)
def test_nothing_is_timed_that_decides_nothing(duels, claims, changes):
    timing, notes = duels
    assert timing.time(claims, watch(**changes), lambda _: None).by == ReferenceDuel()
    assert notes == []


def test_an_observation_without_a_reference_has_no_opponent():
    with pytest.raises(NotReplayableError, match="no reference"):
        export_opponents(watch(reference=None))


# Where no clock judges


def test_virtual_devices_are_not_timed(duels):
    """A subject on several CPU devices: undecided before anything is compiled."""
    timing, notes = duels
    observed = watch()
    hardware = replace(observed.measurement.hardware, devices=8)
    observed = replace(observed, measurement=replace(observed.measurement, hardware=hardware))
    assert timing.time([CLAIM], observed, lambda _: None).by == ReferenceDuel(why_not=SHARED)
    assert notes == []


def test_nor_is_a_reference_on_virtual_devices(tmp_path):
    """The subject runs on one, its reference on two."""
    sides = iter([compiled_for(1), compiled_for(2)])
    told = runs(tmp_path, run_reference_duel=None, prepare=lambda *_: next(sides)).time([CLAIM], watch(), print)
    assert told.by == ReferenceDuel(why_not=SHARED)


def compiled_for(devices):
    """A side whose executable lies on so many devices."""
    sharding = SimpleNamespace(device_set=[SimpleNamespace(id=number) for number in range(devices)])
    trees = {"in_tree": jax.tree.structure([sharding]), "out_tree": jax.tree.structure([])}
    return SimpleNamespace(function=SimpleNamespace(input_shardings=[sharding], output_shardings=[], **trees))


def test_devices_are_those_of_the_executable(duels):
    timing, notes = duels
    timing.time([CLAIM], watch(), lambda _: None)
    assert [len(devices_of(side.function)) for side in notes[0][:2]] == [1, 1]


# Memory


def test_the_hash_covers_what_a_duel_depends_on():
    """Either program, its donation, its threading, the inputs, environment and hardware; nothing else moves it."""
    observed = watch()
    now = observed.measurement
    base = opponents_fingerprint(observed)
    assert opponents_fingerprint(watch()) == base
    others = [
        watch(subject=jax.jit(step)),
        watch(subject=jax.jit(lambda s, b: (s + b, jnp.sum(s + 0)), donate_argnums=0)),
        watch(reference=jax.jit(lambda s, b: (s + b, jnp.sum(s + 0)))),
        watch(args=(jnp.zeros(4), 2 * jnp.ones(4))),
        watch(contract="latency"),
        replace(observed, feeds=None),
        replace(observed, reference_feeds=None),
        replace(observed, lowered=replace(observed.lowered, options="xla_flag=1")),
        replace(observed, measurement=replace(now, environment={**now.environment, "jaxlib": "0"})),
        replace(observed, measurement=replace(now, hardware=replace(now.hardware, device_kind="other"))),
    ]
    hashes = [opponents_fingerprint(other) for other in others]
    assert len({base, *hashes}) == 1 + len(others)


def test_a_damaged_memory_is_none(duels, tmp_path):
    """Other numbers, times that mean nothing, sides of different length: a new duel, never a verdict."""
    timing, notes = duels
    key = opponents_fingerprint(watch())
    entries = ReferenceCache(tmp_path / "cache")
    good = duel(0.5)
    for damaged in (
        {"facts": {}},
        {"now_ns": "many"},
        duel_numbers(replace(good, traces=1)),
        duel_numbers(replace(good, now_ns=((-1,),) * 20)),
        duel_numbers(replace(good, now_ns=good.now_ns[:10])),
        duel_numbers(replace(good, now_ns=(), baseline_ns=())),
    ):
        entries.save(key, damaged, [])
        assert not timing.time([CLAIM], watch(), lambda _: None).by.remembered
    assert len(notes) == 6
    assert timing.time([CLAIM], watch(), lambda _: None).by == ReferenceDuel(duel=duel(0.7), remembered=True)


def duel_numbers(told):
    """A duel as it lies on disk."""
    return {
        "now_ns": told.now_ns,
        "baseline_ns": told.baseline_ns,
        "calls_per_burst": 1,
        "seed": 0,
        "traces": told.traces,
        "contract": "latency",
    }


def test_a_duel_comes_back_as_it_was(tmp_path):
    """All of it; nothing under another key, and nothing without a folder."""
    memory = DuelCache(ReferenceCache(tmp_path))
    memory.save("a", duel(0.7))
    assert (memory.load("a"), memory.load("b")) == (duel(0.7), None)
    nowhere = DuelCache(ReferenceCache(None))
    nowhere.save("a", duel(0.7))
    assert nowhere.load("a") is None
