"""Correct before fast: what counts as agreement, and a batch that is not processed in full."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgate.model.computation import Batch
from jaxgate.model.measurement import InvalidCaseError
from jaxgate.observe.execute.correctness import Closeness, check_agreement, check_batch
from jaxgate.observe.execute.subjects import JittedSubject
from jaxgate.observe.trace.lowering import lower

NAN, INF = float("nan"), float("inf")


def refusal(subject, reference, *, rtol=1e-4, atol=1e-5):
    """Why two results do not agree; ``None`` if they do."""
    try:
        check_agreement(subject, reference, Closeness(rtol, atol))
    except InvalidCaseError as error:
        refused = error
    else:
        return None
    assert refused.stage == "comparing subject and reference"
    return refused.reason


def array(values, dtype="float32"):
    """A leaf on the host."""
    return np.asarray(jnp.array(values, dtype))


AGREE = {
    "equal": (array([1, 2]), array([1, 2])),
    "at-the-edge": (np.array([101.0]), np.array([100.0])),
    "infinities": (array([INF, -INF]), array([INF, -INF])),
    "empty": (array([]), array([])),
    "nothing": (None, None),
    "bool": (array([True, False], bool), array([True, False], bool)),
    "integers": (array([2**30, -1], "int32"), array([2**30, -1], "int32")),
    "int4": (array([3, -3], "int4"), array([3, -3], "int4")),
    "bfloat16": (array([1.0], "bfloat16"), array([1.0078125], "bfloat16")),
    "complex": (array([1 + 2j], "complex64"), array([1 + 2.001j], "complex64")),
}


@pytest.mark.parametrize(("subject", "reference"), AGREE.values(), ids=AGREE)
def test_agreement(subject, reference):
    """A difference of exactly the tolerance still agrees; infinities of one sign are equal."""
    rtol, atol = (0.0, 1.0) if getattr(subject, "dtype", None) == np.float64 else (0.01, 0.0)
    assert refusal({"x": subject}, {"x": reference}, rtol=rtol, atol=atol) is None


DISAGREE = {
    "beyond-the-edge": (np.array([101.5]), np.array([100.0]), "result['x'][0]: subject gives 101.5, reference 100;"),
    "nan-here": (array([1, NAN]), array([1, 2]), "result['x'][1]: subject gives nan, reference 2;"),
    "nan-there": (array([1, 2]), array([1, NAN]), "result['x'][1]: subject gives 2, reference nan;"),
    "nan-on-both-sides": (array([1, NAN]), array([1, NAN]), "result['x'][1]: subject gives nan, reference nan;"),
    "infinity": (array([INF]), array([1]), "result['x'][0]: subject gives inf, reference 1;"),
    "opposite-infinities": (array([INF]), array([-INF]), "result['x'][0]: subject gives inf, reference -inf;"),
    "bool": (array([True, False], bool), array([True, True], bool), "result['x'][1]: subject gives "),
    "unsigned": (array([1, 7], "uint8"), array([3, 7], "uint8"), "result['x'][0]: subject gives 1, reference 3;"),
    "tokens": (
        array([50_001], "int32"),
        array([50_000], "int32"),
        "result['x'][0]: subject gives 50001, reference 500",
    ),
    "large-integers": (array([2**30 + 1], "int32"), array([2**30], "int32"), "result['x'][0]: subject gives "),
    "int4": (array([3], "int4"), array([-3], "int4"), "result['x'][0]: subject gives 3, reference -3;"),
    "bfloat16": (array([1.0], "bfloat16"), array([1.5], "bfloat16"), "result['x'][0]: subject gives 1, reference 1.5;"),
    "complex": (array([1 + 2j], "complex64"), array([1 + 3j], "complex64"), "result['x'][0]: subject gives 1+2j, "),
    "shape": (array([[1, 2]]), array([1, 2]), "result['x']: subject gives float32[1,2], reference float32[2]"),
    "dtype": (array([1]), array([1], "bfloat16"), "result['x']: subject gives float32[1], reference bfloat16[1]"),
    "integer-for-float": (array([1]), array([1], "int32"), "result['x']: subject gives float32[1], reference int32[1]"),
}


@pytest.mark.parametrize(("subject", "reference", "text"), DISAGREE.values(), ids=DISAGREE)
def test_disagreement_names_the_worst_element(subject, reference, text):
    """Shape, dtype, and every value beyond the tolerance are refused; integers and booleans have none."""
    reason = refusal({"x": subject}, {"x": reference}, rtol=0.01 if "float" in str(subject.dtype) else 1e-4, atol=0.0)
    assert reason is not None
    assert reason.startswith(text)


def test_the_worst_of_many_is_shown_with_their_number():
    """The largest difference is shown, the others are counted, and the tolerance is printed."""
    reason = refusal(array([[1, 2], [5, 4]]), array([[1, 3], [3, 4]]))
    assert reason == (
        "result[1, 0]: subject gives 5, reference 3; 2 of 4 elements differ by more than 1e-05 + 0.0001 × |reference|"
    )


def test_trees_must_be_equal():
    """A list is no tuple, and a missing key is no zero."""
    assert "expected results of one structure" in refusal([array(1)], (array(1),))
    assert "expected results of one structure" in refusal({"a": array(1)}, {"a": array(1), "b": array(0)})


BATCH = Batch(argument=0, size=8)
X = jnp.arange(32.0).reshape(8, 4)


def batch_refusal(function, *args, batch=BATCH, **kwargs):
    """Why a batch is refused; ``None`` if all of it is processed."""
    try:
        check_batch(jax.jit(function), (args, kwargs), batch)
    except InvalidCaseError as error:
        refused = error
    else:
        return None
    assert refused.stage == "checking the batch"
    return refused.reason


TOKENS = jnp.array([3, 3, 3, 3, 3, 3, 3, 3], "int32")
FLAGS = jnp.array([True] * 8)
KEYS = jax.random.split(jax.random.key(0, impl="threefry2x32"), 8)
WHOLE = {
    "mean": (lambda x: x.mean(), (X,), BATCH),
    "per-sample": (lambda x: x.sum(1), (X,), BATCH),
    "bfloat16": (lambda x: x.sum(), (X.astype("bfloat16"),), BATCH),
    "equal-tokens": (lambda t: jax.nn.one_hot(t, 8).sum(0), (TOKENS,), BATCH),
    "flags": (lambda f: f.sum(), (FLAGS,), BATCH),
    "random-keys": (lambda keys: jax.vmap(jax.random.normal)(keys), (KEYS,), BATCH),
    "tree": (lambda b: (b["x"].sum(1) * b["t"]).sum(), ({"x": X, "t": TOKENS},), BATCH),
    "second-argument": (lambda w, x: (x * w).sum(), (jnp.ones(4), X), Batch(argument=1, size=8)),
    "second-axis": (lambda x: x.sum(), (X.T,), Batch(argument=0, size=8, axis=1)),
    "one-sample": (lambda x: x.sum(), (X[:1],), Batch(argument=0, size=1)),
    "odd": (lambda x: x.sum(), (X[:5],), Batch(argument=0, size=5)),
}


@pytest.mark.parametrize(("function", "args", "batch"), WHOLE.values(), ids=WHOLE)
def test_a_whole_batch_passes(function, args, batch):
    """Whatever the dtype, the axis and the form of the argument, a processed sample is noticed."""
    assert batch_refusal(function, *args, batch=batch) is None


NINE = jnp.ones((9, 4))
CUT = {
    "last-sample": (lambda x: x[:-1].sum(), (X,), BATCH, "sample 7 of 8"),
    "second-half": (lambda x: x[:4].sum(), (X,), BATCH, "sample 4 of 8"),
    "first-sample": (lambda x: x[1:].sum(), (X,), BATCH, "sample 0 of 8"),
    "all": (lambda x: (x * 0 + 1)[:0].sum(), (X,), BATCH, "sample 0 of 8"),
    "every-second": (lambda x: x.reshape(4, 2, 4)[:, 0].sum(), (X,), BATCH, "of 8"),
    "every-second-of-odd": (lambda x: x[::2].sum(), (NINE,), Batch(argument=0, size=9), "of 9"),
    "every-fourth-of-odd": (lambda x: x[::4].sum(), (NINE,), Batch(argument=0, size=9), "of 9"),
    "tokens": (lambda t: t[:-1].sum(), (TOKENS,), BATCH, "sample 7 of 8"),
    "flags": (lambda f: f[:-1].sum(), (FLAGS,), BATCH, "sample 7 of 8"),
    "random-keys": (lambda keys: jax.vmap(jax.random.normal)(keys[:-1]), (KEYS,), BATCH, "sample 7 of 8"),
}


@pytest.mark.parametrize(("function", "args", "batch", "text"), CUT.values(), ids=CUT)
def test_a_cut_batch_is_refused(function, args, batch, text):
    """A dropped tail, head or stride is seen, and the message names a sample that was dropped."""
    reason = batch_refusal(function, *args, batch=batch)
    assert reason is not None
    assert text in reason
    assert "does not influence the result: the batch is cut" in reason


@pytest.mark.parametrize(
    ("batch", "text"),
    [
        (Batch(argument=0, size=16), "expected 16 samples on axis 0, found 8 in float32[8,4]"),
        (Batch(argument=0, size=8, axis=1), "expected 8 samples on axis 1, found 4 in float32[8,4]"),
        (Batch(argument=0, size=8, axis=2), "expected 8 samples on axis 2, found None in float32[8,4]"),
    ],
    ids=["size", "axis", "no-axis"],
)
def test_a_batch_of_another_size_is_refused(batch, text):
    """The declared number of samples must be there, on the declared axis of every leaf of an argument that there is."""
    assert batch_refusal(lambda x: x.sum(), X, batch=batch) == text
    assert "expected 8 samples on axis 0" in batch_refusal(lambda b: (b["x"] * b["k"]).sum(), {"x": X, "k": 2.0})
    for nowhere in ("b", 3):  # the case's fault, not a crash of the gate
        assert batch_refusal(lambda x: x.sum(), X, batch=Batch(argument=nowhere, size=8)) is not None


def test_a_batch_by_keyword():
    """The argument may be passed by keyword; it is checked all the same."""
    batch = Batch(argument="x", size=8)
    assert batch_refusal(lambda w, *, x: (x * w).sum(), jnp.ones(4), batch=batch, x=X) is None
    assert "sample 7 of 8" in batch_refusal(lambda w, *, x: (x[:6] * w).sum(), jnp.ones(4), batch=batch, x=X)


def test_a_donating_function_leaves_the_arguments_alone():
    """Arguments that the function consumes are copied for every try, random keys and weak types included."""
    args = (jnp.ones(4), X + 0, jax.random.key(0), jnp.asarray(2.0))

    def step(w, x, key, rate):
        return w + rate * (x * w).sum(), x + 1, jax.random.split(key)[0], rate * 2

    donating = jax.jit(step, donate_argnums=(0, 1, 2, 3))
    lowered = lower(donating, args, {}, role="subject", clock=lambda: 0)
    check_batch(JittedSubject.of(lowered, (args, {})).on_copies, (args, {}), Batch(argument=1, size=8))
    assert not any(leaf.is_deleted() for leaf in args)


@pytest.mark.parametrize(
    ("platform", "capability", "rounding"),
    [("cpu", None, 0), ("gpu", "7.5", 0), ("gpu", "gfx942", 0), ("gpu", "9.0", 2**-9), ("tpu", None, 2**-7)],
)
def test_a_device_may_round_float32_products(platform, capability, rounding):
    """In TensorFloat-32 from compute capability 8.0 on, in bfloat16 on TPUs; what is not multiplied is not rounded."""
    device = SimpleNamespace(platform=platform, compute_capability=capability)

    def on(*products):
        return Closeness.on(device, products, rtol=1e-4, atol=1e-5)

    assert on("float32[8,4] x float32[4,2]") == Closeness(1e-4, 1e-5, rounding)
    assert Closeness.on(device, None, rtol=1e-4, atol=1e-5) == Closeness(1e-4, 1e-5, rounding)
    assert on("bfloat16[8,4] x bfloat16[4,2]") == on() == Closeness(1e-4, 1e-5)
    with jax.default_matmul_precision("highest"):
        assert on("float32[8,4] x float32[4,2]") == Closeness(1e-4, 1e-5)


def test_a_rounding_is_of_the_largest_element():
    """Sums of products are off by a share of what they sum, which may be far more than the sum. Infinities say nothing."""
    allowed = Closeness(0.0, 0.0, 2**-9)
    reference = {"x": array([0.0, 2.0, INF])}
    check_agreement({"x": array([2**-8, 2.0, INF])}, reference, allowed)
    with pytest.raises(InvalidCaseError, match=r"1 of 3 elements differ by more than 0\.00391"):
        check_agreement({"x": array([2**-7, 2.0, INF])}, reference, allowed)
