"""Matrix-multiplication FLOPs against closed formulas, and programs of every kind that must be read without a crash."""

from functools import partial
from pathlib import Path
from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.ad_checkpoint import checkpoint_name
from jax.experimental import pallas
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import AbstractMesh, AxisType, Mesh
from jax.sharding import PartitionSpec as P

from jaxgate.observe.trace.fingerprint import program_fingerprint
from jaxgate.observe.trace.jaxpr_cost import count_work
from jaxgate.observe.trace.jaxpr_items import MATMUL, items_of
from jaxgate.observe.trace.stablehlo import read_structure


def matmuls(function, *args):
    return count_work(jax.jit(function).trace(*args).jaxpr)


def flops(function, *args):
    return matmuls(function, *args).matmul_flops


X, W, V = jnp.ones((8, 4)), jnp.ones((4, 6)), jnp.ones((6, 3))
SQUARE = jnp.ones((4, 4))
ONE = 2 * 8 * 4 * 6  # x @ w
STEP = 2 * 8 * 4 * 4  # x @ square


@pytest.mark.jax_text
def test_dot():
    """m·k times k·n costs 2·m·k·n, under the operands' shapes and the line of the source; in any type."""
    found = matmuls(lambda x, w: x @ w, X, W)
    assert found.matmul_flops == 2 * 8 * 4 * 6
    assert found.matmuls == {"float32[8,4] x float32[4,6]": 1}
    line = test_dot.__code__.co_firstlineno + 3
    (where,) = found.lines.values()
    assert where.endswith(f"{Path(__file__).name}:{line}")
    found = matmuls(lambda x, w: x @ w, X.astype("bfloat16"), W.astype("bfloat16"))
    assert (found.matmul_flops, found.matmuls) == (ONE, {"bfloat16[8,4] x bfloat16[4,6]": 1})


def einsum(spec):
    return partial(jnp.einsum, spec)


def convolution(strides=(1, 1), padding="VALID", **options):
    layout = ("NHWC", "HWIO", "NHWC")
    return partial(
        lax.conv_general_dilated, window_strides=strides, padding=padding, dimension_numbers=layout, **options
    )


def strided(x, w):
    return convolution((2, 2), "SAME")(x, w).sum()


def layers(x, length=5):
    return lax.scan(lambda c, _: (jnp.tanh(c @ SQUARE), None), x, None, length=length)[0]


def loss(params, x):
    w, v = params
    return jnp.sum((jnp.tanh(x @ w) @ v) ** 2)


def deeper(hidden, params, x):
    w, v = params
    return jnp.sum((hidden(w, x) @ v) ** 2)


def hidden(w, x):
    return jnp.tanh(jnp.tanh(x @ w) @ SQUARE6)


@jax.custom_vjp
def scaled(x, w):
    """A product whose gradient takes one product instead of two."""
    return x @ w


scaled.defvjp(lambda x, w: (x @ w, (x, w)), lambda kept, g: (g @ kept[1].T, jnp.zeros_like(kept[1])))
helper = jax.jit(lambda x, w: x @ w)
SQUARE6 = jnp.ones((6, 6))
TWO_DEVICES = AbstractMesh((2,), ("x",), axis_types=(AxisType.Auto,))
TWO = 2 * 8 * 6 * 3  # h @ v
GRADIENT = (ONE + TWO) + (TWO + TWO) + ONE  # forward; towards h and v; towards w
HIDDEN = 2 * 8 * 6 * 6
IMAGE, KERNEL = jnp.ones((2, 5, 5, 3)), jnp.ones((3, 3, 3, 7))
EIGHT = jnp.ones((2, 8, 8, 3))
FORWARD = 2 * (2 * 4 * 4 * 7) * (3 * 3 * 3)

