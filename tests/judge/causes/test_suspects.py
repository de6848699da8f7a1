"""Causes: who is named for what got worse, in which order, and who must not be."""

from dataclasses import replace

import pytest
from support.factories import (
    CASE,
    ENVIRONMENT,
    FINGERPRINTS,
    SIGNATURE,
    baseline,
    decision,
    launched_program,
    measurement,
    record,
    reference,
)

from jaxgate.judge.causes.control_flow import other_constants
from jaxgate.judge.causes.suspects import rank_causes
from jaxgate.judge.verdict import judge
from jaxgate.model.claim import QUANTITIES, claim
from jaxgate.model.decision import Status
from jaxgate.model.measurement import Argument, Culprits, Leaf

ADD, DOT = "stablehlo.add 8x64xf32", "float32[8,64] x float32[64,64]"
W, BATCH = SIGNATURE
LOSS = Leaf(path="result[1]", aval="float32[]", nbytes=4, donated=False)
STATE = Leaf(path="result[0]['w']", aval="float32[64,64]", nbytes=16384, donated=False)
LOOP = {"stablehlo.while 8x64xf32": 1, ADD: 3}
MEMORY = {"peak_bytes", "state_bytes"}


def causes(red, known=None, *, facts=None, **changes):
    """What is named for some red quantities, as text; against the healthy baseline or none."""
    red = red.split() if isinstance(red, str) else red
    return [str(cause) for cause in rank_causes(measurement(facts=facts, **changes), known, red)]


def explained(known=None, *, facts=None, **changes):
    """What today's causes explain, cause by cause."""
    return {str(cause): cause.explains for cause in rank_causes(measurement(facts=facts, **changes), known, QUANTITIES)}


IN_VAIN = "traced and thrown away: 347 × select_n at model.py:9"


@pytest.mark.parametrize(("operations", "named"), [(40, True), (300, False)], ids=["as before", "longer as well"])
def test_what_is_traced_in_vain_is_named_where_the_program_stays_as_it_is(operations, named):
    """A loop that is unrolled writes more in vain, too, and is unrolled."""
    facts = {"trace_equations": 900, "stablehlo_ops": operations}
    found = causes("trace_equations", baseline(), facts=facts, culprits=Culprits(thrown_away=IN_VAIN))
    assert (IN_VAIN in found) is named


# Who must not be named


GUILTY = {
    "facts": {"sampled_traces": 3, "host_callbacks": 2, "constant_bytes": 65_536, "matmul_flops": 9_000_000},
    "signature": (replace(W, donated=False, nbytes=32768), BATCH),
    "results": (STATE, LOSS),
    "operations": {ADD: 999},
    "matmuls": {DOT: 9},
    "collectives": {"psum float32[64,64] over data": 9},
    "widened": {"bfloat16[8,64] to float32": 9},
    "launched": {"jit_step": 9},
    "transferred": {"the host": 9},
    "called": {"model.Config.__hash__": 999},
    "environment": ENVIRONMENT | {"jaxlib": "0.12.0"},
    "culprits": Culprits(
        retraces=("batch: float32[8] → float32[7]",),
        constants=("128x128xf32 (65,536 bytes)",),
        lost=("state['w']: no output has its type",),
        callbacks=("print_loss at model.py:9",),
        reads=("2 × item()",),
        thrown_away=IN_VAIN,
        allocations=("768 kB f32[3,256,256]",),
    ),
}


@pytest.mark.parametrize("known", [None, baseline()], ids=["no baseline", "baseline"])
def test_where_nothing_is_red_nobody_is_blamed(known):
    """Whatever else there is to say of a program, a green case has no cause."""
    assert causes("", known, **GUILTY) == []
    assert causes("temp_bytes run_ns", known, **GUILTY) != []


def test_a_program_like_its_baseline_is_not_to_blame():
    """Where everything is red and nothing differs, no cause is made up."""
    assert causes(QUANTITIES, baseline()) == []


def test_a_gain_blames_nobody():
    """All that a cause could explain became better, and the program is quite another one: improved, no cause."""
    better = {"temp_bytes": 1, "xla_bytes": 1, "xla_flops": 1, "stablehlo_ops": 1, "matmul_flops": 1}
    now = measurement(
        facts=better,
        operations={"stablehlo.tanh 8x64xf32": 1},
        matmuls={"float32[8,8] x float32[8,8]": 1},
        fingerprints=replace(FINGERPRINTS, program="p1"),
    )
    verdict = judge(CASE, (), now, record(), strict=True, decision=decision(Status.SAME))
    assert (str(verdict.status), verdict.causes) == ("IMPROVED", ())


def test_a_gain_beside_a_loss_is_not_its_cause():
    """Of two things that changed only the one that can have done it is named."""
    now = measurement(facts={"traces": 2, "temp_bytes": 1}, operations={"stablehlo.tanh 8x64xf32": 1})
    now = replace(now, culprits=Culprits(retraces=("batch: float32[8] → float32[7]",)))
    verdict = judge(CASE, (), now, record(), strict=True)
    assert [str(cause) for cause in verdict.causes] == ["batch: float32[8] → float32[7]"]


def test_a_claim_that_holds_blames_nobody():
    """Nor one that cannot be checked: what is not known has no cause."""
    grown = measurement(operations={ADD: 99}, reference=reference())
    known = record(operations={ADD: 99})
    assert judge(CASE, (claim("temp_bytes <= reference"),), grown, known, strict=True).causes == ()
    unknown = replace(grown, reference=None, operations={ADD: 120})
    assert judge(CASE, (claim("temp_bytes <= reference"),), unknown, known, strict=True).causes == ()


# The order


def test_what_explains_most_comes_first():
    """One cause of two losses before two causes of one each."""
    culprits = Culprits(lost=("state['w']: no output has its type",), retraces=("batch: float32[8] → float32[7]",))
    red = "lost_bytes aliased_bytes traces"
    assert causes(red, baseline(), culprits=culprits) == [
        "donated, but not reused: state['w']: no output has its type",
        "batch: float32[8] → float32[7]",
    ]
    assert causes(f"{red} compiles lowerings", baseline(), culprits=culprits)[0] == "batch: float32[8] → float32[7]"


def test_what_a_cause_could_also_explain_does_not_count():
    """Only what is red does: a cause of everything is not before the cause of this."""
    changes = {"operations": {ADD: 99}, "culprits": Culprits(lost=("state['w']: no output has its type",))}
    assert causes("aliased_bytes lost_bytes xla_bytes", baseline(), **changes)[0].startswith("donated, but not reused")


