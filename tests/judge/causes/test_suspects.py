"""Causes: who is named for what got worse, in which order, and who must not be."""

from dataclasses import fields, replace

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
from jaxgate.model.measurement import Argument, Culprits, Fingerprints, Leaf
from jaxgate.model.numbers import Facts

ADD, DOT = "stablehlo.add 8x64xf32", "float32[8,64] x float32[64,64]"
W, BATCH = SIGNATURE
LOSS = Leaf(path="result[1]", aval="float32[]", nbytes=4, donated=False)
STATE = Leaf(path="result[0]['w']", aval="float32[64,64]", nbytes=16384, donated=False)
LOOP = {"stablehlo.while 8x64xf32": 1, ADD: 3}
CULPRITS, PRINTS, COUNTS = ({field.name for field in fields(part)} for part in (Culprits, Fingerprints, Facts))


def side(**changes):
    """Changes of a measurement: facts, fingerprints and culprits by their own names beside its fields."""
    found = {"facts": {}}
    culprits, prints = {}, {}
    for name, value in changes.items():
        if name in CULPRITS:
            culprits[name] = value
        elif name in PRINTS:
            prints[name] = value
        elif name in COUNTS and not isinstance(value, dict):  # of collectives and kernels there are histograms, too
            found["facts"][name] = value
        else:
            found[name] = value
    return found | {"culprits": Culprits(**culprits), "fingerprints": replace(FINGERPRINTS, **prints)}


def causes(red, before=None, /, **now):
    """What is named for some red quantities, as text; against the healthy baseline with changes, or without one."""
    known = None if before is None else baseline(**{**side(**before), "culprits": Culprits()})
    red = red.split() if isinstance(red, str) else red
    return [str(cause) for cause in rank_causes(measurement(**side(**now)), known, red)]


# Who must not be named

IN_VAIN = "traced and thrown away: 347 × select_n at model.py:9"
GUILTY = {
    "sampled_traces": 3, "host_callbacks": 2, "constant_bytes": 65_536, "matmul_flops": 9_000_000,
    "signature": (replace(W, donated=False, nbytes=32768), BATCH), "results": (STATE, LOSS),
    "operations": {ADD: 999}, "matmuls": {DOT: 9}, "collectives": {"psum float32[64,64] over data": 9},
    "widened": {"bfloat16[8,64] to float32": 9}, "launched": {"jit_step": 9}, "transferred": {"the host": 9},
    "called": {"model.Config.__hash__": 999}, "environment": ENVIRONMENT | {"jaxlib": "0.12.0"},
    "retraces": ("batch: float32[8] → float32[7]",), "constants": ("128x128xf32 (65,536 bytes)",),
    "lost": ("state['w']: no output has its type",), "callbacks": ("print_loss at model.py:9",),
    "reads": ("2 × item()",), "thrown_away": IN_VAIN, "allocations": ("768 kB f32[3,256,256]",),
}  # fmt: skip


@pytest.mark.parametrize("known", [None, {}], ids=["no baseline", "baseline"])
def test_where_nothing_is_red_nobody_is_blamed(known):
    """Whatever else there is to say of a program, a green case has no cause."""
    assert causes("", known, **GUILTY) == []
    assert causes("temp_bytes run_ns", known, **GUILTY) != []


def test_a_program_like_its_baseline_is_not_to_blame():
    """Where everything is red and nothing differs, no cause is made up."""
    assert causes(QUANTITIES, {}) == []


def test_a_gain_blames_nobody():
    """All that a cause could explain became better, and the program is quite another one: improved, no cause."""
    better = dict.fromkeys(("temp_bytes", "xla_bytes", "xla_flops", "stablehlo_ops", "matmul_flops"), 1)
    other = {"operations": {"stablehlo.tanh 8x64xf32": 1}, "matmuls": {"float32[8,8] x float32[8,8]": 1}}
    now = measurement(**side(**better, **other, program="p1"))
    verdict = judge(CASE, (), now, record(), strict=True, decision=decision(Status.SAME))
    assert (str(verdict.status), verdict.causes) == ("IMPROVED", ())


def test_a_gain_beside_a_loss_is_not_its_cause():
    """Of two things that changed only the one that can have done it is named."""
    retraced = "batch: float32[8] → float32[7]"
    now = side(traces=2, temp_bytes=1, operations={"stablehlo.tanh 8x64xf32": 1}, retraces=(retraced,))
    verdict = judge(CASE, (), measurement(**now), record(), strict=True)
    assert [str(cause) for cause in verdict.causes] == [retraced]


def test_a_claim_that_holds_blames_nobody():
    """Nor one that cannot be checked: what is not known has no cause."""
    grown = measurement(operations={ADD: 99}, reference=reference())
    for now in (grown, replace(grown, reference=None, operations={ADD: 120})):
        known = record(operations={ADD: 99})
        assert judge(CASE, (claim("temp_bytes <= reference"),), now, known, strict=True).causes == ()


# Who is named: all of them, in their order

