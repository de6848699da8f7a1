"""A case at other sizes: what is read of each, what is compiled, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import pytest

from jaxgate import Alternative, Computation, Growth
from jaxgate.ext.growth import probe
from jaxgate.ext.growth.model import Law
from jaxgate.model.measurement import InvalidCaseError
from jaxgate.observe.arguments.lockstep import Lockstep
from jaxgate.observe.measure import observe


class Memory:
    """Keeps what it is given."""

    def __init__(self):
        self.kept = {}

    def load(self, key):
        return self.kept.get(key)

    def save(self, key, facts, outputs):
        self.kept[key] = facts, outputs


def rows(n):
    """A matrix that is not there."""
    return (jax.ShapeDtypeStruct((n, 8), jnp.float32),)


def seen(at=rows, store=None, accepted=None, *, recording=False):
    """What a small case has at three sizes."""
    growth = Growth(at, n=(4, 8, 16))
    case = Computation(subject=lambda x: jnp.tanh(x @ x.T), args=(jnp.ones((2, 8)),), grow=growth)
    found = observe(
        lambda: case, store=store or Memory(), sampling=False, accepted=lambda _: accepted or {}, recording=recording
    )
    return found.measurement


def test_each_size_is_read():
    """Facts of tracing and of the compiler, and what makes them up; nothing of these sizes is called."""
    now = seen()
    (grown,) = now.growth.values()
    assert grown.sizes == (4, 8, 16)
    assert grown.facts["matmul_flops"] == (256, 1024, 4096)
    assert grown.facts["argument_bytes"] == (128, 256, 512)
    assert (grown.law("output_bytes"), grown.law("stablehlo_ops")) == (Law.QUADRATIC, Law.CONSTANT)
    assert grown.parts["bytes"]["stablehlo.tanh"] == (64, 256, 1024)
    assert grown.parts["arguments"] == {"x": (128, 256, 512)}
    assert now.facts.traces == 1


def test_a_program_that_was_compiled_here_is_not_compiled_again(monkeypatch):
    """What tracing decides is counted anew."""
    store = Memory()
    first = seen(store=store)
    monkeypatch.setattr(probe, "compile_program", lambda *_, **__: pytest.fail("compiled again"))
    assert seen(store=store).growth["n"].facts["temp_bytes"] == first.growth["n"].facts["temp_bytes"]


def compiled_sizes(monkeypatch, **more):
    """At which sizes something is compiled, and what is seen."""
    heard, compile_program = [], probe.compile_program

    def compiling(lowered, **options):
        heard.append(lowered.call[0][0].shape[0])
        return compile_program(lowered, **options)

    monkeypatch.setattr(probe, "compile_program", compiling)
    return seen(**more).growth["n"], heard


def test_what_its_baseline_holds_is_not_compiled_anywhere(monkeypatch):
    """The same program in the same surroundings: with nothing remembered, all facts and parts are those of the baseline."""
    first = seen().growth
    assert len(set(first["n"].programs)) == 3
    assert compiled_sizes(monkeypatch, accepted=first) == (first["n"], [])


def test_what_differs_from_its_baseline_is_compiled(monkeypatch):
    """Another program at one size, other surroundings, and all of it where a baseline is recorded."""
    first = seen().growth
    wider = compiled_sizes(monkeypatch, at=lambda n: rows(17 if n == 16 else n), accepted=first)
    assert (wider[1], wider[0].facts["argument_bytes"]) == ([17], (128, 256, 17 * 32))
    elsewhere = {"n": replace(first["n"], programs=("another", "machine's", "programs"))}
    assert compiled_sizes(monkeypatch, accepted=elsewhere)[1] == [4, 8, 16]
    assert compiled_sizes(monkeypatch, accepted=first, recording=True)[1] == [4, 8, 16]


def test_another_size_may_bring_another_function():
    """With its own arguments."""
    grown = seen(lambda n: Alternative(function=lambda x: sum([x] * n), args=rows(8))).growth["n"]
    assert grown.law("stablehlo_ops") is Law.LINEAR


@pytest.mark.parametrize("at", [lambda n: n, lambda other: rows(other)], ids=["no arguments", "another name"])
def test_what_makes_no_arguments_is_invalid(at):
    """With the size that it failed at."""
    with pytest.raises(InvalidCaseError, match="making the arguments at n = 4: TypeError"):
        seen(at)


def test_several_processes_are_refused():
    """Each would have to compile the same at the same time."""
    case = Computation(subject=jnp.tanh, args=rows(8), grow=Growth(rows, n=(4, 8, 16)))

    class Others(Lockstep):
        pass

    with pytest.raises(InvalidCaseError, match="leave grow= out of a run over several"):
        observe(lambda: replace(case), store=Memory(), together=Others(), sampling=False)


@pytest.mark.parametrize(
    ("label", "nbytes"),
    [("stablehlo.add 8x64xf32", 2048), ("stablehlo.add f32", 4), ("stablehlo.add 3xi1", 0), ("stablehlo.while", 0)],
)
def test_bytes_of_an_operation(label, nbytes):
    """By the type of its result."""
    assert probe.bytes_of(label) == nbytes


def test_bytes_of_a_collective():
    """Of all arrays that it sends."""
    assert probe.sent_bytes("all-gather float32[8,16] over 'd'") == 512
    assert probe.sent_bytes("all-reduce bfloat16[] over 'd'") == 2