def test_the_sure_one_comes_before_the_guess():
    """Of two that explain as much, the one that was seen."""
    changes = {"operations": {ADD: 99}, "widened": {"bfloat16[8,64] to float32": 4}}
    assert causes("temp_bytes xla_bytes", baseline(), **changes) == [
        "wider floats: bfloat16[8,64] to float32 0 → 4",
        f"perhaps {ADD} 37 → 99; gone: stablehlo.dot_general 8x64xf32",
    ]


def test_a_guess_that_explains_more_comes_first_and_says_that_it_is_one():
    """How much is explained weighs more than how sure it is."""
    changes = {"operations": {ADD: 99}, "widened": {"bfloat16[8,64] to float32": 4}}
    first, second = causes("temp_bytes stablehlo_ops compile_ns", baseline(), **changes)
    assert first.startswith(f"perhaps {ADD} 37 → 99")
    assert second.startswith("wider floats")


def test_casts_that_are_cut_into_more_pieces_are_no_cause():
    """As many elements are widened as before, by more casts: a batch that became a loop."""
    known = baseline(widened={"bfloat16[8,4] → float32": 1})
    assert causes("temp_bytes", known, widened={"bfloat16[4] → float32": 8}) == []
    assert causes("temp_bytes", known, widened={"bfloat16[4] → float32": 9})[0].startswith("wider floats")


def test_what_a_guess_explains_counts_half():
    """Two quantities of a guess are no more than one of what was seen, three are."""
    changes = {"operations": {ADD: 99}, "widened": {"bfloat16[8,64] to float32": 4}}
    for red, first in (
        ("temp_bytes stablehlo_ops", "wider floats"),
        ("temp_bytes stablehlo_ops compile_ns", "perhaps"),
    ):
        assert causes(red, baseline(), **changes)[0].startswith(first)


def test_the_root_comes_before_what_follows_from_it():
    """Of equals, a lost loop before the products that it leaves, and both before the operations."""
    changes = {"operations": {ADD: 64}, "matmuls": {DOT: 64}, "facts": {"matmul_flops": 9_000_000}}
    named = causes("temp_bytes stablehlo_ops xla_flops", baseline(operations=LOOP), **changes)
    assert [text.split(" ")[0] for text in named] == ["a", "float32[8,64]", "perhaps"]
    assert named[0] == f"a loop is unrolled: stablehlo.while 1 → 0; {ADD} 3 → 64"


# Calls


def test_a_retrace_is_named_as_it_was_explained():
    """The first explanation; sure, unless it says itself that it knows nothing, or there is none."""
    lines = ("batch: float32[8] → float32[7]", "batch: float32[7] → float32[6]")
    assert causes("traces", baseline(), culprits=Culprits(retraces=lines)) == [lines[0]]
    unknown = "step at model.py:3: cause unknown"
    assert causes("compiles", baseline(), culprits=Culprits(retraces=(unknown,))) == [f"perhaps {unknown}"]
    assert causes("sampled_traces", baseline(), facts={"sampled_traces": 3, "sampled_compiles": 2}) == [
        "perhaps 3 traces and 2 compiles while sampling: cause unknown"
    ]


def test_a_retrace_explains_what_calls_show_and_nothing_else():
    found = explained(baseline(), culprits=Culprits(retraces=("batch: float32[8] → float32[7]",)))
    assert set(found.values()) == {frozenset({"traces", "lowerings", "compiles", "sampled_traces", "sampled_compiles"})}


# Donation


def test_what_is_no_longer_donated_is_named():
    """The leaves, with their bytes; three by path, the rest by number; none that never was donated."""
    changes = {"signature": (replace(W, donated=False), BATCH)}
    assert causes("donated_bytes", baseline(), **changes) == ["no longer donated: state['w'] (16,384 bytes)"]
    assert explained(baseline(), **changes) == {
        "no longer donated: state['w'] (16,384 bytes)": {"donated_bytes", "aliased_bytes"} | MEMORY
    }
    before = tuple(Argument(path=f"state[{i}]", aval="float32[4]", nbytes=1000, donated=True) for i in range(5))
    now = tuple(replace(leaf, donated=False) for leaf in before)
    assert causes("donated_bytes", baseline(signature=before), signature=now) == [
        "no longer donated: state[0], state[1], state[2] and 2 more (5,000 bytes)"
    ]


def test_without_a_baseline_only_the_absence_of_all_donation_is_told():
    assert causes("peak_bytes", None, operations={}, matmuls={}, signature=(BATCH,)) == ["nothing is donated"]
    assert causes("peak_bytes", None, operations={}, matmuls={}) == []


def test_donation_that_is_lost_is_named_leaf_by_leaf():
    """The first with its reason, the others by number."""
    lost = ("state['w']: no output has its type", "state['b']: no output has its type")
    assert causes("lost_bytes", baseline(), culprits=Culprits(lost=lost)) == [
        f"donated, but not reused: {lost[0]}; and 1 more"
    ]
    assert set(explained(baseline(), culprits=Culprits(lost=lost[:1])).values()) == {
        frozenset({"lost_bytes", "aliased_bytes"}) | MEMORY
    }


# What is in the program


def test_python_in_the_program_is_named():
    """The functions that it calls, or that it calls some that the tracer does not name; as many as before are fine."""
    named = Culprits(callbacks=("print_loss at model.py:9", "log at model.py:10"))
    facts = {"host_callbacks": 2}
    assert causes("host_callbacks", baseline(), facts=facts, culprits=named) == [
        "the program calls Python: print_loss at model.py:9; log at model.py:10"
    ]
    assert causes("host_callbacks", baseline(), facts=facts) == [
        "the program calls Python: a queue or a call that the tracer does not name"
    ]
    assert causes("run_ns", baseline(facts=facts), facts=facts, culprits=named) == []


def test_captured_arrays_are_named_where_they_grew():
    """Three of them; none that was captured already."""
    named, facts = Culprits(constants=("one", "two", "three", "four")), {"constant_bytes": 65_536}
    assert causes("constant_bytes", baseline(), facts=facts, culprits=named) == ["one; two; three"]
    assert causes("constant_bytes", None, facts=facts, culprits=named) == ["one; two; three"]
    assert causes("constant_bytes", baseline(facts=facts), facts=facts, culprits=named) == []