FLOPS = {
    # Batch axes multiply; every contracted axis is part of the depth.
    "batched": (einsum("bij,bjk->bik"), (jnp.ones((5, 8, 4)), jnp.ones((5, 4, 6))), 5 * 2 * 8 * 4 * 6),
    "attention": (einsum("bqhd,bkhd->bhqk"), (jnp.ones((2, 7, 3, 4)), jnp.ones((2, 9, 3, 4))), 2 * 2 * 3 * 7 * 9 * 4),
    "inner": (einsum("i,i->"), (jnp.ones(9), jnp.ones(9)), 2 * 9),
    "outer": (einsum("i,j->ij"), (jnp.ones(3), jnp.ones(5)), 2 * 3 * 5),
    "two-contracted": (einsum("ijk,jkl->il"), (jnp.ones((2, 3, 4)), jnp.ones((3, 4, 5))), 2 * 2 * 5 * 12),
    # Twice the output elements times the multiply-adds that each of them takes.
    "convolution": (convolution(), (IMAGE, KERNEL), 2 * (2 * 3 * 3 * 7) * (3 * 3 * 3)),
    # 6 features in 3 groups: each output sees a 2·2 window over 2 of them.
    "grouped": (
        convolution(feature_group_count=3),
        (jnp.ones((1, 4, 4, 6)), jnp.ones((2, 2, 2, 9))),
        2 * (3 * 3 * 9) * (2 * 2 * 2),
    ),
    # 4·4 numbers with a zero after each: of a 2·2 window over 8·8 of them one in four is a number.
    "transposed": (
        convolution(padding=((1, 1), (1, 1)), lhs_dilation=(2, 2)),
        (jnp.ones((1, 4, 4, 3)), jnp.ones((2, 2, 3, 7))),
        2 * (4 * 4 * 7) * (2 * 2 * 3),
    ),
    "strided": (strided, (EIGHT, KERNEL), FORWARD),
    # The zeros between the pixels that a stride skipped are no work.
    "gradient-of-strided": (jax.grad(strided, argnums=(0, 1)), (EIGHT, KERNEL), 2 * FORWARD),
    # A scan counts as often as it runs, a while once, a branch as the dearest one.
    "scan": (layers, (X,), 5 * STEP),
    "scan-in-scan": (lambda x: lax.scan(lambda c, _: (layers(c), None), x, None, length=3)[0], (X,), 15 * STEP),
    "fori-with-known-bounds": (lambda x: lax.fori_loop(2, 9, lambda _, c: c @ SQUARE, x), (X,), 7 * STEP),
    "map": (lambda x: lax.map(lambda row: row @ SQUARE, x), (X,), STEP),
    "while-counts-once": (lambda x: lax.while_loop(lambda c: c.sum() < 9, lambda c: c @ SQUARE, x), (X,), STEP),
    "condition-of-while": (lambda x: lax.while_loop(lambda c: (c @ SQUARE).sum() < 9, lambda c: c + 1, x), (X,), STEP),
    "larger-branch": (
        lambda x: lax.cond(x.sum() > 0, lambda: (x @ SQUARE) @ SQUARE, lambda: x @ SQUARE + 1),
        (X,),
        2 * STEP,
    ),
    "largest-of-three": (
        lambda x: lax.switch(x.sum().astype(int), [jnp.sin, lambda y: layers(y, 3), lambda y: y @ SQUARE], x),
        (X,),
        3 * STEP,
    ),
    "mapped": (lambda x, w: jax.vmap(lambda row: row @ w)(x), (X, W), ONE),
    "sharded": (  # the work of all devices: splitting it does not make FLOPs vanish
        jax.shard_map(lambda x, w: x @ w, mesh=TWO_DEVICES, in_specs=(P("x"), P()), out_specs=P("x")),
        (X, W),
        ONE,
    ),
    # Helpers are seen through; equal work counts once, and work that nothing needs does not count.
    "nested-jit": (lambda x, w: helper(x, w) + 1, (X, W), ONE),
    "nested-jit-called-with-different-arguments": (lambda x, w: helper(x, w) + helper(x + 1, w), (X, W), 2 * ONE),
    "written-twice": (lambda x, w: x @ w + x @ w, (X, W), ONE),
    "called-twice": (lambda x, w: helper(x, w) * helper(x, w), (X, W), ONE),
    "called-and-written": (lambda x, w: helper(x, w) * (x @ w), (X, W), ONE),
    "equal-operands-of-own-making": (lambda x, w: (x * 2) @ w + (x * 2) @ w, (X, W), ONE),
    "operands-that-differ-in-a-literal": (lambda x, w: (x * 2) @ w + (x * 3) @ w, (X, W), 2 * ONE),
    "swapped-operands": (lambda x, w: (x @ w) @ (w.T @ x.T), (X, W), ONE * 2 + 2 * 8 * 6 * 8),
    "dead": (lambda x, w: (x @ w, x + 1)[1], (X, W), 0),
    "dead-through-a-chain": (lambda x, w: (jnp.sin(x @ w) + 1, x)[1], (X, W), 0),
    "dead-result-of-a-helper": (lambda x, w: jax.jit(lambda a, b: (a @ b, a + 1))(x, w)[1], (X, W), 0),
    "printed-only": (lambda x, w: (jax.debug.print("{}", (x @ w).sum()), x)[1], (X, W), ONE),
    # Forward once, then one product towards each weight and one towards the hidden layer.
    "gradient": (jax.grad(loss), ((W, V), X), GRADIENT),
    "gradient-of-both": (jax.grad(loss, argnums=(0, 1)), ((W, V), X), GRADIENT + ONE),
    # Under ``jax.checkpoint`` the hidden layer is multiplied a second time, and nothing else is.
    "kept": (jax.grad(partial(deeper, hidden)), ((W, V), X), GRADIENT + 2 * HIDDEN),
    "remat": (jax.grad(partial(deeper, jax.checkpoint(hidden))), ((W, V), X), GRADIENT + 2 * HIDDEN + (ONE + HIDDEN)),
    # The rules that run are counted, once each; the rules that do not are not.
    "custom-vjp": (scaled, (X, W), ONE),
    "gradient-of-custom-vjp": (jax.grad(lambda x, w: (scaled(x, w) ** 2).sum()), (X, W), 2 * ONE),
    "custom-jvp": (lambda x, w: jax.nn.relu(x @ w), (X, W), ONE),
}