RETRACED, UNKNOWN = "batch: float32[8] → float32[7]", "step at model.py:3: cause unknown"
LOST = ("state['w']: no output has its type", "state['b']: no output has its type")
CAST = {"bfloat16[8,64] to float32": 4}
CASTS = "wider floats: bfloat16[8,64] to float32 0 → 4"
GIVEN_UP = tuple(Argument(path=f"state[{i}]", aval="float32[4]", nbytes=1000, donated=True) for i in range(5))
KEPT = tuple(replace(leaf, donated=False) for leaf in GIVEN_UP)
SPREAD = (replace(W, nbytes=2048), replace(BATCH, nbytes=256))
LESS = "result[0]['w'] takes 16,384 bytes of each device, 2,048 before: sharded less"
SPREAD_RESULTS = {"results": (replace(STATE, nbytes=2048), LOSS)}
PSUM = "psum float32[64,64] over data"
ALL_STEPS = "stablehlo.add 32x8x64xf32"
AT_ONCE = f"{ALL_STEPS} 0 → 3 at model.py:4; gone: {ADD}, stablehlo.while 8x64xf32"
BARRIERS = {"stablehlo.optimization_barrier 8x64xf32": 2, ADD: 3}
NARROW, WIDE = "bfloat16[4,8] x bfloat16[8,8]", "float32[4,8] x float32[8,8]"
LOGITS = Leaf(path="result[2]", aval="float32[8,1000]", nbytes=32_000, donated=False)
LOSSES = replace(LOSS, aval="float32[8]", nbytes=32)
ALONE = {"results": (replace(LOSS, path="result"),)}
MOVED = {
    "eager": True,
    "transferred": {"multiply": 4, "add": 3, "the host": 1},
    "transfer_lines": {"the host": "train.py:35"},
}
HELD = {"kept_arrays": 1, "kept": "1 × float32[3], held by train.LOSSES"}
LEFT = "each step leaves arrays behind: 1 × float32[3], held by train.LOSSES"
STEP, SUM = launched_program(facts={"donated_bytes": 256}), launched_program(name="add", arguments=())
HASHED = {
    "called": {"model.Config.__hash__": 2000, "str.encode": 400, "len": 31},
    "lines": {"model.Config.__hash__": "model.py:6", "str.encode": "model.py:8"},
}
HASHES = "Python in each call: model.Config.__hash__ 1 → 2000 at model.py:6; str.encode 0 → 400 at model.py:8"
FEW = {"called": {"model.Config.__hash__": 1, "len": 30, "hash": 1}, "python_calls": 32}
TRACED = {"trace_calls": 9_000, "traced": {"check": 6_400, "other": 2}, "lines": {"check": "model.py:4"}}
ELSEWHERE = "the same program in another environment: the compiler makes something else of it"
SETTINGS = "the same program under other settings: "
BUFFER = "768 kB f32[3,256,256] at model.py:12"
FOUR = tuple(launched_program(name="step", fingerprint=str(number)) for number in range(4))
STEPS = {"launched_programs": FOUR[:1], "launched": {"step": 4}, "eager": True}
UNSPELT = {"jaxlib": "0.12.0"}
TURNS = [
    Argument(path=path, aval=aval, nbytes=4, donated=False, value=value)
    for path, aval, value in (("rtol", "float32[]", "0.001"), ("start", "float32[8]", "aa"), ("x", "float32[8]", "bb"))
]
GIVEN = tuple(replace(leaf, value=value) for leaf, value in zip(TURNS, ("1e-06", "cc", "bb"), strict=True))
SOLVED = {
    "turns": {"while float32[3]": 41, "while float32[7]": 90, "cond float32[3] branch 0": 0},
    "loop_turns": 131, "signature": tuple(TURNS),
}  # fmt: skip
LONGER = {"while float32[3]": 328, "while float32[7]": 90, "cond float32[3] branch 0": 500}