def test_less_sharding_is_named_with_the_array_that_grew_most():
    """The same array, more bytes of it on each device; one of another shape says nothing about where it lies."""
    before = (replace(W, nbytes=2048), replace(BATCH, nbytes=256))
    assert causes("argument_bytes", baseline(signature=before)) == [
        "state['w'] takes 16,384 bytes of each device, 2,048 before: sharded less; and 1 more"
    ]
    assert causes("argument_bytes", baseline(), signature=before) == []  # spread over more: a gain
    wider = (replace(W, aval="float32[64,128]", nbytes=32768), BATCH)
    assert causes("argument_bytes", baseline(), signature=wider) == []


def test_results_that_are_sharded_less_explain_lost_donation_and_retraces():
    """What comes back otherwise than it was given is not reused, and is another argument to the next step."""
    before = (replace(STATE, nbytes=2048), LOSS)
    changes = {"results": (STATE, LOSS)}
    text = "result[0]['w'] takes 16,384 bytes of each device, 2,048 before: sharded less"
    for red in ("lost_bytes", "traces", "collectives"):
        assert causes(red, baseline(results=before), **changes) == [text]
    assert causes("argument_bytes", baseline(results=before), **changes) == []


def test_communication_that_grew_is_named():
    label = "psum float32[64,64] over data"
    culprits = Culprits(lines={label: "model.py:12"})
    sent = {"collectives": {label: 2}, "culprits": culprits}
    assert causes("collectives", baseline(), facts={"collectives": 2}, **sent) == [f"{label} 0 → 2 at model.py:12"]
    assert causes("collectives", baseline(), **sent) == [
        f"perhaps {label} 0 → 2 at model.py:12"
    ]  # put together otherwise
    assert causes("collectives", baseline(collectives={label: 2}), collectives={label: 2}) == []


def test_an_unrolled_loop_needs_fewer_loops_and_more_operations():
    """A loop that went together with its body is no unrolled one."""
    known = baseline(operations=LOOP)
    assert any(text.startswith("a loop is unrolled") for text in causes("stablehlo_ops", known, operations={ADD: 64}))
    for operations in ({ADD: 2}, {**LOOP, ADD: 64}):
        assert not any("unrolled" in text for text in causes("stablehlo_ops temp_bytes", known, operations=operations))


def test_an_unrolled_loop_is_placed_by_what_is_new_and_not_by_what_was_there():
    """An optimiser has as many sums as the body, of the same shape: their lines are not the loop's."""
    product = "stablehlo.dot_general 8x64xf32"
    known = baseline(operations={**LOOP, ADD: 14, product: 2})
    lines = Culprits(lines={ADD: "optimiser.py:9, cell.py:3", product: "cell.py:3"})
    text = causes("stablehlo_ops", known, operations={ADD: 44, product: 32}, culprits=lines)[0]
    assert text.startswith("a loop is unrolled: stablehlo.while 1 → 0 at cell.py:3; ")


PART = {"stablehlo.while 8x64xf32": 1, ADD: 2, "stablehlo.tanh 8x64xf32": 1, "stablehlo.dot_general 8x64xf32": 1}
FIVE = {"stablehlo.while 8x64xf32": 1, ADD: 10, "stablehlo.tanh 8x64xf32": 5, "stablehlo.dot_general 8x64xf32": 5}


def test_a_loop_that_is_unrolled_in_part_has_as_many_products_in_all():
    """`unroll=5`: sure where products say it, a guess where only the operations are five times as many."""
    known = baseline(operations=PART, matmuls={DOT: 20})
    lines = Culprits(lines={"stablehlo.dot_general 8x64xf32": "model.py:4"})
    text = "a loop is unrolled in part: stablehlo.dot_general 8x64xf32 1 → 5 at model.py:4"
    assert causes("stablehlo_ops", known, operations=FIVE, matmuls={DOT: 20}, culprits=lines)[0] == text
    assert not any("unrolled" in one for one in causes("stablehlo_ops", known, operations=FIVE, matmuls={DOT: 40}))
    plain, five = ({name: n for name, n in side.items() if "dot" not in name} for side in (PART, FIVE))
    guess = causes("stablehlo_ops", baseline(operations=plain), operations=five)[0]
    assert guess.startswith("perhaps a loop is unrolled in part: stablehlo.add")
    for other in (five | {ADD: 5}, five | {"stablehlo.sine 8x64xf32": 9}, {ADD: 10}):
        found = causes("stablehlo_ops", baseline(operations=plain), operations=other)
        assert not any("unrolled in part" in one for one in found)


def test_a_loop_that_takes_more_turns_is_named_with_what_it_was_given():
    """Numbers by their values, arrays by name; branches are no turns, and fewer turns in all are no cause."""
    given = [
        Argument(path=path, aval=aval, nbytes=4, donated=False, value=value)
        for path, aval, value in (
            ("rtol", "float32[]", "0.001"),
            ("start", "float32[8]", "aa"),
            ("x", "float32[8]", "bb"),
        )
    ]
    now = [replace(leaf, value=value) for leaf, value in zip(given, ("1e-06", "cc", "bb"), strict=True)]
    before = {"while float32[3]": 41, "while float32[7]": 90, "cond float32[3] branch 0": 0}
    after = {"while float32[3]": 328, "while float32[7]": 90, "cond float32[3] branch 0": 500}
    known = baseline(turns=before, facts={"loop_turns": 131}, signature=tuple(given))
    lines = Culprits(lines={"while float32[3]": "solve.py:9"})
    found = causes("loop_turns", known, turns=after, facts={"loop_turns": 418}, signature=tuple(now), culprits=lines)
    text = "a loop takes more turns, given rtol 0.001 → 1e-06, other values of start: while float32[3] 41 → 328 at solve.py:9"
    assert found == [text]
    others = {"while float32[8,3]": 328, "while float32[8,7]": 90}  # another way of doing it
    assert causes("loop_turns", known, turns=others, facts={"loop_turns": 418}, signature=tuple(now)) == []
    fewer = {"while float32[3]": 50, "while float32[7]": 9}
    assert causes("loop_turns", known, turns=fewer, facts={"loop_turns": 59}, signature=tuple(now)) == []


LATER = {"evaluate": 4, "save": 10}
CALLED = Culprits(lines={"evaluate": "train.py:12", "save": "train.py:20"})