@pytest.mark.jax_text
@pytest.mark.parametrize(("function", "args", "expected"), FLOPS.values(), ids=FLOPS)
def test_flops(function, args, expected):
    """Two for each multiply-add that the compiled program runs, on all devices together."""
    assert flops(function, *args) == expected


def test_large_literals_are_told_apart():
    """Two captured arrays that print alike are two operands (``jax_use_simplified_jaxpr_constants``)."""
    one = np.zeros((40, 40), np.float32)
    other = one.copy()
    other[20, 20] = 1
    before = jax.config.jax_use_simplified_jaxpr_constants
    jax.config.update("jax_use_simplified_jaxpr_constants", True)
    try:
        assert flops(lambda x: x @ one + x @ other, jnp.ones((2, 40))) == 2 * (2 * 2 * 40 * 40)
    finally:
        jax.config.update("jax_use_simplified_jaxpr_constants", before)


def double(source, target):
    """A Pallas kernel: one block of rows times a square."""
    target[...] = source[...] @ jnp.ones((4, 4))


blocks = pallas.pallas_call(
    double,
    grid=(2,),
    in_specs=[pallas.BlockSpec((4, 4), lambda i: (i, 0))],
    out_specs=pallas.BlockSpec((4, 4), lambda i: (i, 0)),
    out_shape=jax.ShapeDtypeStruct((8, 4), "float32"),
    interpret=True,
)


@pytest.mark.jax_text
def test_pallas_counts_its_grid():
    """A kernel counts once per block: two blocks of four rows are eight rows."""
    assert flops(blocks, X) == STEP