NAMED = [
    # the order: one cause of two losses before two causes of one each, and what it could explain besides does not count
    ("lost_bytes aliased_bytes traces", {}, {"lost": LOST[:1], "retraces": (RETRACED,)},
     [f"donated, but not reused: {LOST[0]}", RETRACED]),
    ("lost_bytes aliased_bytes traces compiles lowerings", {}, {"lost": LOST[:1], "retraces": (RETRACED,)},
     [RETRACED, f"donated, but not reused: {LOST[0]}"]),
    # of two that explain as much, the one that was seen before the guess
    ("temp_bytes xla_bytes", {}, {"operations": {ADD: 99}, "widened": CAST},
     [CASTS, f"perhaps {ADD} 37 → 99; gone: stablehlo.dot_general 8x64xf32"]),
    # as many elements are widened as before, by more casts: a batch that became a loop
    ("temp_bytes", {"widened": {"bfloat16[8,4] → float32": 1}}, {"widened": {"bfloat16[4] → float32": 8}}, []),
    # a retrace is told as it was explained, and a guess says that it is one; it explains what calls show and nothing else
    ("traces", {}, {"retraces": (RETRACED, "batch: float32[7] → float32[6]")}, [RETRACED]),
    ("compiles", {}, {"retraces": (UNKNOWN,)}, [f"perhaps {UNKNOWN}"]),
    ("sampled_traces", {}, {"sampled_traces": 3, "sampled_compiles": 2},
     ["perhaps 3 traces and 2 compiles while sampling: cause unknown"]),
    (QUANTITIES - {"traces", "lowerings", "compiles", "sampled_traces", "sampled_compiles"}, {},
     {"retraces": (RETRACED,)}, []),
    # who jits the function, and how often
    ("jitted", {}, {"jitted": 0},
     ["the function is no longer jitted by its own code: the gate jits it, its callers run each operation by itself"]),
    ("jitted", {"jitted": 0}, {"jitted": 0}, []),
    ("remade_jits", {}, {"remade_jits": 2, "remade": ("f", "g")}, ["jitted anew at each call, and traced: f, g"]),
    ("remade_jits", {"remade_jits": 2}, {"remade_jits": 2, "remade": ("f", "g")}, []),
    # what is no longer donated: three by path, the rest by number; without a baseline only that nothing is
    *[(red, {}, {"signature": (replace(W, donated=False), BATCH)}, ["no longer donated: state['w'] (16,384 bytes)"])
      for red in ("donated_bytes", "aliased_bytes", "peak_bytes", "state_bytes")],
    ("donated_bytes", {"signature": GIVEN_UP}, {"signature": KEPT},
     ["no longer donated: state[0], state[1], state[2] and 2 more (5,000 bytes)"]),
    ("peak_bytes", None, {"operations": {}, "matmuls": {}, "signature": (BATCH,)}, ["nothing is donated"]),
    ("peak_bytes", None, {"operations": {}, "matmuls": {}}, []),
    *[(red, {}, {"lost": LOST}, [f"donated, but not reused: {LOST[0]}; and 1 more"])
      for red in ("lost_bytes", "aliased_bytes", "peak_bytes", "state_bytes")],
    # Python in the program, which the tracer may not name; as many calls as before are fine
    ("host_callbacks", {}, {"host_callbacks": 2, "callbacks": ("f at model.py:9", "g")},
     ["the program calls Python: f at model.py:9; g"]),
    ("host_callbacks", {}, {"host_callbacks": 2},
     ["the program calls Python: a queue or a call that the tracer does not name"]),
    ("run_ns", {"host_callbacks": 2}, {"host_callbacks": 2, "callbacks": ("f",)}, []),
    # captured arrays, three of them, where they grew
    ("constant_bytes", {}, {"constant_bytes": 65_536, "constants": ("one", "two", "three", "four")},
     ["one; two; three"]),
    ("constant_bytes", None, {"constant_bytes": 65_536, "constants": ("one", "two", "three", "four")},
     ["one; two; three"]),
    ("constant_bytes", {"constant_bytes": 65_536}, {"constant_bytes": 65_536, "constants": ("one",)}, []),
    # less sharding: the array that grew most; one spread over more is a gain, one of another shape says nothing
    ("argument_bytes", {"signature": SPREAD}, {},
     ["state['w'] takes 16,384 bytes of each device, 2,048 before: sharded less; and 1 more"]),
    ("argument_bytes", {}, {"signature": SPREAD}, []),
    ("argument_bytes", {}, {"signature": (replace(W, aval="float32[64,128]", nbytes=32768), BATCH)}, []),
    # a result that comes back otherwise than it was given is not reused, and is another argument to the next step
    *[(red, SPREAD_RESULTS, {"results": (STATE, LOSS)}, [LESS]) for red in ("lost_bytes", "traces", "collectives")],
    ("argument_bytes", SPREAD_RESULTS, {"results": (STATE, LOSS)}, []),
    # communication that grew; only put together otherwise it is a guess
    ("collectives", {}, {"collectives": {PSUM: 2}, "lines": {PSUM: "model.py:12"}},
     [f"perhaps {PSUM} 0 → 2 at model.py:12"]),
    ("collectives", {"collectives": {PSUM: 2}}, {"collectives": {PSUM: 2}}, []),
    # loops that turn more often, with numbers by their values and arrays by name; branches are no turns,
    # and loops of another name are another way of doing it
    ("loop_turns", SOLVED,
     {"turns": LONGER, "loop_turns": 418, "signature": GIVEN, "lines": {"while float32[3]": "solve.py:9"}},
     ["a loop takes more turns, given rtol 0.001 → 1e-06, other values of start: while float32[3] 41 → 328 at solve.py:9"]),
    ("loop_turns", SOLVED, {"turns": {"while float32[8,3]": 328}, "loop_turns": 418, "signature": GIVEN}, []),
    ("loop_turns", SOLVED,
     {"turns": {"while float32[3]": 50, "while float32[7]": 9}, "loop_turns": 59, "signature": GIVEN}, []),
    # arrays that each step leaves behind lead over the few programs that make them, and not over many
    ("kept_arrays", {}, HELD, [LEFT]),
    ("kept_arrays", {"kept_arrays": 1}, HELD, []),
    *[(red, {}, HELD | {"launched": {"multiply": 1}}, [LEFT, "programs started in a call: multiply 0 → 1"])
      for red in ("kept_arrays launches", "kept_arrays launches run_ns")],
    ("kept_arrays launches run_ns", {}, HELD | {"launched": {"multiply": 200}},
     ["programs started in a call: multiply 0 → 200", LEFT]),
    ("host_ns run_ns", {}, HELD, []),  # made by programs that were there: these take no longer for it
    # functions that tracing calls more; of one that the baseline's list has no room for nobody knows
    ("trace_calls", {"traced": {"other": 2}}, TRACED, ["tracing calls check 0 → 6400 at model.py:4"]),
    ("trace_calls", {"traced": {"other": 1, **{f"f{number}": 9 for number in range(19)}}}, TRACED,
     ["tracing calls other 1 → 2"]),
    ("trace_calls", {}, TRACED, []),
    # reference cycles, objects or arrays, where there are more than before
    *[row for name in ("cyclic_objects", "cyclic_arrays") for row in (
        (name, {}, {name: 30, "cycles": "1 × Node"},
         ["each step makes reference cycles, which only the collector frees: 1 × Node"]),
        (name, {name: 30}, {name: 30, "cycles": "1 × Node"}, []),
    )],
    ("program_variants", STEPS, STEPS | {"launched_programs": FOUR},
     ["a program for each value of a static argument, or each shape: step 1 → 4"]),
    ("program_variants", STEPS, STEPS | {"launched_programs": FOUR, "launched": {"step": 5}}, []),
    # a loop whose steps are done at once, a guess before the buffers
    ("temp_bytes", {"operations": LOOP}, {"operations": {ALL_STEPS: 3}, "lines": {ALL_STEPS: "model.py:4"}},
     [f"perhaps the steps of a loop are done all at once: stablehlo.while 1 → 0 at model.py:4; {AT_ONCE}",
     f"perhaps {AT_ONCE}"]),
    # fewer products of the same kind and fewer barriers: what remat recomputed is kept
    ("temp_bytes", {"operations": BARRIERS, "matmuls": {DOT: 5}},
     {"operations": {ADD: 3}, "matmuls": {DOT: 3}, "matmul_flops": 600_000},
     [f"less is recomputed, so more is kept: remat is lost or keeps more (optimization_barrier 2 → 0); {DOT} 5 → 3"]),
    ("matmul_flops", {"operations": BARRIERS, "matmuls": {DOT: 5}},
     {"operations": {ADD: 3}, "matmuls": {DOT: 3}, "matmul_flops": 600_000}, []),
    # as many products and fewer barriers; with fewer products remat itself is lost, which is said instead
    ("largest_batch", {"operations": BARRIERS}, {"operations": {ADD: 3}},
     ["a recomputation is not held back until it is needed: optimization_barrier 2 → 0"]),
    ("largest_batch", {"operations": BARRIERS}, {"operations": BARRIERS}, []),
    ("largest_batch", {"operations": BARRIERS}, {"operations": {ADD: 3}, "matmul_flops": 600_000}, []),
    # names of a policy that no array has, and random bits, where there are more
    ("unmatched_names", {}, {"unmatched_names": 1, "unmatched": ("attention",)},
     ["no array has the name that a policy of jax.checkpoint says: 'attention'"]),
    ("unmatched_names", {"unmatched_names": 1}, {"unmatched_names": 1, "unmatched": ("attention",)}, []),
    ("random_bits", {}, {"random_bits": 64, "drawn": ("u32[2]", "u32[3]")},
     ["more random bits are drawn, now u32[2], u32[3]"]),
    ("random_bits", {"random_bits": None}, {"random_bits": 64, "drawn": ("u32[2]",)}, []),
    # products by their operands, where there is more such work
    ("matmul_flops", {}, {"matmul_flops": 2_000_000, "matmuls": {DOT: 6}, "lines": {DOT: "model.py:40"}},
     [f"{DOT} 3 → 6 at model.py:40"]),
    ("xla_flops", {}, {"matmuls": {DOT: 6}}, []),
    ("widened_bytes", {}, {"widened": CAST, "lines": {"bfloat16[8,64] to float32": "model.py:7"}},
     [f"{CASTS} at model.py:7"]),
    ("widened_bytes", {"widened": CAST}, {"widened": CAST}, []),
    # a cast that widens an operand is the cause of the product; without one the product is
    ("temp_bytes", {"matmuls": {NARROW: 2}}, {"matmuls": {WIDE: 2}}, [f"products of wider floats: {NARROW} → {WIDE}"]),
    ("temp_bytes", {"matmuls": {WIDE: 2}}, {"matmuls": {NARROW: 2}}, []),
    ("temp_bytes", {"matmuls": {NARROW: 2}}, {"matmuls": {WIDE: 2}, "widened": CAST},
     [CASTS, f"products of wider floats: {NARROW} → {WIDE}"]),
    # what is returned besides; a loss that became a dictionary of one is the same
    ("output_bytes", {"results": (STATE, LOSS)}, {"results": (STATE, LOSS, LOGITS)},
     ["more is returned: result[2] is float32[8,1000] (32,000 bytes), new"]),
    ("output_bytes", {"results": (STATE, LOSS)}, {"results": (STATE, LOSSES)},
     ["more is returned: result[1] is float32[8] (32 bytes), float32[] before"]),
    ("output_bytes", ALONE, {"results": (replace(LOSS, path="result['loss']"),)}, []),
    ("output_bytes", ALONE, {"results": (replace(LOSSES, path="result['loss']"),)},
     ["more is returned: result['loss'] is float32[8] (32 bytes), float32[] before"]),
    # what plain Python starts, moves and reads back
    ("launches", {}, {"launched": {"jit_step": 1, "jit_add": 4}, "eager": True},
     ["programs started in a call: jit_add 0 → 4; jit_step 0 → 1"]),
    ("host_transfers", {"transferred": {"multiply": 4, "add": 2, "step": 1}}, MOVED,
     ["moved between host and device in each call: 3 for add (2 before); 1 for the host at train.py:35"]),
    ("host_transfers", {}, MOVED,
     ["moved between host and device in each call: 4 for multiply; 3 for add; 1 for the host at train.py:35"]),
    *[(red, {}, {"transferred": {"device_put": 8}, "launched": {program: 1}, "eager": True},
       ["moved between host and device in each call: 8 for device_put",
       f"programs started in a call: {program} 0 → 1"][::order])
      for program, order in (("stack", 1), ("dot", -1)) for red in ("host_transfers launches",
      "host_transfers launches run_ns")],
    ("host_reads", {}, {"reads": ("2 × item() at loop.py:3",), "eager": True},
     ["read back in each call: 2 × item() at loop.py:3"]),
    # NumPy, which gets what is read back, calls Python for each
    ("host_reads python_calls", {"called": {"len": 1}, "python_calls": 10, "host_reads": 0},
     {"called": {"numpy.asarray": 4000}, "python_calls": 4010, "host_reads": 16, "reads": ("16 × np.asarray",)},
     ["read back in each call: 16 × np.asarray", "Python in each call: numpy.asarray 0 → 4000"]),
    # eager operations in place of a program consume nothing; beside it they have no part in it
    ("donated_bytes", {"launched": {"step": 1}, "launched_programs": (STEP,)},
     {"launched": {"add": 4}, "launched_programs": (SUM,), "eager": True},
     ["programs started in a call: add 0 → 4; gone: step"]),
    ("donated_bytes", {"launched": {"step": 1}, "launched_programs": (STEP,)},
     {"launched": {"add": 4}, "launched_programs": (STEP, SUM), "eager": True}, []),
    ("donated_bytes", {"launched_programs": (STEP,)}, {"launched_programs": (replace(STEP, fingerprint="1", facts={}),)},
     ["no longer donated: 256 bytes of the arguments of step"]),
    # waiting between launches, for the device or for something else
    ("host_waits", {}, {"host_waits": 2, "called": {"a.block_until_ready": 2}},
     ["waits for the device in each call: a.block_until_ready 0 → 2"]),
    ("host_waits", {}, {"host_waits": 2, "called": {"time.sleep": 2}}, ["waits in each call: time.sleep 0 → 2"]),
    ("host_waits", {}, {"called": {"time.sleep": 2}}, []),
    # of a slower call Python is the cause only if it runs far more than before
    *[(red, FEW, HASHED | {"python_calls": 2431}, [HASHES]) for red in ("python_calls", "run_ns")],
    ("run_ns", FEW, HASHED | {"python_calls": 82}, []),
    ("python_calls", None, {"python_calls": 81, "called": {"len": 81}}, ["Python in each call: 81 × len"]),
    # what they call of Python itself is left out beside functions
    ("python_calls", {"called": {}}, {"called": {"len": 73, "traceback.walk_stack": 44}, "python_calls": 117},
     ["Python in each call: traceback.walk_stack 0 → 44"]),
    # other options and another environment of the same program; what is unknown, or of another program, is not
    ("temp_bytes", {}, {"options": "xla_x=True"}, ["the same program, other compiler options: none → xla_x=True"]),
    ("temp_bytes", {}, {"options": "xla_x=True", "program": "p1"}, []),
    ("temp_bytes", {"options": None}, {}, []),
    ("temp_bytes", {}, {"options": None}, []),
    *[(red, {}, {"environment": ENVIRONMENT | UNSPELT}, said) for red,
     said in (("temp_bytes", [ELSEWHERE]), ("compile_ns", [ELSEWHERE]), ("traces", []))],
    # the flag that somebody set, and not the hash of all options, which moves with it
    ("run_ns", {}, {"environment": ENVIRONMENT | {"compile_options": "12d4", "XLA_FLAGS": "--x"}},
     [f"{SETTINGS}XLA_FLAGS absent → --x"]),
    ("temp_bytes", {}, {"environment": ENVIRONMENT | {"compile_options": "12d4"}},
     [f"{SETTINGS}compile_options absent → 12d4"]),
    # what memory consists of is a guess, and what changed says more
    ("temp_bytes", {}, {"allocations": (BUFFER, "4 kB")}, [f"perhaps largest buffer: {BUFFER}"]),
    ("traces", {}, {"allocations": (BUFFER,)}, []),
    ("temp_bytes", {"operations": {ADD: 37}}, {"operations": {ADD: 99}, "allocations": ("768 kB",)},
     [f"perhaps {ADD} 37 → 99", "perhaps largest buffer: 768 kB"]),
    # without a baseline nothing is known to have grown: a count explains its own fact, and no memory or time
    ("stablehlo_ops", None, {"signature": (W,), "matmuls": {}}, ["perhaps most of the program: 37 × stablehlo.add"]),
    *[row for what, changes, red, beside in (
        (f"3 × {DOT}", {"matmuls": {DOT: 3}}, "matmul_flops", "temp_bytes"),
        (f"3 × {PSUM}", {"collectives": {PSUM: 3}, "matmuls": {}}, "collectives", "run_ns"),
        ("wider floats: 3 × bfloat16[8] → float32", {"widened": {"bfloat16[8] → float32": 3}, "matmuls": {}},
         "widened_bytes", "peak_bytes"),
    ) for row in ((red, None, {"operations": {}, **changes}, [what]),
    (beside, None, {"operations": {}, **changes}, []))],
]  # fmt: skip