@pytest.mark.parametrize(
    ("before", "steps", "found"),
    [
        ({}, 20, "evaluate at train.py:12 in step 4, save at train.py:20 in step 10"),
        ({}, 9, "evaluate at train.py:12 in step 4"),  # the baseline's steps went no further
        ({"evaluate": 8}, 20, "save at train.py:20 in step 10"),
        ({"evaluate": 9}, 9, ""),
        (LATER, 20, ""),
        ({}, 0, ""),  # a baseline of before
    ],
)
def test_a_program_that_a_later_step_starts_is_red_where_the_baseline_went_as_far(before, steps, found):
    """Its own step does not count: it comes at every so many."""
    known = record(later=before, steps=steps)
    verdict = judge(CASE, (), measurement(later=LATER, steps=20, culprits=CALLED), known, strict=True)
    assert verdict.fails is bool(found)
    assert [str(cause) for cause in verdict.causes] == ([f"a later step starts a program: {found}"] if found else [])


@pytest.mark.parametrize(
    ("before", "jax", "found"),
    [
        ({"step": 1}, "", "step 1 → 2 at train.py:9"),
        ({"step": 1, "iota": 1}, "", "iota 1 → 4, step 1 → 2 at train.py:9"),
        ({"step": 2, "iota": 4}, "", ""),
        ({"iota": 9}, "", ""),  # a function that is new in the first call is another program of it, and told as that
        ({"step": 1}, "0.11.0", ""),  # another release compiles other helpers
        ({}, "", ""),  # a baseline of before
    ],
)
def test_more_programs_of_a_function_in_the_first_call_are_red(before, jax, found):
    """A step that is compiled ahead for other arguments than it gets."""
    known = record(first=before, environment=ENVIRONMENT | ({"jax": jax} if jax else {}))
    lines = Culprits(lines={"step": "train.py:9"})
    verdict = judge(CASE, (), measurement(first={"step": 2, "iota": 4}, culprits=lines), known, strict=True)
    assert verdict.fails is bool(found)
    named = [str(cause) for cause in verdict.causes]
    assert named == ([f"the first call compiles more programs of a function: {found}"] if found else [])


def test_python_that_takes_longer_and_calls_no_more_waits():
    """Where it calls more, or starts another program, that is the cause."""
    programs = (launched_program(),)
    known = baseline(eager=True, launched_programs=programs, facts={"python_calls": 9})
    now = {"eager": True, "launched_programs": programs}
    (waits,) = causes("host_ns", known, facts={"python_calls": 9}, **now)
    assert waits.startswith("perhaps Python around the same programs takes longer and calls no more functions")
    assert not any("calls no more" in one for one in causes("host_ns", known, facts={"python_calls": 10}, **now))
    other = replace(FINGERPRINTS, program="p1")
    assert not any("calls no more" in one for one in causes("host_ns", known, fingerprints=other, **now))


def test_arrays_that_each_step_leaves_behind_are_named():
    lines = Culprits(kept="1 × float32[3], held by train.LOSSES")
    found = causes("kept_arrays", baseline(), facts={"kept_arrays": 1}, culprits=lines)
    assert found == ["each step leaves arrays behind: 1 × float32[3], held by train.LOSSES"]
    assert causes("kept_arrays", baseline(facts={"kept_arrays": 1}), facts={"kept_arrays": 1}, culprits=lines) == []
    made = {"facts": {"kept_arrays": 1}, "culprits": lines, "launched": {"multiply": 1}}
    for red in ("kept_arrays launches", "kept_arrays launches run_ns"):
        assert causes(red, baseline(), **made) == [*found, "programs started in a call: multiply 0 → 1"]
    others = causes("kept_arrays launches run_ns", baseline(), **made | {"launched": {"multiply": 200}})
    assert others == ["programs started in a call: multiply 0 → 200", *found]


def test_functions_that_tracing_calls_more_are_named():
    """Of one that the baseline's list has no room for nobody knows how often it was called."""
    now = {"facts": {"trace_calls": 9_000}, "traced": {"check": 6_400, "other": 2}}
    now["culprits"] = Culprits(lines={"check": "model.py:4"})
    few = baseline(traced={"other": 2})
    assert causes("trace_calls", few, **now) == ["tracing calls check 0 → 6400 at model.py:4"]
    full = baseline(traced={"other": 1, **{f"f{number}": 9 for number in range(19)}})
    assert causes("trace_calls", full, **now) == ["tracing calls other 1 → 2"]
    assert causes("trace_calls", baseline(), **now) == []


def test_reference_cycles_that_each_step_makes_are_named():
    """Where there are more of them than before, objects or arrays."""
    lines = Culprits(cycles="1 × Node at train.py:3")
    text = "each step makes reference cycles, which only the collector frees: 1 × Node at train.py:3"
    for name in ("cyclic_objects", "cyclic_arrays"):
        assert causes(name, baseline(), facts={name: 30}, culprits=lines) == [text]
        assert causes(name, baseline(facts={name: 30}), facts={name: 30}, culprits=lines) == []


@pytest.mark.parametrize(
    ("fact", "label", "before", "few", "told"),
    [
        ("copied_bytes", "copy float32[64,64]", 1, {"kernels": {"copy float32[8]": 2}}, "arrays are copied"),
        (
            "scattered_bytes",
            "scatter apart in float32[8,64]",
            0,
            {"facts": {"scattered_bytes": 9}},
            "elements are picked",
        ),
    ],
    ids=["copies", "scatters"],
)
def test_what_the_optimised_program_does_with_memory_is_named(fact, label, before, few, told):
    """Of another program as what it does; of the same one as what another compiler makes of it; a little of it is no cause."""
    known = baseline(kernels={label: before, "fused add": 7}, facts={fact: 0})
    now = {"kernels": {label: 65, "fused add": 7}, "facts": {fact: 9_000_000}}
    now["culprits"] = Culprits(lines={label: "model.py:4"})
    grew = f"{label} {before} → 65 at model.py:4"
    changed = causes(fact, known, fingerprints=replace(FINGERPRINTS, program="p1"), **now)
    assert changed[0].startswith(told)
    assert changed[0].endswith(f": {grew}")
    elsewhere = causes(fact, known, environment={**ENVIRONMENT, "jaxlib": "9.9"}, **now)
    assert elsewhere[0].endswith(f"the compiler makes something else of it: {grew}")
    assert not any(told in text for text in causes(fact, known, **{**now, **few}))