MESH = Mesh(np.array(jax.devices()[:1]), ("x",))
PROGRAMS = {
    "sort-with-payload": lambda x: lax.sort((x, x * 2), num_keys=1),
    "argsort-and-gather": lambda x: jnp.take_along_axis(x, jnp.argsort(x), axis=-1),
    "scatter": lambda x: x.at[jnp.array([0, 2])].add(1.0),
    "random": lambda x: x + jax.random.normal(jax.random.key(3), x.shape),
    "random-bits-of-another-kind": lambda x: x + jax.random.uniform(jax.random.key(3, impl="rbg"), x.shape),
    "linear-algebra": lambda x: jnp.linalg.eigh(x.T @ x + SQUARE),
    "complex-constant": lambda x: x * np.array([1, 1j, -1, -1j], np.complex64),
    "window": lambda x: lax.reduce_window(x, 0.0, lax.add, (2, 2), (1, 1), "SAME"),
    "custom-derivative": jax.grad(lambda x: jax.nn.softplus(x).sum()),
    "optimization-barrier": lambda x: lax.optimization_barrier(x) + 1,
    "shard-map": jax.shard_map(lambda x: lax.psum(x, "x"), mesh=MESH, in_specs=P("x"), out_specs=P()),
    "pallas-interpreted": blocks,
    "reduction-of-two": lambda x: lax.reduce((x, x), (0.0, 0.0), lambda a, b: (a[0] + b[0], a[1] * b[1]), (0,)),
    "attention": lambda x: jax.nn.dot_product_attention(x[None, :, None], x[None, :, None], x[None, :, None]),
    "remat-in-scan": jax.grad(lambda x: lax.scan(jax.checkpoint(lambda c, _: (jnp.sin(c), c)), x, None, 3)[0].sum()),
    "no-result": lambda _: None,
}


@pytest.mark.parametrize("function", PROGRAMS.values(), ids=PROGRAMS)
def test_every_kind_of_program_can_be_read(function):
    """Reading a program neither fails nor depends on the lowering it came from."""
    traced = jax.jit(function).trace(X)
    jax.clear_caches()
    again = jax.jit(function).trace(X)
    first, second = (stage.lower().compiler_ir("stablehlo") for stage in (traced, again))
    assert program_fingerprint(first) == program_fingerprint(second)
    assert read_structure(first) == read_structure(second)
    assert count_work(traced.jaxpr) == count_work(again.jaxpr)


ROWS, EXPERTS, SIZES = jnp.ones((32, 16)), jnp.ones((4, 16, 8)), jnp.full(4, 8, jnp.int32)


@pytest.mark.jax_text
def test_each_row_of_a_ragged_product_counts_once():
    """Rows in groups, each times its own matrix: 2·m·k·n, under the name of its operands."""
    found = matmuls(lax.ragged_dot, ROWS, EXPERTS, SIZES)
    assert found.matmul_flops == 2 * 32 * 16 * 8
    assert found.matmuls == {"ragged float32[32,16] x float32[4,16,8]": 1}
    gradients = jax.grad(lambda x, w: lax.ragged_dot(x, w, SIZES).sum(), argnums=(0, 1))
    assert flops(gradients, ROWS, EXPERTS) == 2 * 2 * 32 * 16 * 8  # one for the rows, one for the matrices


@pytest.mark.jax_text
def test_a_product_of_scaled_blocks_counts():
    """Small floats with scales of their own are multiplied like all others."""
    one, scale = jnp.ones((1, 8, 32), jnp.float8_e4m3fn), jnp.ones((1, 8, 1), jnp.float8_e8m0fnu)
    assert flops(lambda x: jax.nn.scaled_matmul(x, x, scale, scale), one) == 2 * 8 * 32 * 8


@pytest.mark.jax_text
def test_every_branch_counts_what_it_widens_and_calls():
    """The branch with the products is not the only one that can get worse."""
    narrow = X.astype(jnp.bfloat16)

    def widened(x):
        jax.debug.callback(print, x.sum())
        return jnp.sin(x.astype(jnp.float32)).astype(jnp.bfloat16)

    found = matmuls(lambda x: lax.cond(x[0, 0] > 0, widened, lambda y: y @ SQUARE.astype(jnp.bfloat16), x), narrow)
    assert (found.matmul_flops, found.widened_bytes) == (STEP, 4 * X.size)
    assert found.callbacks == {"jax.debug.callback": 1}


def on_two(function):
    """Its work on a mesh of two devices, one of which sees half of the rows."""
    specs = {"in_specs": P("x"), "out_specs": P("x")}
    return matmuls(jax.shard_map(function, mesh=TWO_DEVICES, check_vma=False, **specs), X)


