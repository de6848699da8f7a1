"""What a compiled program asks of one device: products, bytes of its memory, what it sends; what is not shown is said."""

import jax
import jax.numpy as jnp
import pytest
from support.hlo import ADD, STORED, branches, loop, program

from jaxgate.ext.targets.model import Target
from jaxgate.model.roofline import RESOURCES
from jaxgate.observe.hlo.demand import BYTES, count_products, count_traffic, read_demand
from jaxgate.observe.hlo.parser import read_hlo

V5E, H200 = Target.parse("tpu:v5e:2x4"), Target.parse("gpu:h200:8")


def products(text):
    found = count_products(read_hlo(text))
    return dict(found.counts), list(found.more)


def moved(*lines, before=""):
    """The bytes that a program of these lines moves, all of which are known."""
    found = count_traffic(read_hlo(program(*lines, before=before)))
    assert not found.more
    return found.counts[BYTES]


# Products


@pytest.mark.parametrize("release", ["0.10", "0.12"])
@pytest.mark.parametrize(("name", "flops"), [("layers", 589_824), ("train", 327_680), ("every", 0)])
def test_three_compilers_agree(name, flops, release):
    """A loop of six layers and a train step have as many FLOPs on a CPU, a TPU and a GPU, in any type."""
    for platform in ("cpu", "tpu", "cuda"):
        counts, more = products(STORED[f"{platform}-{release}/{name}"])
        assert (sum(counts.values()), more) == (flops, []), platform


DOT = "dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
CUBLAS = (
    'custom-call(%a, %b), custom_call_target="__cublas$gemm", backend_config={"gemm_backend_config":'
    '{"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["0"]}}}'
)
BY_HAND = {
    "the wider type": ("bf16[8,32]", "f32[32,16]", f"f32[8,16] {DOT}", {"float32": 2 * 8 * 16 * 32}),
    "cuBLAS": ("f16[8,32]", "f16[32,16]", f"(f16[8,16], s8[4194304]) {CUBLAS}", {"float16": 2 * 8 * 16 * 32}),
    "matrices on a TPU": (
        "bf16[8,32]",
        "bf16[32,16]",
        "bf16[8,16] convolution(%a, %b), dim_labels=bf_io->bf",
        {"bfloat16": 2 * 8 * 16 * 32},
    ),
    # The axis 0 has one tap for each result, all others fall between inputs or outside.
    "four in one": (
        "bf16[4,8,32]",
        "bf16[4,32,16]",
        "bf16[4,8,16] convolution(%a, %b), window={size=4 stride=3 pad=0_0 lhs_dilate=4}, dim_labels=0bf_0io->0bf",
        {"bfloat16": 4 * 2 * 8 * 16 * 32},
    ),
    # 1 x 5 inputs, 3 taps, one zero at each side: 2 + 3 + 3 + 3 + 2 taps.
    "padding": (
        "f32[1,5,1]",
        "f32[3,1,1]",
        "f32[1,5,1] convolution(%a, %b), window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f",
        {"float32": 2 * 13},
    ),
    "strides of two": (
        "f32[1,5,1]",
        "f32[3,1,1]",
        "f32[1,3,1] convolution(%a, %b), window={size=3 stride=2 pad=1_1}, dim_labels=b0f_0io->b0f",
        {"float32": 2 * 7},
    ),
    "groups": (
        "f32[1,5,4]",
        "f32[1,1,4]",
        "f32[1,5,4] convolution(%a, %b), window={size=1}, dim_labels=b0f_0io->b0f, feature_group_count=4",
        {"float32": 2 * 5 * 4},
    ),
}


@pytest.mark.parametrize(("left", "right", "line", "flops"), BY_HAND.values(), ids=BY_HAND)
def test_a_product_by_hand(left, right, line, flops):
    """Two FLOPs for each result and term; taps on numbers of the input count, those on padding do not."""
    assert products(program(f"%a = {left} parameter(0)", f"%b = {right} parameter(1)", f"%c = {line}")) == (flops, [])


SQUARE = "dot(%x, %x), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
ONE = 2 * 8**3