def test_a_kernel_that_holds_more_at_once_is_named():
    """By its blocks as they are now: a baseline does not know them."""
    blocks = Culprits(blocks="float32[128,256] in norm at model.py:4")
    known = baseline(facts={"block_bytes": 4_096})
    text = "a kernel holds more at once: float32[128,256] in norm at model.py:4"
    assert causes("block_bytes", known, facts={"block_bytes": 131_072}, culprits=blocks)[0] == text
    assert text not in causes("block_bytes", known, facts={"block_bytes": 4_096}, culprits=blocks)


def test_a_routine_that_moved_into_a_loop_is_named():
    """It stands in the program once, as before; a loop that is written out is another thing."""
    known = baseline(kernels={"lapack_spotrf_ffi": 1, "fused add": 1})
    now = {"kernels": {"lapack_spotrf_ffi": 20, "fused add": 40}, "facts": {"kernels": 60}}
    assert (
        causes("kernels", known, **now)[0]
        == "a loop does in each turn what was done before it: lapack_spotrf_ffi 1 → 20"
    )
    assert causes("kernels", known, **now, operations={ADD: 90})[0] != causes("kernels", known, **now)[0]
    longer = replace(
        known, kernels={"lapack_spotrf_ffi": 2, "fused add": 1}
    )  # it was in a loop before, or is one of two
    assert not any(one.startswith("a loop does") for one in causes("kernels", longer, **now))


def test_products_that_give_more_of_the_same_operands_are_named():
    small, large = "stablehlo.convolution 2x16x16x8xf32", "stablehlo.convolution 2x32x32x8xf32"
    known = baseline(operations={small: 1, ADD: 3}, facts={"matmul_flops": 250_000})
    found = causes("matmul_flops", known, operations={large: 1, ADD: 3})
    assert found[0] == f"the same products of larger arrays: {small} → {large}"
    assert causes("matmul_flops", baseline(operations={small: 1, ADD: 3}), operations={large: 1, ADD: 3}) == []


def test_programs_of_one_function_are_named_where_launches_are_as_many():
    ours = tuple(launched_program(name="step", fingerprint=str(number)) for number in range(4))
    known = baseline(launched_programs=ours[:1], launched={"step": 4}, eager=True)
    found = causes("program_variants", known, launched_programs=ours, launched={"step": 4}, eager=True)
    assert found == ["a program for each value of a static argument, or each shape: step 1 → 4"]
    assert causes("program_variants", known, launched_programs=ours, launched={"step": 5}, eager=True) == []


def test_a_loop_that_takes_the_place_of_arrays_of_all_steps_is_a_guess():
    """As where an associative scan becomes a loop; another loop beside what was there is no such thing."""
    known = baseline(operations={"stablehlo.add 32x8x64xf32": 6})
    lines = Culprits(lines={"stablehlo.while 8x64xf32": "model.py:4"})
    text = "perhaps steps that were done all at once follow each other in a loop: stablehlo.while 0 → 1 at model.py:4"
    assert causes("xla_bytes", known, operations=LOOP, culprits=lines)[0] == text
    more, copies = {"stablehlo.add 32x8x64xf32": 6, **LOOP}, {"stablehlo.while 8xf32": 8, "stablehlo.add 8xf32": 24}
    for now in (more, copies):
        assert not any("follow each other" in one for one in causes("xla_bytes", known, operations=now, culprits=lines))


def test_products_cut_into_the_turns_of_a_loop_are_one_by_one():
    """The same FLOPs, in more products of which no more stand in the program."""
    whole = baseline(matmuls={DOT: 1}, operations={"stablehlo.dot_general 8x64xf32": 1})
    now = {
        "operations": {"stablehlo.dot_general 64xf32": 1, "stablehlo.while 8x64xf32": 1, ADD: 9},
        "facts": {"kernels": 90},
    }
    cut = {"matmuls": {"float32[64] x float32[64,64]": 8}}
    text = "steps that were done all at once follow each other in a loop: stablehlo.while 0 → 1"
    assert causes("kernels", whole, **now, **cut)[0] == text
    assert text not in causes("kernels", whole, **now, matmuls={DOT: 1})


def test_the_steps_of_a_loop_done_at_once_are_a_guess():
    """A loop is gone and its program no larger, but memory is: arrays of all steps are named before the buffers."""
    known, all_steps = baseline(operations=LOOP), "stablehlo.add 32x8x64xf32"
    changes = {"operations": {all_steps: 3}, "culprits": Culprits(lines={all_steps: "model.py:4"})}
    text = f"{all_steps} 0 → 3 at model.py:4; gone: {ADD}, stablehlo.while 8x64xf32"
    assert causes("temp_bytes", known, **changes) == [
        f"perhaps the steps of a loop are done all at once: stablehlo.while 1 → 0 at model.py:4; {text}",
        f"perhaps {text}",
    ]
    for operations in ({ADD: 2}, {ADD: 64}, {**LOOP, all_steps: 3}):  # gone with its body, unrolled, still there
        assert not any("at once" in text for text in causes("temp_bytes", known, operations=operations))


def test_less_recomputation_is_named_where_memory_grew():
    """Fewer products of the same kind and fewer barriers: what remat recomputed is kept."""
    barrier = "stablehlo.optimization_barrier 8x64xf32"
    known = baseline(operations={barrier: 2, ADD: 3}, matmuls={DOT: 5})
    changes = {"operations": {ADD: 3}, "matmuls": {DOT: 3}, "facts": {"matmul_flops": 600_000}}
    assert causes("temp_bytes", known, **changes) == [
        f"less is recomputed, so more is kept: remat is lost or keeps more (optimization_barrier 2 → 0); {DOT} 5 → 3"
    ]
    assert causes("matmul_flops", known, **changes) == []


def test_a_barrier_where_nothing_is_computed_twice_is_no_recomputation():
    moved = {"stablehlo.while 8x64xf32": 1, "stablehlo.dynamic_slice 8x64xf32": 2}
    known = baseline(
        operations={**moved, "stablehlo.optimization_barrier 8x64xf32": 1}, matmuls={}, facts={"matmul_flops": 0}
    )
    text = "what a loop carries may be copied, as nothing holds it back: optimization_barrier 1 → 0"
    assert causes("temp_bytes", known, operations=moved, matmuls={}, facts={"matmul_flops": 0})[0] == text