@pytest.mark.parametrize(("red", "before", "now", "said"), NAMED)
def test_who_is_named(red, before, now, said):
    """All causes of what is red, beside a baseline with these changes or (``None``) without one."""
    assert causes(red, before, **now) == said


def test_communication_that_sends_more_is_sure():
    """Beside the guess in the table: the fact grew, too."""
    now = side(collectives={PSUM: 2})
    now["facts"] = {"collectives": 2}
    found = rank_causes(measurement(**now), baseline(), ["collectives"])
    assert [str(cause) for cause in found] == [f"{PSUM} 0 → 2"]


# Who comes first, before guesses that follow from it

TANH, SEEN = "stablehlo.tanh 8x64xf32", "stablehlo.dot_general 8x64xf32"
PART, FIVE = LOOP | {ADD: 2, TANH: 1, SEEN: 1}, LOOP | {ADD: 10, TANH: 5, SEEN: 5}
PLAIN, PLAIN_FIVE = LOOP | {ADD: 2, TANH: 1}, LOOP | {ADD: 10, TANH: 5}
SMALL, LARGE = "stablehlo.convolution 2x16x16x8xf32", "stablehlo.convolution 2x32x32x8xf32"
TURN_BY_TURN = "steps that were done all at once follow each other in a loop: stablehlo.while 0 → 1"
CUT = {"operations": {"stablehlo.dot_general 64xf32": 1, "stablehlo.while 8x64xf32": 1, ADD: 9}}
WHOLE = {"matmuls": {DOT: 1}, "operations": {SEEN: 1}}
STORE, ROWS = "stablehlo.dynamic_update_slice 32x64x64xf32", "stablehlo.dynamic_update_slice 8x64xf32"
REMAT = {**LOOP, "stablehlo.optimization_barrier 8x64xf32": 1, STORE: 2}
MOVED_BY = {"stablehlo.while 8x64xf32": 1, "stablehlo.dynamic_slice 8x64xf32": 2}
REMADE = "more is recomputed, so less is kept: remat is new or keeps less"
FRESH = {"python_calls": 9, "launched_programs": (launched_program(),), "eager": True}
WAITS = "perhaps Python around the same programs takes longer and calls no more functions"
POTRF = {"kernels": {"lapack_spotrf_ffi": 20, "fused add": 40}}
EACH_TURN = "a loop does in each turn what was done before it: lapack_spotrf_ffi 1 → 20"
BLOCKS = "a kernel holds more at once: float32[128,256] in norm at model.py:4"
X64 = "traced under other settings: jax_enable_x64 False → True"
UNDER_X64 = {"environment": ENVIRONMENT | {"jax_enable_x64": "True"}, "widened": {"float32[8,64] to float64": 4}}
STATES = Argument(path="xs", aval="float32[32,64,64]", nbytes=524288, donated=False)
COPY, SCATTER = "copy float32[64,64]", "scatter apart in float32[8,64]"
COPIED = (
    {"kernels": {COPY: 1, "fused add": 7}, "copied_bytes": 0},
    {"kernels": {COPY: 65, "fused add": 7}, "copied_bytes": 9_000_000},
)
SCATTERED = (
    {"kernels": {"fused add": 7}, "scattered_bytes": 0},
    {"kernels": {SCATTER: 65, "fused add": 7}, "scattered_bytes": 9_000_000},
)