def test_a_loop_counts_as_often_as_it_runs():
    """One of unknown length counts once, and is said to."""
    assert products(loop("f32[8,8]", SQUARE, 32)) == ({"float32": 32 * ONE}, [])
    assert products(loop("f32[8,8]", SQUARE)) == ({"float32": ONE}, ["a loop of unknown length counts once"])
    traffic = [count_traffic(read_hlo(loop("f32[256]{0}", "tanh(%x)", turns))) for turns in (32, None)]
    assert [(found.counts[BYTES], list(found.more)) for found in traffic] == [
        (32 * 2 * KB, []),
        (2 * KB, ["a loop of unknown length counts once"]),
    ]


def test_of_branches_the_cheapest_counts():
    """Which one runs is not known, so no more than the cheapest is sure; equal ones leave no doubt."""
    start = ("%p = pred[] parameter(0)", "%x = f32[8,8] parameter(1)")
    taken = "%c = f32[8,8] conditional(%p, %x, %x), true_computation=%dear, false_computation="
    before = branches("f32[8,8]", SQUARE)
    either = products(program(*start, f"{taken}%cheap", before=before))
    assert either == ({}, ["of a conditional the cheapest branch counts"])
    assert products(program(*start, f"{taken}%dear", before=before)) == ({"float32": ONE}, [])


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('custom-call(%a), custom_call_target="tpu_custom_call"', ["tpu_custom_call is opaque"]),
        ('custom-call(%a), custom_call_target="__cudnn$fmha"', ["__cudnn$fmha is opaque"]),
        ("custom-call(%a)", ["a custom call without a target is opaque"]),
        ("ragged-dot(%a, %a)", ["ragged-dot is not counted"]),
        ("dot(%a, %a)", ["%c is not understood"]),
        ("convolution(%a, %a)", ["%c is not understood"]),
        (
            "dot(%a, %gone), lhs_contracting_dims={0}",
            ["the optimised program has what is not understood: %gone is read by %c and defined nowhere"],
        ),
        ("what is this", ["the optimised program has what is not understood: ROOT %c = f32[8]{0} what is this"]),
        # Marks of compilers are no libraries.
        ('custom-call(%a), custom_call_target="AllocateBuffer"', []),
        ('custom-call(%a), custom_call_target="ConcatBitcast"', []),
    ],
)
def test_what_is_not_shown_is_said(line, why):
    """A kernel, a library, and a line that is not understood are no zeros."""
    text = program("%a = f32[8]{0} parameter(0)", f"%c = f32[8]{{0}} {line}")
    assert products(text)[1] == why
    assert "dot" in line or "convolution" in line or list(count_traffic(read_hlo(text)).more) == why


# Memory

KB = 1024
A, B, P = ("%a = f32[256]{0} parameter(0)", "%b = f32[256]{0} parameter(1)", "%s = (f32[256], f32[256]) parameter(0)")
TABLE, PLACES = "%t = f32[32,256]{1,0} parameter(0)", "%i = s32[4,1]{1,0} parameter(1)"
MOVES = {
    "each array once": ([A, B, "%c = f32[256]{0} add(%a, %b)"], 3 * KB),
    "one that is taken twice": ([A, "%c = f32[256]{0} add(%a, %a)"], 2 * KB),
    "views and arguments": ([P, "%x = f32[256] get-tuple-element(%s), index=0", "%y = f32[16,16] bitcast(%x)"], 0),
    # What is copied into VMEM is read once from the device's memory; what is computed there costs nothing.
    "another memory": (
        [
            "%a = f32[256]{0:T(256)} parameter(0)",
            "%s = (f32[256]{0:T(256)S(1)}, f32[256]{0:T(256)}, u32[]{:S(2)}) copy-start(%a)",
            "%d = f32[256]{0:T(256)S(1)} copy-done(%s)",
            "%y = f32[256]{0:T(256)S(1)} tanh(%d)",
            "%z = f32[256]{0:T(256)} negate(%y)",
        ],
        2 * KB,
    ),
    "rows of a table": (
        [TABLE, PLACES, "%g = f32[4,256]{1,0} gather(%t, %i), slice_sizes={1,256}"],
        4 * KB + 16 + 4 * KB,
    ),
    "rows that are added to": (
        [TABLE, PLACES, "%u = f32[4,256]{1,0} parameter(2)", "%s = f32[32,256]{1,0} scatter(%t, %i, %u)"],
        16 + 4 * KB + 4 * KB,
    ),
    # The tuple between start and end is no array of its own.
    "a collective": (
        [
            "%a = f32[64]{0} parameter(0)",
            "%s = (f32[64]{0}, f32[256]{0}) all-gather-start(%a), dimensions={0}, replica_groups={{0,1,2,3}}",
            "%d = f32[256]{0} all-gather-done(%s)",
        ],
        256 + KB,
    ),
}