@pytest.mark.jax_text
def test_every_branch_counts_what_it_sends():
    """A rare synchronisation beside the usual product does not disappear."""
    found = on_two(lambda x: lax.cond(x[0, 0] > 0, lambda y: lax.psum(y, "x"), lambda y: y @ SQUARE, x))
    assert found.collectives == {"all-reduce float32[4,4] over 'x'": 1}
    assert found.collective_bytes == 4 * 4 * 4


@pytest.mark.parametrize(
    "function",
    [lambda x: lax.psum(x, "x") * x + lax.psum(x, "x"), lambda x: (lax.psum(x * 3, "x"), lax.psum(x, "x") * x)[1]],
    ids=["written-twice", "dead"],
)
def test_what_compilers_drop_is_not_sent(function):
    """Two equal collectives are one, and one that nobody reads is none: compiled, one all-reduce is left."""
    assert on_two(function).collectives == {"all-reduce float32[4,4] over 'x'": 1}


def test_complex_numbers_widen_too():
    """complex64 to complex128 costs what float32 to float64 costs; a real number that becomes complex is no wider."""
    with jax.enable_x64(True):
        found = matmuls(lambda z: z.astype(jnp.complex128), X.astype(jnp.complex64))
        assert found.widened == {"complex64[8,4] → complex128": 1}
        assert matmuls(lambda x: x.astype(jnp.complex64), X).widened == {}


@pytest.mark.jax_text
@pytest.mark.parametrize(
    ("layout", "query", "key"), [(0, (2, 8, 6, 4), (2, 16, 3, 4)), (1, (2, 6, 8, 4), (2, 3, 16, 4))]
)
def test_fused_attention_counts_its_products(layout, query, key):
    """CuDNN's kernel is one operation to the tracer: two products forward, and five backward with its second scores.

    It can be traced on a GPU only; what is read of it stands here.
    """

    def counted(name):
        atoms = [SimpleNamespace(aval=jax.core.ShapedArray(shape, jnp.bfloat16)) for shape in (query, key, key)]
        equation = SimpleNamespace(
            primitive=SimpleNamespace(name=name), invars=atoms, outvars=atoms[:1], params={"layout": layout}
        )
        return sum(item.amount for item in items_of(equation) if item.kind == MATMUL)

    product = 2 * (2 * 6) * 8 * 16 * 4
    assert counted("dot_product_attention_fwd_wrapper") == 2 * product
    assert counted("dot_product_attention_bwd_wrapper") == 5 * product


@pytest.mark.parametrize(("left", "right"), [("bfloat16", "float32"), ("float32", "bfloat16")])
def test_a_product_of_two_widths_widens_the_narrow_operand(left, right):
    """JAX writes no cast for it, and the compiler makes one; operands of one type need none."""
    found = matmuls(jnp.matmul, X.astype(left), W.astype(right))
    narrow = X if left == "bfloat16" else W
    assert found.widened_bytes == 4 * narrow.size
    assert found.widened == {f"bfloat16[{','.join(map(str, narrow.shape))}] → float32": 1}
    assert not matmuls(jnp.matmul, X, W).widened


def test_callbacks_that_only_raise_are_told_from_others():
    """Those of Equinox's checks; a call that the tracer does not name is of another kind."""

    def checked(x):
        return jnp.sin(eqx.error_if(x, x.sum() < 0, "negative"))

    def noisy(x):
        jax.debug.callback(print, x.sum())
        return checked(x)

    found = matmuls(checked, jnp.ones(3))
    assert all(label.startswith("error check: pure_callback of ") for label in found.callbacks)
    many = sum(found.callbacks.values())
    assert [found.only_raises(count) for count in (0, many, many + 1)] == [False, True, False]
    assert not matmuls(noisy, jnp.ones(3)).only_raises(many + 1)
    assert not matmuls(jnp.sin, jnp.ones(3)).only_raises(0)