FIRST = [  # red, before, now, how the first cause begins, whether it does
    # what is traced in vain is named where the program stays as it is: an unrolled loop writes more in vain, too
    ("trace_equations", {}, {"trace_equations": 900, "stablehlo_ops": 40, "thrown_away": IN_VAIN}, IN_VAIN, True),
    ("trace_equations", {}, {"trace_equations": 900, "stablehlo_ops": 300, "thrown_away": IN_VAIN}, IN_VAIN, False),
    # only what is red counts; how much is explained weighs more than how sure it is, and what a guess explains counts half
    ("aliased_bytes lost_bytes xla_bytes", {}, {"operations": {ADD: 99}, "lost": LOST}, "donated, but not reused",
     True),
    ("temp_bytes stablehlo_ops compile_ns", {}, {"operations": {ADD: 99}, "widened": CAST}, f"perhaps {ADD} 37 → 99",
     True),
    ("temp_bytes stablehlo_ops", {}, {"operations": {ADD: 99}, "widened": CAST}, "wider floats", True),
    ("temp_bytes", {"widened": {"bfloat16[8,4] → float32": 1}}, {"widened": {"bfloat16[4] → float32": 9}},
     "wider floats", True),
    # an unrolled loop needs fewer loops and more operations, and is placed by what is new: an optimiser has as many sums
    ("stablehlo_ops", {"operations": LOOP}, {"operations": {ADD: 64}},
     f"a loop is unrolled: stablehlo.while 1 → 0; {ADD} 3 → 64", True),
    ("stablehlo_ops", {"operations": LOOP}, {"operations": {ADD: 2}}, "a loop is unrolled", False),
    ("stablehlo_ops", {"operations": LOOP}, {"operations": {**LOOP, ADD: 64}}, "a loop is unrolled:", False),
    ("stablehlo_ops", {"operations": {**LOOP, ADD: 14, SEEN: 2}},
     {"operations": {ADD: 44, SEEN: 32}, "lines": {ADD: "optimiser.py:9, cell.py:3", SEEN: "cell.py:3"}},
     "a loop is unrolled: stablehlo.while 1 → 0 at cell.py:3; ", True),
    # a checkpoint that is lost takes its loop with it, and the others store more: that is no unrolled loop
    ("temp_bytes", {"operations": {"stablehlo.while 8x64xf32": 5, ROWS: 1, SEEN: 4}},
     {"operations": {"stablehlo.while 8x64xf32": 4, ROWS: 7, SEEN: 3}}, "a loop is unrolled", False),
    # unrolled in part: sure where products say it, a guess where all operations are as many times as many
    ("stablehlo_ops", {"operations": PART, "matmuls": {DOT: 20}},
     {"operations": FIVE, "matmuls": {DOT: 20}, "lines": {SEEN: "model.py:4"}},
     f"a loop is unrolled in part: {SEEN} 1 → 5 at model.py:4", True),
    ("stablehlo_ops", {"operations": PART, "matmuls": {DOT: 20}}, {"operations": FIVE, "matmuls": {DOT: 40}},
     "a loop is unrolled in part", False),
    ("stablehlo_ops", {"operations": PLAIN}, {"operations": PLAIN_FIVE},
     "perhaps a loop is unrolled in part: stablehlo.add", True),
    *[("stablehlo_ops", {"operations": PLAIN}, {"operations": other}, "perhaps a loop is unrolled in part", False)
      for other in (PLAIN_FIVE | {ADD: 5}, PLAIN_FIVE | {"stablehlo.sine 8x64xf32": 9}, {ADD: 10})],
    # Python that takes longer and calls no more waits; where it calls more, or starts another program, that is the cause
    ("host_ns", FRESH, FRESH, WAITS, True),
    ("host_ns", FRESH, FRESH | {"python_calls": 10}, WAITS, False),
    ("host_ns", FRESH, FRESH | {"program": "p1"}, WAITS, False),
    # of the optimised program: of another one what it does, of the same what another compiler makes of it; a little is no cause
    *[row for (before, now), fact, what, label, few in (
        (COPIED, "copied_bytes", "arrays are copied", f"{COPY} 1 → 65", {"kernels": {"copy float32[8]": 2}}),
        (SCATTERED, "scattered_bytes", "elements are picked far apart in memory", f"{SCATTER} 0 → 65",
         {"scattered_bytes": 9}),
    ) for row in (
        (fact, before, now | {"program": "p1"}, f"{what}: {label}", True),
        (fact, before, now | {"environment": {**ENVIRONMENT, "jaxlib": "9.9"}}, f"{ELSEWHERE}: {label}", True),
        (fact, before, now | {"program": "p1"} | few, what, False),
    )],
    ("block_bytes", {"block_bytes": 4_096},
     {"block_bytes": 131_072, "blocks": "float32[128,256] in norm at model.py:4"}, BLOCKS, True),
    ("block_bytes", {"block_bytes": 4_096}, {"block_bytes": 4_096, "blocks": "float32[128,256] in norm at model.py:4"},
     BLOCKS, False),
    # a routine that moved into a loop stands in the program once, as before; a loop that is written out is another thing,
    # and so is one that was in a loop before
    ("kernels", {"kernels": {"lapack_spotrf_ffi": 1, "fused add": 1}}, POTRF, EACH_TURN, True),
    ("kernels", {"kernels": {"lapack_spotrf_ffi": 1, "fused add": 1}}, POTRF | {"operations": {ADD: 90}}, EACH_TURN,
     False),
    ("kernels", {"kernels": {"lapack_spotrf_ffi": 2, "fused add": 1}}, POTRF, "a loop does", False),
    # products that give more of the same operands
    ("matmul_flops", {"operations": {SMALL: 1, ADD: 3}, "matmul_flops": 250_000}, {"operations": {LARGE: 1, ADD: 3}},
     f"the same products of larger arrays: {SMALL} → {LARGE}", True),
    ("matmul_flops", {"operations": {SMALL: 1, ADD: 3}}, {"operations": {LARGE: 1, ADD: 3}}, "the same products",
     False),
    # a loop in place of arrays of all steps is a guess; another one beside them is none, nor are copies of a program
    ("xla_bytes", {"operations": {ALL_STEPS: 6}},
     {"operations": LOOP, "lines": {"stablehlo.while 8x64xf32": "model.py:4"}},
     f"perhaps {TURN_BY_TURN} at model.py:4", True),
    ("xla_bytes", {"operations": {ALL_STEPS: 6}}, {"operations": {ALL_STEPS: 6, **LOOP}}, "perhaps steps that", False),
    ("xla_bytes", {"operations": {ALL_STEPS: 6}},
     {"operations": {"stablehlo.while 8xf32": 8, "stablehlo.add 8xf32": 24}}, "perhaps steps that", False),
    # products cut into the turns of a loop: the same FLOPs, in more products of which no more stand in the program
    ("kernels", WHOLE, CUT | {"matmuls": {"float32[64] x float32[64,64]": 8}}, TURN_BY_TURN, True),
    ("kernels", WHOLE, CUT | {"matmuls": {DOT: 1}}, TURN_BY_TURN, False),
    # gone with its body, unrolled, or still there: not done at once
    *[("temp_bytes", {"operations": LOOP}, {"operations": now}, "perhaps the steps of a loop are done all at once",
     False) for now in ({ADD: 2}, {ADD: 64}, {**LOOP, ALL_STEPS: 3})],
    # a barrier where nothing is computed twice holds back no recomputation
    ("temp_bytes", {"operations": {**MOVED_BY, "stablehlo.optimization_barrier 8x64xf32": 1}, "matmuls": {},
     "matmul_flops": 0}, {"operations": MOVED_BY, "matmuls": {}, "matmul_flops": 0},
     "what a loop carries may be copied, as nothing holds it back: optimization_barrier 1 → 0", True),
    # an array that a loop keeps of each step, unless something larger is new or it is no more than what is given
    *[("temp_bytes", {"operations": LOOP}, {"operations": {**LOOP, **new}},
     f"a loop keeps an array of each of its steps: {STORE} 0 → 1", found) for new, found in (
        ({STORE: 1}, True), ({STORE: 1, "stablehlo.broadcast_in_dim 32x64x64xf32": 1}, True),
         ({STORE: 1, "stablehlo.dot_general 64x64x64xf32": 1}, False), ({ROWS: 1}, False))],
    # however small it is, where a loop that was there reads it again
    ("temp_bytes", {"operations": LOOP}, {"operations": {**LOOP, ROWS: 1, "stablehlo.dynamic_slice 1x64xf32": 1}},
     f"a loop keeps an array of each of its steps: {ROWS} 0 → 1", True),
    ("temp_bytes", {"operations": {ADD: 3}}, {"operations": {**LOOP, ROWS: 1, "stablehlo.dynamic_slice 1x64xf32": 1}},
     "a loop keeps", False),
    # remat that is new or keeps less makes the same products more often; not where it keeps as much, nor other products
    *[("matmul_flops", {"operations": before, "matmuls": {DOT: 2}, "matmul_flops": 600_000},
     {"operations": REMAT | {STORE: 1}, "matmuls": made, "matmul_flops": 900_000}, REMADE, named) for before, made,
     named in (
        (LOOP, {DOT: 3}, True), (REMAT, {DOT: 3}, True), (REMAT | {STORE: 1}, {DOT: 3}, False),
         (REMAT, {DOT: 1, "float32[9,64] x float32[64,64]": 3}, False))],
    # as many bytes as before in another order are not more
    ("output_bytes xla_bytes", {"results": (STATE, LOSS)},
     {"results": (replace(STATE, nbytes=4), replace(LOSS, nbytes=16384)), "operations": {ADD: 99}}, "more is returned",
     False),
    # a setting that acts while tracing, where no line changed, comes before the casts that it makes
    *[("widened_bytes xla_bytes", {"environment": ENVIRONMENT | {"jax_enable_x64": "False"}}, UNDER_X64 | changes, X64,
     leads) for changes, leads in (
        ({"program": "p1"}, True), ({"program": "p1", "source": "s1"}, False),
         ({"program": "p1", "source": None}, False), ({}, False))],
    # of plain Python whose programs are unknown nobody knows that they are the same
    ("run_ns first_call_ns", {"eager": True},
     {"eager": True, "environment": ENVIRONMENT | UNSPELT, "source": "s1", "operations": {ADD: 99}},
     "the same program", False),
    # the largest argument, without a baseline: it says more of them than any operation
    ("argument_bytes", None, {"signature": (W, STATES, BATCH)},
     "perhaps largest argument: xs is float32[32,64,64] (524,288 bytes)", True),
    ("argument_bytes", None, {"signature": ()}, "perhaps largest argument", False),
]  # fmt: skip