STORE = "stablehlo.dynamic_update_slice 32x64x64xf32"


@pytest.mark.parametrize(
    ("now", "found"),
    [
        ({**LOOP, STORE: 1}, True),
        ({**LOOP, STORE: 1, "stablehlo.broadcast_in_dim 32x64x64xf32": 1}, True),
        ({**LOOP, STORE: 1, "stablehlo.dot_general 64x64x64xf32": 1}, False),  # something larger is new
        ({**LOOP, "stablehlo.dynamic_update_slice 8x64xf32": 1}, False),  # no more than what it is given
    ],
)
def test_an_array_that_a_loop_keeps_of_each_of_its_steps_is_named(now, found):
    """What a backward pass of one's own keeps, for example."""
    first = causes("temp_bytes", baseline(operations=LOOP), operations=now)[0]
    assert (first == f"a loop keeps an array of each of its steps: {STORE} 0 → 1") is found


def test_an_array_of_each_step_that_is_read_again_is_kept_however_small():
    """A value that remat was to make again, and that its policy keeps: the weights are larger."""
    store = "stablehlo.dynamic_update_slice 8x64xf32"
    now = {**LOOP, store: 1, "stablehlo.dynamic_slice 1x64xf32": 1}
    named = f"a loop keeps an array of each of its steps: {store} 0 → 1"
    assert causes("temp_bytes", baseline(operations=LOOP), operations=now)[0] == named
    assert named not in causes("temp_bytes", baseline(operations={ADD: 3}), operations=now)  # the loop itself is new


REMAT = {**LOOP, "stablehlo.optimization_barrier 8x64xf32": 1, STORE: 2}


@pytest.mark.parametrize(
    ("before", "made", "named"),
    [
        (LOOP, {DOT: 3}, True),  # remat is new
        (REMAT, {DOT: 3}, True),  # it keeps less
        (REMAT | {STORE: 1}, {DOT: 3}, False),  # it keeps as much
        (REMAT, {DOT: 1, "float32[9,64] x float32[64,64]": 3}, False),  # other products
    ],
)
def test_more_recomputation_is_named_where_products_are_more(before, made, named):
    known = baseline(operations=before, matmuls={DOT: 2}, facts={"matmul_flops": 600_000})
    found = causes("matmul_flops", known, operations=REMAT | {STORE: 1}, matmuls=made, facts={"matmul_flops": 900_000})
    assert found[0].startswith("more is recomputed, so less is kept: remat is new or keeps less") is named


def test_a_recomputation_that_is_not_held_back_is_named():
    """The same products and fewer barriers; with fewer products remat itself is lost, which is said instead."""
    known = baseline(operations={"stablehlo.optimization_barrier 8x64xf32": 2, ADD: 3})
    assert causes("largest_batch", known, operations={ADD: 3}) == [
        "a recomputation is not held back until it is needed: optimization_barrier 2 → 0"
    ]
    assert causes("largest_batch", known, operations=known.operations) == []
    assert causes("largest_batch", known, operations={ADD: 3}, facts={"matmul_flops": 600_000}) == []


def test_more_products_are_named():
    """By operand shapes, with their line; only where there is more such work than before."""
    changes = {"matmuls": {DOT: 6}, "culprits": Culprits(lines={DOT: "model.py:40"})}
    more = {"matmul_flops": 2_000_000}
    assert causes("matmul_flops", baseline(), facts=more, **changes) == [f"{DOT} 3 → 6 at model.py:40"]
    assert causes("xla_flops", baseline(), **changes) == []  # other products, and no more work


def test_wider_floats_are_named():
    label = "bfloat16[8,64] to float32"
    culprits = Culprits(lines={label: "model.py:7"})
    assert causes("widened_bytes", baseline(), widened={label: 4}, culprits=culprits) == [
        f"wider floats: {label} 0 → 4 at model.py:7"
    ]
    assert causes("widened_bytes", baseline(widened={label: 4}), widened={label: 4}) == []


def test_products_of_wider_floats_are_named_beside_the_casts():
    """A cast that widens an operand is the cause of the product; without one the product is."""
    narrow, wide = "bfloat16[4,8] x bfloat16[8,8]", "float32[4,8] x float32[8,8]"
    told = f"products of wider floats: {narrow} → {wide}"
    assert causes("temp_bytes", baseline(matmuls={narrow: 2}), matmuls={wide: 2}) == [told]
    assert causes("temp_bytes", baseline(matmuls={wide: 2}), matmuls={narrow: 2}) == []
    cast = {"bfloat16[4,8] → float32": 1}
    both = causes("temp_bytes", baseline(matmuls={narrow: 2}), matmuls={wide: 2}, widened=cast)
    assert both == ["wider floats: bfloat16[4,8] → float32 0 → 1", told]


def test_what_is_returned_besides_is_named():
    """A new result, or a larger one, with its bytes; where there is no more in all nobody is blamed."""
    logits = Leaf(path="result[2]", aval="float32[8,1000]", nbytes=32_000, donated=False)
    known = baseline(results=(STATE, LOSS))
    assert causes("output_bytes", known, results=(STATE, LOSS, logits)) == [
        "more is returned: result[2] is float32[8,1000] (32,000 bytes), new"
    ]
    wide = replace(LOSS, aval="float32[8]", nbytes=32)
    assert causes("output_bytes", known, results=(STATE, wide)) == [
        "more is returned: result[1] is float32[8] (32 bytes), float32[] before"
    ]
    swapped = (replace(STATE, nbytes=4), replace(LOSS, nbytes=16384))
    assert not any("more is returned" in text for text in causes("output_bytes xla_bytes", known, results=swapped))
    alone = baseline(results=(replace(LOSS, path="result"),))  # a loss that became a dictionary of one is the same
    assert causes("output_bytes", alone, results=(replace(LOSS, path="result['loss']"),)) == []
    assert causes("output_bytes", alone, results=(replace(wide, path="result['loss']"),)) == [
        "more is returned: result['loss'] is float32[8] (32 bytes), float32[] before"
    ]


# Plain Python around programs


