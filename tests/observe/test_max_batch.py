"""The largest batch within a budget, against sizes worked out by hand; alternatives that are compiled and never run."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import pytest
from support.measured import measured
from support.targets import CompilerHere

from jaxgate.ext.targets.model import Target
from jaxgate.keep.cache import ReferenceCache
from jaxgate.model.computation import Alternative, Batch, MaxBatch
from jaxgate.model.measurement import InvalidCaseError
from jaxgate.observe.largest_batch import Fitting
from jaxgate.observe.tools import Tools

ROW = 1024  # floats: 4096 bytes
V5E = int(15.75 * 2**30)


def largest_batch(function, fits, *, role, store=None, progress=lambda _: None, target=None):
    """The largest batch, with nothing remembered unless a store is given."""
    tools = Tools(store=store or ReferenceCache(None), progress=progress, target=target)
    return Fitting(tools, "here").largest_batch(function, fits, role=role)


def twice(x):
    """One argument and one result, nothing between them: 8192 bytes for each row."""
    return x * 2


def rows(batch):
    """The argument for a batch, without data."""
    return (jax.ShapeDtypeStruct((batch, ROW), jnp.float32),)


def fits(budget_bytes, *, step=1, limit=4096):
    """The question for a budget."""
    return MaxBatch(budget_bytes=budget_bytes, args_at=rows, step=step, limit=limit)


@pytest.mark.parametrize(
    ("budget_bytes", "step", "largest"),
    [(81_920, 1, 10), (81_919, 1, 9), (90_111, 1, 10), (8192 * 1000, 8, 1000), (8192 * 1001, 8, 1000), (8192, 1, 1)],
)
def test_the_largest_batch_is_the_last_that_fits(budget_bytes, step, largest):
    """Argument and result of one row take 8,192 bytes; the answer is a multiple of the step, after few compiles."""
    compiled = []
    question = fits(budget_bytes, step=step)
    assert largest_batch(jax.jit(twice), question, role="subject", progress=compiled.append) == largest
    assert len(compiled) <= 6


def test_memory_that_does_not_grow_straight_is_found_too():
    """A square of the batch: the search halves the gap once it stops trusting a straight line."""

    def outer(x):
        return x[:, None, 0] * x[None, :, 0]  # batch x batch floats

    found = largest_batch(outer, fits(4096 * 300 + 4 * 300 * 300), role="subject")
    assert found == 300


def test_a_second_search_compiles_nothing(tmp_path, monkeypatch):
    """What a program needs is remembered by its fingerprint, options and surroundings."""
    store, question = ReferenceCache(tmp_path), fits(8192 * 777)
    assert largest_batch(jax.jit(twice), question, role="subject", store=store) == 777
    compiled = []
    compile_it = jax.stages.Lowered.compile
    monkeypatch.setattr(jax.stages.Lowered, "compile", lambda self, *a, **k: compiled.append(1) or compile_it(self))
    assert largest_batch(jax.jit(twice), question, role="subject", store=store) == 777
    assert not compiled
    assert largest_batch(jax.jit(lambda x: x + x[::-1]), question, role="subject", store=store) > 0
    assert compiled


def test_donation_is_another_program(tmp_path):
    """Buffers that are reused need less: nothing is remembered of one for the other."""
    store, question = ReferenceCache(tmp_path), fits(8192 * 100)
    found = [
        largest_batch(f, question, role="subject", store=store)
        for f in (jax.jit(twice), jax.jit(twice, donate_argnums=0))
    ]
    assert found == [100, 200]


def broken(x):
    """A function that no batch can be compiled of."""
    raise ValueError(f"no {x.shape[0]} rows")


@pytest.mark.parametrize(
    ("function", "budget_bytes", "words"),
    [
        (twice, 8191, "between a batch of 1 and one of 4,096, found 8,192 bytes at 1"),
        (twice, 8192 * 4096, "found 33,554,432 bytes at 4,096; change budget_bytes, step or limit"),
        (broken, 8192, "tracing the subject for a batch of 1: ValueError: no 1 rows"),
    ],
    ids=["nothing fits", "everything fits", "does not compile"],
)
def test_a_search_without_an_answer_is_refused(function, budget_bytes, words):
    """Not a batch of zero, nor the limit of the search; and the stage says at which batch."""
    with pytest.raises(InvalidCaseError, match=words):
        largest_batch(function, fits(budget_bytes), role="subject")


@dataclass
class Refusing(CompilerHere):
    """Refuses what takes more memory than a v5e has, with its sum, as libtpu does."""

    share: float = 1.0  # of peak_bytes that a program really takes
    state: int = 0  # bytes that it takes at any batch

    def __post_init__(self):
        super().__post_init__()
        self.rows = {True: [], False: []}

    def compile(self, lowered):
        """Take all arguments and as many results."""
        ((x,), _) = lowered.call
        needed = self.state + round(2 * x.size * 4 * self.share)
        self.rows[needed <= V5E].append(x.shape[0])
        if needed > V5E:
            raise RuntimeError(f"RESOURCE_EXHAUSTED: Used {needed / 2**30:.2f}G of 15.75G hbm.")
        return super().compile(lowered)


@pytest.mark.parametrize(("share", "state"), [(1.0, 0), (0.9, 2**32), (1.1, 2**32)])
def test_the_budget_may_be_all_memory_of_a_target(share, state):
    """Its compiler has the last word. What it refuses costs a second: the first batch that it takes is the last that is asked for."""
    compiler = Refusing(Target.parse("tpu:v5e:1x1"), share=share, state=state)
    question = fits(None, step=1024, limit=2**26)
    found = largest_batch(jax.jit(twice), question, role="subject", target=compiler)
    assert found == (V5E - state) / (8192 * share) // 1024 * 1024
    assert compiler.rows[True] == [found]
    assert found + 1024 in compiler.rows[False]
    assert len(compiler.rows[False]) <= 5


def test_a_refusal_is_remembered(tmp_path):
    """A second search asks no compiler, and says the same."""
    store, question = ReferenceCache(tmp_path), fits(None, step=1024, limit=2**22)
    compilers = [Refusing(Target.parse("tpu:v5e:1x1")) for _ in range(2)]
    found = [
        largest_batch(jax.jit(twice), question, role="subject", store=store, target=compiler) for compiler in compilers
    ]
    assert found[0] == found[1] == V5E // 8192
    assert compilers[1].rows == {True: [], False: []}


@pytest.mark.parametrize(("limit", "words"), [(1024, "at 1,024; change step or limit"), (2**26, "batch of 4,194,304")])
def test_a_device_that_holds_all_or_nothing_is_no_answer(limit, words):
    """As with a number: the case has to ask for other batches."""
    question = fits(None, step=min(limit, 2**22), limit=limit)
    with pytest.raises(InvalidCaseError, match=words) as caught:
        largest_batch(jax.jit(twice), question, role="subject", target=Refusing(Target.parse("tpu:v5e:1x1")))
    assert "to pass 16,911,433,728 bytes" in str(caught.value)


def test_here_the_budget_may_be_what_the_allocator_may_take(monkeypatch):
    says = {"bytes_in_use": 0, "peak_bytes_in_use": 0, "bytes_limit": 8192 * 10 + 1}
    monkeypatch.setattr("jaxgate.observe.largest_batch.device_statistics", lambda _: says)
    assert largest_batch(jax.jit(twice), fits(None), role="subject") == 10
    del says["bytes_limit"]
    with pytest.raises(InvalidCaseError, match="cpu:0 does not; give budget_bytes= a number"):
        largest_batch(jax.jit(twice), fits(None), role="subject")


def test_what_the_compiler_of_this_device_refuses_does_not_fit(monkeypatch):
    compile_it = jax.stages.Lowered.compile

    def refusing(self, *args, **kwargs):
        rows = self.in_avals[0][0].shape[0]
        if rows > 777:
            raise RuntimeError(f"RESOURCE_EXHAUSTED: Used {rows * 8192}B of {777 * 8192}B hbm.")
        return compile_it(self, *args, **kwargs)

    monkeypatch.setattr(jax.stages.Lowered, "compile", refusing)
    assert largest_batch(jax.jit(twice), fits(777 * 8192), role="subject") == 777


FOUR = jnp.ones((4, ROW))
of_twice = partial(measured, jax.jit(twice), FOUR, reference=lambda x: x + x * 1.0)


def test_subject_and_reference_have_a_largest_batch_each():
    """One that keeps a row or a copy besides fits fewer rows; the reference has a number of its own."""
    question = fits(8192 * 100)
    for kept, largest in ((lambda x: x[:1], 99), (lambda x: x + 1, 66)):
        found = measured(lambda x, kept=kept: (x * 2, kept(x)), FOUR, max_batch=question)
        assert found.facts.largest_batch == largest
    both = of_twice(max_batch=question)
    assert both.reference.facts.largest_batch == both.facts.largest_batch == 100


def test_a_rival_is_compiled_from_shapes_alone():
    """Its facts are those of its own size: arguments and results of eight rows."""
    found = of_twice(alternatives={"twice the rows": Alternative(function=jax.jit(twice), args=rows(8))})
    alternative = found.alternatives["twice the rows"]
    assert alternative.facts.argument_bytes == alternative.facts.output_bytes == 8 * 4096
    assert found.facts.argument_bytes == 4 * 4096
    assert alternative.facts.stablehlo_ops == found.facts.stablehlo_ops
    with pytest.raises(InvalidCaseError, match="tracing the alternative one"):
        of_twice(alternatives={"one": Alternative(function=lambda x: x @ x, args=rows(8))})


def test_a_rival_is_remembered_and_its_numbers_stay(tmp_path):
    """The second run compiles nothing and says the same."""
    one = Alternative(function=jax.jit(lambda x: x @ x.T), args=rows(8))
    tools = {"store": ReferenceCache(tmp_path)}
    first, again = (of_twice(alternatives={"one": one}, tools=tools).alternatives["one"] for _ in range(2))
    assert (first.cached, again.cached) == (False, True)
    assert first.facts == again.facts
    assert first.facts.matmul_flops == 2 * 8 * 8 * ROW


def test_the_subject_as_its_own_rival_disturbs_no_count():
    """Its executable must survive: the steady state compiles nothing."""
    subject = jax.jit(twice)
    facts = measured(
        subject,
        FOUR,
        batch=Batch(argument=0, size=4),
        alternatives={
            "itself": Alternative(function=subject, args=rows(4)),
            "larger": Alternative(function=subject, args=rows(8)),
        },
        max_batch=fits(8192 * 10),
    ).facts
    assert (facts.traces, facts.compiles, facts.sampled_traces, facts.sampled_compiles) == (1, 1, 0, 0)