@pytest.mark.parametrize(("lines", "nbytes"), MOVES.values(), ids=MOVES)
def test_bytes_by_hand(lines, nbytes):
    """Each operand is read, each result written; of a table the rows are."""
    assert moved(*lines) == nbytes


FUSED = """%fused (p0: f32[32,256], p1: s32[]) -> f32[256] {
  %p0 = f32[32,256]{1,0} parameter(0)
  %p1 = s32[] parameter(1)
  %zero = s32[] constant(0)
  %row = f32[1,256]{1,0} dynamic-slice(%p0, %p1, %zero), dynamic_slice_sizes={1,256}
  %flat = f32[256]{0} bitcast(%row)
  ROOT %out = f32[256]{0} tanh(%flat)
}

"""


def test_of_a_slice_in_a_fusion_the_slice_is_read():
    """One layer of 32: its row, the index, and the result; all of it where it is taken whole besides."""
    start = "%w = f32[32,256]{1,0} parameter(0)", "%i = s32[] parameter(1)"
    fusion = "fusion(%w, %i), kind=kLoop, calls=%fused"
    assert moved(*start, f"%f = f32[256]{{0}} {fusion}", before=FUSED) == KB + 4 + KB
    whole = FUSED.replace("%out = f32[256]{0} tanh(%flat)", "%out = f32[32,256]{1,0} tanh(%p0)")
    assert moved(*start, f"%f = f32[32,256]{{1,0}} {fusion}", before=whole) == 64 * KB + 4


UPDATED = """%inner (q0: f32[32,256], q1: f32[1,256], q2: s32[]) -> f32[32,256] {
  %q0 = f32[32,256]{1,0} parameter(0)
  %q1 = f32[1,256]{1,0} parameter(1)
  %q2 = s32[] parameter(2)
  %zero = s32[] constant(0)
  ROOT %out = f32[32,256]{1,0} dynamic-update-slice(%q0, %q1, %q2, %zero)
}

%fused (p0: f32[32,256], p1: f32[1,256], p2: s32[]) -> (f32[32,256], f32[1,256]) {
  %p0 = f32[32,256]{1,0} parameter(0)
  %p1 = f32[1,256]{1,0} parameter(1)
  %p2 = s32[] parameter(2)
  %y = f32[1,256]{1,0} tanh(%p1)
  %f = f32[32,256]{1,0} fusion(%p0, %y, %p2), kind=kLoop, calls=%inner
  ROOT %t = (f32[32,256]{1,0}, f32[1,256]{1,0}) tuple(%f, %y)
}

"""


def test_of_an_update_in_place_the_part_is_written():
    """A row of a stack, in a fusion within a fusion: the row is read, and written twice; the stack is not touched."""
    found = moved(
        "%w = f32[32,256]{1,0} parameter(0)",
        "%x = f32[1,256]{1,0} parameter(1)",
        "%i = s32[] parameter(2)",
        "%f = (f32[32,256]{1,0}, f32[1,256]{1,0}) fusion(%w, %x, %i), kind=kLoop, calls=%fused",
        before=UPDATED,
    )
    assert found == KB + 4 + KB + KB


def test_what_goes_on_with_an_asynchronous_call_moves_nothing():
    body = "%wrapped (p: f32[256]) -> f32[256] {\n  %p = f32[256] parameter(0)\n  ROOT %n = f32[256] negate(%p)\n}\n\n"
    start = "%s = ((f32[256]{0}), f32[256]{0}, u32[]) async-start(%a), calls=%wrapped"
    update = "%u = ((f32[256]{0}), f32[256]{0}, u32[]) async-update(%s), calls=%wrapped"
    done = "%d = f32[256]{0} async-done(%FROM), calls=%wrapped"
    with_it = moved(A, start, update, done.replace("FROM", "u"), before=body)
    assert with_it == moved(A, start, done.replace("FROM", "s"), before=body)