def test_programs_that_python_starts_are_named():
    """What is launched more often, and what is moved between host and device."""
    assert causes("launches", baseline(), launched={"jit_step": 1, "jit_add": 4}, eager=True) == [
        "programs started in a call: jit_add 0 → 4; jit_step 0 → 1"
    ]
    before = baseline(transferred={"multiply": 4, "add": 2, "step": 1})
    moved = {"eager": True, "culprits": Culprits(transfer_lines={"the host": "train.py:35"})}
    moved["transferred"] = {"multiply": 4, "add": 3, "the host": 1}
    text = "moved between host and device in each call: "
    assert causes("host_transfers", before, **moved) == [f"{text}3 for add (2 before); 1 for the host at train.py:35"]
    assert causes("host_transfers", baseline(), **moved) == [
        f"{text}4 for multiply; 3 for add; 1 for the host at train.py:35"
    ]
    for program, moves_first in (("stack", True), ("dot", False)):
        joined = {"transferred": {"device_put": 8}, "launched": {program: 1}, "eager": True}
        for red in ("host_transfers launches", "host_transfers launches run_ns"):
            both = causes(red, before, **joined)
            assert [one.startswith(text) for one in both] == [moves_first, not moves_first], (program, red)
    assert causes("host_reads", baseline(), culprits=Culprits(reads=("2 × item() at loop.py:3",)), eager=True) == [
        "read back in each call: 2 × item() at loop.py:3"
    ]


def test_what_is_read_back_leads_over_the_calls_of_who_gets_it():
    """As results that NumPy compares: it calls Python for each."""
    known = baseline(called={"len": 1}, facts={"python_calls": 10, "host_reads": 0})
    reads = Culprits(reads=("16 × np.asarray at evaluate.py:15",))
    now = {"called": {"numpy.asarray": 4000}, "facts": {"python_calls": 4010, "host_reads": 16}, "culprits": reads}
    first, second = causes("host_reads python_calls", known, **now)
    assert first == "read back in each call: 16 × np.asarray at evaluate.py:15"
    assert second.startswith("Python in each call: numpy.asarray 0 → 4000")


def test_a_program_that_gave_its_arguments_away_and_is_gone_explains_lost_donation():
    """Eager operations in its place consume nothing; where another program takes its place they have no part in it."""
    step, add = launched_program(facts={"donated_bytes": 256}), launched_program(name="add", arguments=())
    known = baseline(launched={"step": 1}, launched_programs=(step,))
    changes = {"launched": {"add": 4}, "eager": True}
    started = "programs started in a call: add 0 → 4; gone: step"
    assert causes("donated_bytes", known, launched_programs=(add,), **changes) == [started]
    kept = (launched_program(facts={"donated_bytes": 256}), add)
    assert causes("donated_bytes", known, launched_programs=kept, **changes) == []


def test_functions_that_grew_are_named():
    """With the line of each; of a slower call they are the cause only if a call runs far more Python than before."""
    known = baseline(called={"model.Config.__hash__": 1, "len": 30, "hash": 1}, facts={"python_calls": 32})
    lines = Culprits(lines={"model.Config.__hash__": "model.py:6", "str.encode": "model.py:8"})
    now = {"called": {"model.Config.__hash__": 2000, "str.encode": 400, "len": 31}, "culprits": lines}
    text = "Python in each call: model.Config.__hash__ 1 → 2000 at model.py:6; str.encode 0 → 400 at model.py:8"
    for red in ("python_calls", "run_ns"):
        assert causes(red, known, facts={"python_calls": 2431}, **now) == [text]
    assert causes("run_ns", known, facts={"python_calls": 82}, called=now["called"]) == []
    assert causes("python_calls", facts={"python_calls": 81}, called={"len": 81}) == ["Python in each call: 81 × len"]


# The surroundings


def test_the_same_program_with_other_options_is_named():
    """What the compiler was told, where it is known of both sides and of the same program."""
    changed = replace(FINGERPRINTS, options="xla_cpu_enable_fast_math=True")
    assert causes("temp_bytes", baseline(), fingerprints=changed) == [
        "the same program, other compiler options: none → xla_cpu_enable_fast_math=True"
    ]
    other = replace(changed, program="p1")
    assert causes("temp_bytes", baseline(), fingerprints=other) == []  # the program is another one: not the options
    unknown = replace(FINGERPRINTS, options=None)
    assert causes("temp_bytes", baseline(fingerprints=unknown)) == []
    assert causes("temp_bytes", baseline(), fingerprints=unknown) == []


def test_the_same_program_in_another_environment_is_named():
    """A release of the compiler makes more of it, or takes longer; it does not retrace."""
    changes = {"environment": ENVIRONMENT | {"jaxlib": "0.12.0"}}
    text = "the same program in another environment: the compiler makes something else of it"
    assert causes("temp_bytes", baseline(), **changes) == [text]
    assert causes("compile_ns", baseline(), **changes) == [text]
    assert causes("traces", baseline(), **changes) == []


def test_what_somebody_set_is_named():
    """The flag, and not the hash of all options, which moves with it; the hash where nothing else is known."""
    hashed = {"compile_options": "12d4"}
    flag = {"environment": ENVIRONMENT | hashed | {"XLA_FLAGS": "--xla_new"}}
    text = "the same program under other settings: "
    assert causes("run_ns", baseline(), **flag) == [f"{text}XLA_FLAGS absent → --xla_new"]
    assert causes("temp_bytes", baseline(), environment=ENVIRONMENT | hashed) == [
        f"{text}compile_options absent → 12d4"
    ]


@pytest.mark.parametrize(
    ("changes", "leads"),
    [({}, True), ({"source": "s1"}, False), ({"source": None}, False), ({"program": FINGERPRINTS.program}, False)],
    ids=["same source", "changed source", "unknown source", "same program"],
)
def test_a_setting_that_acts_while_tracing_is_named(changes, leads):
    """The program is another one and no line of the project changed: the setting comes before the casts that it makes."""
    label = "float32[8,64] to float64"
    now = {
        "environment": ENVIRONMENT | {"jax_enable_x64": "True"},
        "fingerprints": replace(FINGERPRINTS, **{"program": "p1"} | changes),
        "widened": {label: 4},
    }
    known = baseline(environment=ENVIRONMENT | {"jax_enable_x64": "False"})
    first = causes("widened_bytes xla_bytes", known, **now)[0]
    assert first == (
        "traced under other settings: jax_enable_x64 False → True" if leads else f"wider floats: {label} 0 → 4"
    )


