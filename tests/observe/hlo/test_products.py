"""FLOPs of compiled programs: what three compilers print of a product, by hand; what is not shown is said."""

import gzip

import jax
import jax.numpy as jnp
import pytest
from support.paths import DATA

from jaxgate.observe.hlo.demand import count_products
from jaxgate.observe.hlo.parser import read_hlo

HEAD = "HloModule jit_step, is_scheduled=true\n\n"


def products(*lines, before=""):
    """The products of a program of these lines."""
    *others, last = lines
    body = "\n".join([*(f"  {line}" for line in others), f"  ROOT {last}"])
    return count_products(read_hlo(f"{HEAD}{before}ENTRY %main () -> f32[] {{\n{body}\n}}\n"))


@pytest.mark.parametrize("release", ["0.10", "0.12"])
@pytest.mark.parametrize(
    ("program", "flops"),
    [
        # Six layers: forward, backward for weights and for inputs, of an eighth of the work each.
        ("layers", 589_824),
        ("train", 327_680),
        ("every", 0),
    ],
)
def test_three_compilers_agree(program, flops, release):
    """A loop of six layers and a train step have as many FLOPs on a CPU, a TPU and a GPU, in any type."""
    for platform in ("cpu", "tpu", "cuda"):
        text = gzip.decompress((DATA / f"hlo/{platform}-{release}/{program}.hlo.gz").read_bytes()).decode()
        found = count_products(read_hlo(text))
        assert (found.counts.total(), list(found.more)) == (flops, []), platform