@pytest.mark.jax_text
def test_a_program_compiled_here_is_counted():
    """A scan over 32 weights reads each once, not the stack 32 times."""

    def step(weights, x):
        return jax.lax.scan(lambda x, w: (jnp.tanh(x @ w), None), x @ weights[0], weights)[0]

    text = jax.jit(step).lower(jnp.ones((32, 64, 64)), jnp.ones((8, 64))).compile().as_text()
    assert products(text) == ({"float32": 33 * 2 * 8 * 64 * 64}, [])
    found = count_traffic(read_hlo(text))
    assert not found.more
    assert 33 * 64 * 64 * 4 <= found.counts[BYTES] < 3.5 * 33 * 64 * 64 * 4


# What is sent


def asked(line, target=V5E, before=ADD):
    text = program("%a = f32[256]{0} parameter(0)", f"%r = {line}", before=before, partitions=8)
    return read_demand(read_hlo(text), None, target, 8)


ALL = "channel_id=1, replica_groups={{0,1,2,3,4,5,6,7}}, use_global_device_ids=true"
GROUPED = "f32[256]{0} all-reduce(%a), channel_id=1, replica_groups={GROUPS}, use_global_device_ids=true, to_apply=%add"
INSIDE, ACROSS = "{0,1,2,3},{4,5,6,7}", "{0,4},{1,5},{2,6},{3,7}"


@pytest.mark.parametrize(
    ("line", "sent"),
    [
        # Seven eighths of 1,024 bytes go out, and of an all-reduce as many come back as results.
        (f"f32[256]{{0}} all-reduce(%a), {ALL}, to_apply=%add", 1792),
        (f"f32[2048]{{0}} all-gather(%a), {ALL}, dimensions={{0}}", 7168),
        (f"f32[32]{{0}} reduce-scatter(%a), {ALL}, to_apply=%add", 896),
        (f"f32[256]{{0}} all-to-all(%a), {ALL}, dimensions={{0}}", 896),
        ("f32[256]{0} collective-permute(%a), channel_id=1, source_target_pairs={{0,1},{1,0}}", 1024),
        (GROUPED.replace("GROUPS", ACROSS), 1024),  # in groups of two, one half
    ],
)
def test_what_a_device_sends_at_least(line, sent):
    """By the definition of each collective, whatever its algorithm."""
    found = asked(line)
    assert (found.sent_bytes, dict(found.unknown)) == (sent, {})


def test_a_collective_in_a_branch_is_not_sent_at_least():
    """A conditional may take the other branch: then nothing is sent, and that is said."""
    sends = branches("f32[256]{0}", f"all-reduce(%x), {ALL}, to_apply=%add")
    conditional = "f32[256]{0} conditional(%a, %a, %a), true_computation=%dear, false_computation=%cheap"
    found = asked(conditional, before=ADD + sends)
    assert found.sent_bytes == 0
    assert found.unknown["communication"] == "a collective in a branch of a conditional does not count"


@pytest.mark.parametrize(
    ("target", "groups", "known"),
    [("gpu:h200:2x4", INSIDE, True), ("gpu:h200:2x4", ACROSS, False), ("gpu:h200:8", ACROSS, True)],
)
def test_what_leaves_a_machine_is_unknown(target, groups, known):
    """The network between machines is no link of a GPU; within one all are linked."""
    found = asked(GROUPED.replace("GROUPS", groups), Target.parse(target))
    assert bool(found.sent_bytes) is known
    assert found.unknown == ({} if known else {"communication": "the network between machines is not known"})


@pytest.mark.parametrize(("name", "target"), [("tpu-0.12/layers", V5E), ("cuda-0.12/layers", H200)])
def test_real_programs_are_read(name, target):
    """Of TPUs and GPUs: products, memory and links, loops counted, nothing left open."""
    found = read_demand(read_hlo(STORED[name]), None, target, 8)
    assert sum(found.flops.values()) == 589_824
    assert min(found.memory_bytes, found.sent_bytes) > 0
    assert not found.unknown


def test_a_text_that_cannot_be_read_costs_no_verdict(monkeypatch):
    """It is an estimate: whatever goes wrong is said, and nothing is raised."""
    assert set(read_demand(read_hlo("nonsense"), None, V5E, 8).unknown) == set(RESOURCES)

    def fail(_):
        raise IndexError("no such axis")

    monkeypatch.setattr("jaxgate.observe.hlo.demand.count_products", fail)
    found = asked("f32[256]{0} negate(%a)")
    assert set(found.unknown) == set(RESOURCES)
    assert "no such axis" in found.unknown["memory"]