def test_of_plain_python_nobody_knows_that_its_programs_are_the_same():
    """Their names are, while the source changed: the environment is no sure cause."""
    changes = {
        "eager": True,
        "environment": ENVIRONMENT | {"jaxlib": "0.12.0"},
        "fingerprints": replace(FINGERPRINTS, source="s1"),
    }
    assert not any(
        "the same program" in text for text in causes("run_ns first_call_ns", baseline(eager=True), **changes)
    )


def test_a_product_that_is_new_is_not_told_as_gone():
    """Told the other way round, what only today's program has is new."""
    small = "float32[8,8] x float32[8,8]"
    (text,) = causes("temp_bytes", baseline(matmuls={DOT: 5}), matmuls={DOT: 3, small: 1}, facts={"matmul_flops": 9})
    assert f"gone: {small}" not in text


# Guesses


def test_the_largest_buffer_is_a_guess():
    """It is what memory consists of; whether it grew nobody knows. What changed says more than what there is."""
    culprits = Culprits(allocations=("768 kB f32[3,256,256] at model.py:12", "4 kB"))
    assert causes("temp_bytes", baseline(), culprits=culprits) == [
        "perhaps largest buffer: 768 kB f32[3,256,256] at model.py:12"
    ]
    assert causes("traces", baseline(), culprits=culprits) == []
    changes = {"operations": {ADD: 99}, "culprits": Culprits(allocations=("768 kB",), lines={ADD: "model.py:4"})}
    first, second = causes("temp_bytes", baseline(operations={ADD: 37}), **changes)
    assert (first, second) == (f"perhaps {ADD} 37 → 99 at model.py:4", "perhaps largest buffer: 768 kB")


def test_without_a_baseline_the_commonest_operation_is_a_guess():
    """There is nothing to compare with, so nothing grew."""
    assert causes("stablehlo_ops", None, signature=(W,), matmuls={}) == [
        "perhaps most of the program: 37 × stablehlo.add"
    ]


def test_without_a_baseline_the_largest_argument_is_a_guess():
    """It is most of what a call must be given, and says more of it than any operation."""
    large = Argument(path="xs", aval="float32[32,64,64]", nbytes=524288, donated=False)
    first = causes("argument_bytes", None, signature=(W, large, BATCH))[0]
    assert first == "perhaps largest argument: xs is float32[32,64,64] (524,288 bytes)"
    assert not any("largest argument" in text for text in causes("argument_bytes", baseline()))
    assert not any("largest argument" in text for text in causes("argument_bytes", None, signature=()))


@pytest.mark.parametrize(
    ("changes", "red", "beside"),
    [
        ({"matmuls": {DOT: 3}}, "matmul_flops", "temp_bytes"),
        ({"collectives": {"all-reduce float32[8] over 'data'": 3}}, "collectives", "run_ns"),
        ({"widened": {"bfloat16[8] → float32": 3}}, "widened_bytes", "peak_bytes"),
    ],
)
def test_without_a_baseline_a_count_explains_only_itself(changes, red, beside):
    """Nothing is known to have grown: what there is explains its own fact, and no memory or time."""
    ((name, _),) = next(iter(changes.values())).items()
    (text,) = causes(red, None, operations={}, **changes)
    assert text.removeprefix("wider floats: ") == f"3 × {name}"
    assert causes(beside, None, operations={}, signature=SIGNATURE, **{"matmuls": {}} | changes) == []


def test_what_a_loop_keeps_for_the_way_back_is_not_its_body_written_out():
    """A checkpoint that is lost takes its loop with it, and the others store more: that is no unrolled loop."""
    stores, product = "stablehlo.dynamic_update_slice 8x8x64xf32", "stablehlo.dot_general 8x64xf32"
    known = baseline(operations={"stablehlo.while 8x64xf32": 5, stores: 1, product: 4})
    now = {"stablehlo.while 8x64xf32": 4, stores: 7, product: 3}
    assert not any("unrolled" in text for text in causes("temp_bytes", known, operations=now))


def test_functions_come_before_what_they_call_of_python_itself():
    known = baseline(called={})
    called = {"len": 73, "traceback.walk_stack": 44}
    text = causes("python_calls", known, called=called, facts={"python_calls": 117})[0]
    assert text.startswith("Python in each call: traceback.walk_stack 0 → 44")
    assert "len" not in text


HUNK = ("@@ -5,3 +5,3 @@", "   }")
STEP = (
    "-    %cst.0 = stablehlo.constant dense<0.00999999977> : tensor<f32>",
    "+    %cst.0 = stablehlo.constant dense<2.000000e-03> : tensor<f32>",
)
TURNS = (
    "-    %c.1 = stablehlo.constant dense<20> : tensor<i32>",
    "+    %c.1 = stablehlo.constant dense<100> : tensor<i32>",
)
TAIL = "all operations are as before, loops may take other turns"


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ((*HUNK, *STEP), f"a constant changed: 0.01 → 0.002; {TAIL}"),
        ((*HUNK, *STEP, *HUNK, *STEP), f"a constant changed: 0.01 → 0.002; {TAIL}"),
        ((*HUNK, STEP[0], TURNS[0], STEP[1], TURNS[1]), f"2 constants changed: 0.01 → 0.002, 20 → 100; {TAIL}"),
        ((*HUNK, *STEP, "+    %1 = stablehlo.add %0, %0 : tensor<f32>"), None),
        ((*HUNK, STEP[0], TURNS[1]), None),
        ((*HUNK, *STEP, STEP[1]), None),
        ((*HUNK, *STEP, "… 3 more lines of this difference"), None),
        (("not shown: it calls Python",), None),
        ((), None),
    ],
    ids=["one", "twice", "two", "an operation", "another type", "one more", "cut off", "not shown", "nothing"],
)
def test_a_constant_is_the_cause_where_nothing_else_differs(changes, text):
    """Of anything else in the difference a constant is no explanation."""
    cause = other_constants(measurement(operations=LOOP), changes, alone=True)
    assert (cause and (cause.text, cause.sure)) == (text and (text, True))


@pytest.mark.parametrize(
    ("operations", "alone", "tail"), [(LOOP, False, TAIL), ({ADD: 2}, True, "all operations are as before")]
)
def test_a_constant_is_a_guess_beside_other_changes_or_without_a_loop(operations, alone, tail):
    """Another environment may have done it; without a loop there are no turns to speak of."""
    cause = other_constants(measurement(operations=operations), (*HUNK, *STEP), alone=alone)
    assert str(cause) == f"perhaps a constant changed: 0.01 → 0.002; {tail}"