@pytest.mark.parametrize(("red", "before", "now", "begins", "found"), FIRST)
def test_who_comes_first(red, before, now, begins, found):
    """Where it must not be the cause it is none of the others either."""
    said = causes(red, before, **now)
    assert said[0].startswith(begins) if found else not any(one.startswith(begins) for one in said)


def test_the_root_comes_before_what_follows_from_it():
    """Of equals, a lost loop before the products that it leaves, and both before the operations."""
    changes = {"operations": {ADD: 64}, "matmuls": {DOT: 64}, "matmul_flops": 9_000_000}
    named = causes("temp_bytes stablehlo_ops xla_flops", {"operations": LOOP}, **changes)
    assert [text.split(" ")[0] for text in named] == ["a", "float32[8,64]", "perhaps"]


def test_a_product_that_is_new_is_not_told_as_gone():
    """Told the other way round, what only today's program has is new."""
    small = "float32[8,8] x float32[8,8]"
    (text,) = causes("temp_bytes", {"matmuls": {DOT: 5}}, matmuls={DOT: 3, small: 1}, matmul_flops=9)
    assert f"gone: {small}" not in text


# Comparisons that are red by themselves

LATER = {"evaluate": 4, "save": 10}


@pytest.mark.parametrize(
    ("before", "steps", "found"),
    [
        ({}, 20, "evaluate at train.py:12 in step 4, save in step 10"),
        ({}, 9, "evaluate at train.py:12 in step 4"),  # the baseline's steps went no further
        ({"evaluate": 8}, 20, "save in step 10"),
        ({"evaluate": 9}, 9, ""),
        (LATER, 20, ""),
        ({}, 0, ""),  # a baseline of before
    ],
)
def test_a_program_that_a_later_step_starts_is_red_where_the_baseline_went_as_far(before, steps, found):
    """Its own step does not count: it comes at every so many."""
    now = measurement(later=LATER, steps=20, culprits=Culprits(lines={"evaluate": "train.py:12"}))
    verdict = judge(CASE, (), now, record(later=before, steps=steps), strict=True)
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


