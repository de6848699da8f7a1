"""A case at other sizes: what is read of each, what is compiled, and what is refused."""

from dataclasses import replace
from functools import wraps

import jax
import jax.numpy as jnp
import pytest
from support.factories import baseline
from support.measured import Store

from jaxgate import Alternative, Computation, Growth
from jaxgate.ext.growth import probe
from jaxgate.ext.growth.model import COMPILED, Law
from jaxgate.model.measurement import InvalidCaseError
from jaxgate.observe.arguments.lockstep import Lockstep
from jaxgate.observe.errors import NotOnTargetError
from jaxgate.observe.measure import observe
from jaxgate.observe.tools import Tools


def rows(n):
    """A matrix that is not there."""
    return (jax.ShapeDtypeStruct((n, 8), jnp.float32),)


def square(x):
    """As many rows and columns as it has rows."""
    return jnp.tanh(x @ x.T)


def seen(at=rows, store=None, accepted=None, **options):
    """What a small case has at three sizes; ``accepted`` is what its baseline has there."""
    case = Computation(subject=square, args=(jnp.ones((2, 8)),), grow=Growth(at, n=(4, 8, 16)))
    known = None if accepted is None else baseline(growth=accepted)
    return observe(
        lambda: case,
        Tools(store=Store() if store is None else store, sampling=False, accepted=lambda _: known, **options),
    ).measurement


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
    store = Store()
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
    grown = seen(lambda n: Alternative(function=lambda x: sum([x] * n), args=rows(8))).growth["n"]
    assert grown.law("stablehlo_ops") is Law.LINEAR


@pytest.mark.parametrize("at", [lambda n: n, lambda other: rows(other)], ids=["no arguments", "another name"])
def test_what_makes_no_arguments_is_invalid(at):
    with pytest.raises(InvalidCaseError, match="making the arguments at n = 4: TypeError"):
        seen(at)


class Others(Lockstep):
    """Further processes, which remember nothing of other sizes."""

    def anyone(self, what, yes):
        """They ask for what they do not remember."""
        return yes or "looking at n" in what


def test_several_processes_compile_together_what_one_of_them_does_not_remember(monkeypatch):
    """Compilers of GPUs share what they try out, and wait for each other."""
    store = Store()
    first = seen(store=store).growth["n"]
    assert compiled_sizes(monkeypatch, store=store) == (first, [])
    assert compiled_sizes(monkeypatch, store=store, together=Others()) == (first, [4, 8, 16])


def test_what_a_target_cannot_compile_at_a_size_is_not_known_there(monkeypatch):
    """What tracing decides is; a baseline of that is no reason not to try again."""
    compile_program = probe.compile_program

    def refusing(lowered, **options):
        if lowered.call[0][0].shape[0] == 8:
            raise NotOnTargetError("the compiler finds no tiles")
        return compile_program(lowered, **options)

    monkeypatch.setattr(probe, "compile_program", refusing)
    now = seen()
    assert not set(COMPILED) & set(now.growth["n"].facts)
    assert now.growth["n"].facts["matmul_flops"] == (256, 1024, 4096)
    assert now.unknown["temp_bytes over n"] == "at 8 the compiler finds no tiles"
    assert seen(accepted=now.growth).unknown == now.unknown


def test_where_two_sizes_cross_the_same_is_read_once(monkeypatch):
    """The same function of the same arguments; one that a decorator makes of it is another one."""
    reads = []
    monkeypatch.setattr(
        probe, "_read", lambda lowered, lines, own=probe._read: reads.append(lowered) or own(lowered, lines)
    )

    def crossing(at):
        case = Computation(subject=square, args=(jnp.ones((2, 8)),), grow=Growth(at, n=(4, 8, 16), m=(2, 4, 8)))
        reads.clear()
        return observe(lambda: case, Tools(store=Store(), sampling=False)).measurement.growth

    assert [*crossing(lambda n=8, m=4: rows(n * m // 4))] == ["n", "m"]
    assert len(reads) == 3

    def slower(n=8, m=4):
        @wraps(square)
        def checked(x):
            for number in range(m):
                abs(number)
            return square(x)

        return Alternative(function=checked, args=rows(n))

    grown = crossing(slower)["m"]
    assert len(reads) == 6
    assert [calls - grown.facts["trace_calls"][0] for calls in grown.facts["trace_calls"]] == [0, 2, 6]


def test_one_program_that_ever_more_python_writes():
    """Sizes may have their program in common and not what Python does to trace it: each is counted."""

    def at(n):
        def checked(x):
            for number in range(n * n):
                abs(number)
            return square(x)

        return Alternative(function=checked, args=rows(4))

    (grown,) = seen(at).growth.values()
    assert len(set(grown.programs)) == 1
    assert grown.facts["stablehlo_ops"] == grown.facts["stablehlo_ops"][:1] * 3
    assert [calls - grown.facts["trace_calls"][0] for calls in grown.facts["trace_calls"]] == [0, 48, 240]


def test_no_program_is_compiled_twice(monkeypatch):
    """Neither the case's own nor one that two sizes have in common; all that is read of them is the same."""
    alone = seen(at=lambda n: rows(n + 1)).growth["n"]  # 5, 9 and 17 rows: none is the case's own
    case = Computation(
        subject=square,
        args=(jnp.ones((5, 8)),),
        grow=Growth(lambda n=4, m=4: rows(max(n, m) + 1), n=(4, 8, 16), m=(4, 8, 16)),
    )
    compiled, compile_program = [], probe.compile_program
    monkeypatch.setattr(probe, "compile_program", lambda *a, **k: compiled.append(a) or compile_program(*a, **k))
    found = observe(lambda: case, Tools(store=Store(), sampling=False)).measurement.growth
    assert len(compiled) == 2
    assert found["n"] == found["m"]
    assert found["n"].facts == alone.facts
    assert found["n"].programs == alone.programs


@pytest.mark.parametrize(
    ("label", "nbytes"),
    [("stablehlo.add 8x64xf32", 2048), ("stablehlo.add f32", 4), ("stablehlo.add 3xi1", 0), ("stablehlo.while", 0)],
)
def test_bytes_of_an_operation(label, nbytes):
    assert probe.bytes_of(label) == nbytes


def test_bytes_of_a_collective():
    assert probe.sent_bytes("all-gather float32[8,16] over 'd'") == 512
    assert probe.sent_bytes("all-reduce bfloat16[] over 'd'") == 2