def test_a_dot_by_hand():
    """Two FLOPs for each of 8 x 16 results and 32 terms, of the wider type."""
    found = products(
        "%a = bf16[8,32]{1,0} parameter(0)",
        "%b = f32[32,16]{1,0} parameter(1)",
        "%c = f32[8,16]{1,0} dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    )
    assert dict(found.counts) == {"float32": 2 * 8 * 16 * 32}


def test_a_call_of_cublas_by_hand():
    found = products(
        "%a = f16[8,32]{1,0} parameter(0)",
        "%b = f16[32,16]{1,0} parameter(1)",
        '%c = (f16[8,16]{1,0}, s8[4194304]{0}) custom-call(%a, %b), custom_call_target="__cublas$gemm", '
        'backend_config={"gemm_backend_config":{"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"],'
        '"rhs_contracting_dimensions":["0"]}}}',
    )
    assert dict(found.counts) == {"float16": 2 * 8 * 16 * 32}
    assert not found.more


@pytest.mark.parametrize(
    ("image", "kernel", "result", "rest", "flops"),
    [
        # A product of matrices, as TPUs write it.
        ("bf16[8,32]", "bf16[32,16]", "bf16[8,16]", "dim_labels=bf_io->bf", 2 * 8 * 16 * 32),
        # Four products in one: the axis 0 has one tap for each result, all others fall between inputs or outside.
        (
            "bf16[4,8,32]",
            "bf16[4,32,16]",
            "bf16[4,8,16]",
            "window={size=4 stride=3 pad=0_0 lhs_dilate=4}, dim_labels=0bf_0io->0bf",
            4 * 2 * 8 * 16 * 32,
        ),
        # 1 x 5 inputs, 3 taps, one zero at each side: 2 + 3 + 3 + 3 + 2 taps.
        ("f32[1,5,1]", "f32[3,1,1]", "f32[1,5,1]", "window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f", 2 * 13),
        # In strides of two: 2 + 3 + 2.
        ("f32[1,5,1]", "f32[3,1,1]", "f32[1,3,1]", "window={size=3 stride=2 pad=1_1}, dim_labels=b0f_0io->b0f", 2 * 7),
        # Four groups of one feature each.
        (
            "f32[1,5,4]",
            "f32[1,1,4]",
            "f32[1,5,4]",
            "window={size=1}, dim_labels=b0f_0io->b0f, feature_group_count=4",
            2 * 5 * 4,
        ),
    ],
)
def test_a_convolution_by_hand(image, kernel, result, rest, flops):
    """Taps on numbers of the input count, those on padding do not."""
    found = products(
        f"%a = {image} parameter(0)", f"%b = {kernel} parameter(1)", f"%c = {result} convolution(%a, %b), {rest}"
    )
    assert found.counts.total() == flops
    assert not found.more


LOOP = """%body (s: (s32[], f32[8,8])) -> (s32[], f32[8,8]) {
  %s = (s32[], f32[8,8]{1,0}) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %x = f32[8,8]{1,0} get-tuple-element(%s), index=1
  %y = f32[8,8]{1,0} dot(%x, %x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT %t = (s32[], f32[8,8]{1,0}) tuple(%i, %y)
}

%cond (s: (s32[], f32[8,8])) -> pred[] {
  %s = (s32[], f32[8,8]{1,0}) parameter(0)
  ROOT %p = pred[] constant(true)
}

"""


def test_a_loop_counts_as_often_as_it_runs():
    """Thirty-two turns are thirty-two products; a loop of unknown length counts once, and is said to."""
    start = "%s = (s32[], f32[8,8]{1,0}) parameter(0)"
    turn = "%w = (s32[], f32[8,8]{1,0}) while(%s), condition=%cond, body=%body"
    known = products(start, turn + ', backend_config={"known_trip_count":{"n":"32"}}', before=LOOP)
    assert (known.counts.total(), list(known.more)) == (32 * 2 * 8**3, [])
    endless = products(start, turn, before=LOOP)
    assert (endless.counts.total(), list(endless.more)) == (2 * 8**3, ["a loop of unknown length counts once"])


BRANCHES = """%dear (x: f32[8,8]) -> f32[8,8] {
  %x = f32[8,8]{1,0} parameter(0)
  ROOT %y = f32[8,8]{1,0} dot(%x, %x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

%cheap (x: f32[8,8]) -> f32[8,8] {
  ROOT %x = f32[8,8]{1,0} parameter(0)
}

"""


def test_of_branches_the_cheapest_counts():
    """Which one runs is not known, so no more than the cheapest is sure; equal ones leave no doubt."""
    start = ("%p = pred[] parameter(0)", "%x = f32[8,8]{1,0} parameter(1)")
    taken = "%c = f32[8,8]{1,0} conditional(%p, %x, %x), true_computation=%dear, false_computation="
    either = products(*start, f"{taken}%cheap", before=BRANCHES)
    assert (either.counts.total(), list(either.more)) == (0, ["of a conditional the cheapest branch counts"])
    both = products(*start, f"{taken}%dear", before=BRANCHES)
    assert (both.counts.total(), list(both.more)) == (2 * 8**3, [])


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('%c = f32[8]{0} custom-call(%a), custom_call_target="tpu_custom_call"', "tpu_custom_call is opaque"),
        ('%c = f32[8]{0} custom-call(%a), custom_call_target="__cudnn$fmha"', "__cudnn$fmha is opaque"),
        ("%c = f32[8]{0} custom-call(%a)", "a custom call without a target is opaque"),
        ("%c = f32[8]{0} ragged-dot(%a, %a)", "ragged-dot is not counted"),
        ("%c = f32[8]{0} dot(%a, %a)", "%c is not understood"),
        (
            "%c = f32[8]{0} dot(%a, %gone), lhs_contracting_dims={0}",
            "the optimised program has what is not understood: %gone is read by %c and defined nowhere",
        ),
        ("%c = f32[8]{0} convolution(%a, %a)", "%c is not understood"),
        ("%c = what is this", "the optimised program has what is not understood: ROOT %c = what is this"),
    ],
)
def test_what_is_not_shown_is_said(line, why):
    """A kernel, a library, and a line that is not understood are no zeros."""
    assert list(products("%a = f32[8]{0} parameter(0)", line).more) == [why]


@pytest.mark.parametrize("target", ["AllocateBuffer", "ConcatBitcast", "AsyncCollectiveStart"])
def test_marks_of_compilers_are_no_libraries(target):
    found = products("%a = f32[8]{0} parameter(0)", f'%c = f32[8]{{0}} custom-call(%a), custom_call_target="{target}"')
    assert not found.more


@pytest.mark.jax_text
def test_a_program_compiled_here_is_counted():
    def step(weights, x):
        return jax.lax.scan(lambda x, w: (jnp.tanh(x @ w), None), x @ weights[0], weights)[0]

    text = jax.jit(step).lower(jnp.ones((32, 64, 64)), jnp.ones((8, 64))).compile().as_text()
    found = count_products(read_hlo(text))
    assert (found.counts, list(found.more)) == ({"float32": 33 * 2 * 8 * 64 * 64}, [])