# Constants

HUNK = ("@@ -5,3 +5,3 @@", "   }")
RATE = (
    "-    %cst.0 = stablehlo.constant dense<0.00999999977> : tensor<f32>",
    "+    %cst.0 = stablehlo.constant dense<2.000000e-03> : tensor<f32>",
)
COUNT = (
    "-    %c.1 = stablehlo.constant dense<20> : tensor<i32>",
    "+    %c.1 = stablehlo.constant dense<100> : tensor<i32>",
)
TAIL = "all operations are as before, loops may take other turns"


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ((*HUNK, *RATE), f"a constant changed: 0.01 → 0.002; {TAIL}"),
        ((*HUNK, *RATE, *HUNK, *RATE), f"a constant changed: 0.01 → 0.002; {TAIL}"),
        ((*HUNK, RATE[0], COUNT[0], RATE[1], COUNT[1]), f"2 constants changed: 0.01 → 0.002, 20 → 100; {TAIL}"),
        ((*HUNK, *RATE, "+    %1 = stablehlo.add %0, %0 : tensor<f32>"), None),
        ((*HUNK, RATE[0], COUNT[1]), None),
        ((*HUNK, *RATE, RATE[1]), None),
        ((*HUNK, *RATE, "… 3 more lines of this difference"), None),
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
    cause = other_constants(measurement(operations=operations), (*HUNK, *RATE), alone=alone)
    assert str(cause) == f"perhaps a constant changed: 0.01 → 0.002; {tail}"
