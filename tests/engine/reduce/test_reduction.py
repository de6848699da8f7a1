"""Programs made smaller while they show it: with oracles that look at the text, and once with the compiler."""

import itertools
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.stablehlo import readable, text_of

from jaxgate.ext.repro import modules
from jaxgate.ext.repro.compile_server import NoAnswerError
from jaxgate.ext.repro.flat import FlatProgram, unmarked
from jaxgate.ext.repro.model import AnonymousProgram
from jaxgate.ext.repro.oracles import Sides, find_worse, wrong_result
from jaxgate.ext.repro.reduction import reduce_pair, reduce_programs, size
from jaxgate.model.outcome import UsageError


def program(function, *args):
    """A program as a file would hold it."""
    text = unmarked(text_of(function, *args))
    inputs, outputs = modules.array_types(modules.parse(text))
    return AnonymousProgram(
        payload=modules.portable(text),
        inputs=tuple(inputs),
        places=tuple(range(len(inputs))),
        outputs=tuple(outputs),
        donated=(),
        options={},
        devices=1,
        mesh=None,
        convention=10,
        seeded=0,
    )


def last(start, oracle, **changes):
    """The smallest programs."""
    *_, step = reduce_programs(start, lambda programs: (oracle(programs), ""), budget_s=100, **changes)
    return step.found


def long(x, y):
    """A product among much else."""
    for _ in range(4):
        y = jnp.sin(y) + jnp.cos(y) * y.mean()
    x = jnp.tanh(x) @ jnp.exp(x.T)
    for _ in range(4):
        y = jnp.sin(y) + x.sum()
    return x, y, y.sum()


X, Y = jnp.ones((16, 8)), jnp.ones(32)
ASKED = {"least": None, "budget_s": 10, "progress": lambda _: None}


def test_one_operation_is_left_of_many():
    """All else is given or gone, and its arrays are as small as they can be."""
    (found,) = last((text_of(long, X, Y),), lambda programs: "dot_general" in programs[0])
    assert FlatProgram(found).count == 1
    assert FlatProgram(found).elements == 3


def test_both_sides_lose_the_same():
    """What differs is what is left: here a barrier, behind which one side computes again."""

    def plain(x, y):
        a = jnp.sin(x * 2)
        return jnp.exp(a).sum() + y.sum(), jnp.cos(a)

    def held(x, y):
        a = jnp.sin(x * 2)
        return jnp.exp(jax.lax.optimization_barrier(a)).sum() + y.sum(), jnp.cos(a)

    start = (text_of(plain, X, Y), text_of(held, X, Y))
    theirs, ours = last(start, lambda programs: "barrier" in programs[1] and "exponential" in programs[0])
    assert "barrier" not in theirs
    assert FlatProgram(theirs).seats == FlatProgram(ours).seats
    assert FlatProgram(theirs).count == 1
    assert FlatProgram(ours).count == 2


def test_a_budget_that_is_used_up_ends_it():
    clock = itertools.count()
    steps = list(
        reduce_programs((text_of(long, X, Y),), lambda _: (True, ""), budget_s=3, clock=lambda: float(next(clock)))
    )
    assert len(steps) <= 3


def test_a_program_that_ends_its_compiler_shows_nothing():
    def oracle(_):
        raise NoAnswerError("a process of its own ended: exit status -6")

    assert list(reduce_programs((text_of(long, X, Y),), oracle, budget_s=60)) == []


class Facts:
    """Answers as a compiler would that needs so many bytes for each operation."""

    def __init__(self, each):
        self.each = each

    def facts(self, programs):
        return [
            {"temp_bytes": self.each * readable(one.payload).count("sine"), "xla_flops": 7.0, "xla_bytes": 7.0}
            | {"aliased_bytes": 0.0, "output_bytes": 0.0, "argument_bytes": 0.0, "transcendentals": 0.0}
            for one in programs
        ]


def sides(*servers):
    """Both sides of a program that has no options, and may reuse nothing."""
    whole = program(jnp.sin, X)
    return Sides(servers=servers, wholes=(whole, whole))