@pytest.mark.jax_text
def test_what_a_kernel_holds_at_once():
    """Blocks and what it works in, of the kernel that holds most; not what is left in the main memory."""

    def multiplied(x_ref, y_ref, _, out_ref, sums_ref):
        sums_ref[...] = x_ref[...] @ y_ref[...]
        out_ref[...] = sums_ref[...]

    def call(x, y, rows):
        block = pallas.BlockSpec((rows, 64), lambda row: (row, 0))
        return pallas.pallas_call(
            multiplied,
            grid=(len(x) // rows,),
            in_specs=[block, pallas.BlockSpec((64, 64), lambda _: (0, 0)), pallas.BlockSpec(memory_space=pallas.ANY)],
            out_specs=block,
            out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
            scratch_shapes=[pltpu.VMEM((rows, 64), jnp.float32)],
            interpret=True,
        )(x, y, x)

    x, y = jnp.ones((32, 64)), jnp.ones((64, 64))
    found = matmuls(lambda x, y: call(call(x, y, 8), y, 16), x, y)
    assert found.block_bytes == (3 * 16 * 64 + 64 * 64) * 4
    line = f"tests/observe/trace/{Path(__file__).name}:{multiplied.__code__.co_firstlineno}"
    assert found.blocks == (f"float32[16,64], float32[64,64], float32[16,64], float32[16,64] in multiplied at {line}")
    assert (matmuls(jnp.sin, x).block_bytes, matmuls(jnp.sin, x).blocks) == (0, "")


@pytest.mark.jax_text
@pytest.mark.parametrize("key", [jax.random.key(0), jax.random.PRNGKey(0), jax.random.key(0, impl="rbg")], ids=str)
def test_random_bits_are_counted(key):
    """Of each draw, turns of a scan and batches too, with the line that draws; splitting a key draws none."""

    def draws(key):
        first, *rest = jax.random.split(key, 4)
        x = jax.random.normal(first, (3, 5))
        turns = lax.scan(lambda x, key: (x + jax.random.normal(key, (3, 5)), None), x, jnp.stack(rest))[0]
        return turns.sum() + jax.vmap(lambda key: jax.random.bits(key, (7,), "uint8"))(jnp.stack(rest)).sum()

    found = matmuls(draws, key)
    assert found.random_bits == (1 + 3) * 3 * 5 * 32 + 3 * 7 * 8
    line = draws.__code__.co_firstlineno
    file = Path(__file__).name
    assert [text.replace(f"tests/observe/trace/{file}", "here") for text in found.drawn] == [
        f"4 × uint32[3,5] at here:{line + 2}, here:{line + 3}",
        f"1 × uint8[3,7] at here:{line + 4}",
    ]


KEEPS = jax.checkpoint_policies


def _own_policy():
    """A policy of the project's own, whose strings are names of primitives, and which knows itself."""
    kept = {"dot_general"}

    def policy(primitive, *_, **__):
        return primitive.name in kept and policy is not None

    return policy


@pytest.mark.jax_text
@pytest.mark.parametrize(
    ("policy", "names"),
    [
        (KEEPS.save_only_these_names("mlp", "attention"), ("attention",)),
        (KEEPS.save_any_names_but_these("Mlp"), ("Mlp",)),
        (KEEPS.save_from_both_policies(KEEPS.save_only_these_names("norm"), KEEPS.dots_saveable), ("norm",)),
        (
            KEEPS.save_and_offload_only_these_names(
                names_which_can_be_saved=["mlp"],
                names_which_can_be_offloaded=["wide"],
                offload_src="device",
                offload_dst="pinned_host",
            ),
            ("wide",),
        ),
        (KEEPS.save_only_these_names("mlp"), ()),
        (KEEPS.dots_saveable, ()),
        (_own_policy(), ()),
        (None, ()),
    ],
    ids=["only", "all but", "both", "offloaded", "all there", "no names", "own", "none"],
)
def test_names_of_a_policy_that_no_array_has_are_found(policy, names):
    def block(x, w):
        return jnp.sin(checkpoint_name(jnp.tanh(x @ w), "mlp"))

    def loss(x, w):
        return jnp.sum(jax.checkpoint(block, policy=policy)(x, w))

    assert matmuls(loss, X, W).unmatched == matmuls(jax.grad(loss), X, W).unmatched == names