def test_the_worst_fact_is_found_and_kept():
    """By the root of its ratio, and by more than a few bytes."""
    start = (text_of(long, X, Y),)
    oracle = find_worse(sides(Facts(1_000), Facts(9_000)), start)
    (found,) = last(start, lambda programs: oracle(programs)[0])
    assert FlatProgram(found).count == 1
    assert "sine" in found
    shown = "temp_bytes 1,000 on the baseline's side, 9,000 on today's (at least 3.00 x)"
    assert oracle((found,)) == (True, shown)


@pytest.mark.parametrize(("theirs", "ours"), [(1_000, 1_020), (2_000, 1_000), (10, 100)])
def test_what_is_no_worse_is_not_reduced(theirs, ours):
    """Nor what differs by a few bytes, however large the ratio."""
    assert find_worse(sides(Facts(theirs), Facts(ours)), (text_of(jnp.sin, X),)) is None


def padded(x, y):
    """A product that XLA gets wrong on CPUs, among what has nothing to do with it."""
    for _ in range(2):
        y = jnp.sin(y) + jnp.cumsum(y) * 0.1
    z = (jnp.tanh(x) @ jnp.ones((128, 128))).sum()
    return z + y.sum(), jnp.cos(y)


def test_a_wrong_result_is_reduced_to_what_is_wrong():
    """The miscompile of CPUs: a product with a matrix of ones, summed up. It is that fault, and not a sum near zero."""
    given = jnp.linspace(0, 1, 32 * 128).reshape(32, 128)
    whole = program(padded, given, jnp.ones(64))
    lines = []
    found = reduce_pair(whole, whole, python=None, about="results", least=None, budget_s=600, progress=lines.append)
    assert found.after <= 6 < found.before
    text = readable(found.now.payload)
    for word, there in (
        ("stablehlo.dot_general", True),
        ("stablehlo.reduce", True),
        ("cumsum", False),
        ("sine", False),
    ):
        assert (word in text) is there
    assert found.baseline.options == {"xla_cpu_experimental_ynn_fusion_type": ""}
    assert found.now.options == {}
    assert "is right; float error explains" in found.shows
    assert found.code.startswith("def f(")
    assert "dot_general" in found.code
    assert len(lines) > 2


X_LONG = jnp.linspace(0, 1, 4096)


@pytest.mark.parametrize(
    ("function", "about", "message"),
    [
        (jnp.sin, "results", r"nothing to reduce: results of both sides agree .*--python"),
        (jnp.sin, "", "agree as far as this can see; the time of one program is not compared"),
        (jnp.sin, "time", "--about time needs two programs"),  # two processes would be two noises
        # It differs by all of itself between two orders of adding, and float error explains that.
        (lambda x: (x - x.mean()).sum(), "results", "agree"),
    ],
    ids=["results", "whatever is worst", "time of one program", "a sum near zero"],
)
def test_programs_that_agree_are_refused(function, about, message):
    """In one line that says what was looked at, and what else there is."""
    same = program(function, X_LONG)
    with pytest.raises(UsageError, match=message):
        reduce_pair(same, same, python=None, about=about, **ASKED)


def test_what_cannot_be_compiled_is_refused(tmp_path):
    """Without an interpreter that has jax, and on several devices."""
    same = program(jnp.sin, X)
    with pytest.raises(UsageError, match=r"no-python does not start with jax: .*--python ENVIRONMENT/bin/python"):
        reduce_pair(same, same, python=tmp_path / "no-python", about="", **ASKED)
    with pytest.raises(UsageError, match="programs for several devices are not reduced"):
        reduce_pair(replace(same, devices=8), same, python=None, about="", **ASKED)


def test_size_is_operations_first():
    small, large = text_of(jnp.sin, jnp.ones(2)), text_of(jnp.sin, jnp.ones(9))
    assert size((small,)) < size((large,)) < size((text_of(lambda x: jnp.sin(x) + 1, jnp.ones(2)),))


def test_the_oracle_of_results_needs_both_sets_of_inputs():
    class Server:
        platform = "cpu"

        def __init__(self, off):
            self.off = list(off)

        def results(self, program, inputs):
            return [np.sin(one) + (self.off.pop(0) if self.off else 0) for one in inputs]

    start = (text_of(jnp.sin, jnp.ones(4)),)
    assert wrong_result(sides(Server([]), Server([5, 5])))(start)[0]
    assert not wrong_result(sides(Server([]), Server([5, 0])))(start)[0]
