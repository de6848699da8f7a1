"""Anybody's function as a case: what it donates, and what the next step takes from the result."""

import jax
import jax.numpy as jnp
import pytest
from support.function_cases import function_case

from jaxgate.model.claim import claim
from jaxgate.model.computation import Batch
from jaxgate.model.workload import Tolerance

X, Y = jnp.ones((4, 4)), jnp.zeros((2, 4))


def step(state, batch):
    """A step of a training loop: a new state and a loss."""
    return state + batch.sum(), batch.mean()


def both(state, batch):
    """Returns arrays like both arguments, so that either can be donated."""
    return state * 2, batch * 2


def computation(function=step, args=(X, Y), **changes):
    """What the builder of a function's case gives."""
    return case(function, args, **changes).build()


def case(function=step, args=(X, Y), **changes):
    """A function's case; arguments that are not given are those of ``gate(function, *args)``."""
    return function_case(function, args, **changes)


def donated(made, *args, **kwargs):
    """Which leaves of the arguments the subject donates."""
    lowered = made.subject.lower(*args, **kwargs)
    return [leaf.donated for leaf in jax.tree.leaves(lowered.args_info)]


@pytest.mark.parametrize(
    ("donate", "expected"),
    [
        ("state", [True, False]),
        ("batch", [False, True]),
        (0, [True, False]),
        (1, [False, True]),
        (-1, [False, True]),
        (["state"], [True, False]),
        (("state", "batch"), [True, True]),
        ([0, "batch"], [True, True]),
    ],
    ids=str,
)
def test_donation_by_name_or_position(donate, expected):
    """Arguments to donate are named one way or the other, alone or in a list."""
    assert donated(computation(both, donate=donate), X, Y) == expected


@pytest.mark.parametrize("donate", [None, (), []], ids=str)
def test_without_donation_the_function_stays_itself(donate):
    """A function that donates nothing is neither wrapped nor threaded; of a jitted one its author has decided."""
    jitted = jax.jit(step, donate_argnums=0)
    assert computation(jitted).subject is jitted
    made = computation(donate=donate)
    assert made.subject is step
    assert made.next_args is None


@pytest.mark.parametrize("option", ["donate", "carry"])
@pytest.mark.parametrize("wanted", ["nothing", ["state", "nothing"], 2, [0, 7], -3], ids=str)
def test_an_argument_that_is_none_is_refused(option, wanted):
    """A name or position that no argument has is told at once."""
    with pytest.raises(ValueError, match=r"nothing|2|7|-3") as caught:
        case(**{option: wanted})
    if "nothing" in str(wanted):
        assert str(caught.value) == "expected one of the arguments state, batch, found 'nothing'"


def test_donation_by_a_jitted_function_is_its_own_matter():
    """donate= cannot be put on top of a jit; the error says where it belongs."""
    with pytest.raises(TypeError, match=r"donate='state'.*jitted already; put donate_argnames into its own jax\.jit"):
        case(jax.jit(step), donate="state")


def test_the_rest_is_handed_on():
    """Name, claims, tolerances, reference, batch and further fields arrive where they belong."""
    claims, batch = [claim("temp_bytes <= reference")], Batch(argument=1, size=2)
    tolerances = [Tolerance(fact="temp_bytes", relative=0.5, why="the sort's buffer moves")]
    made = case(
        kwargs={"scale": 2},
        reference=abs,
        claims=claims,
        tolerances=tolerances,
        batch=batch,
        options={"rtol": 0.5, "expected_traces": 3},
    )
    assert (made.name, made.tolerances) == ("model/step", tuple(tolerances))
    built = made.build()
    assert built.claims == tuple(claims)
    assert (built.kwargs, built.reference, built.batch) == ({"scale": 2}, abs, batch)
    assert (built.rtol, built.expected_traces, built.atol) == (0.5, 3, 0.05)
    assert built.args == (X, Y)


def test_the_state_is_found_in_a_tuple():
    """The element of the result, or the whole, that has its shape becomes the next argument; the others stay."""
    new, loss = 2 * X, jnp.float32(3)
    for result in ((new, loss), (loss, new), [loss, new]):
        for made in (computation(donate="state"), computation(jax.jit(step), carry="state")):  # needs no donation
            following = made.next_args(result, (X, Y))
            assert following[0] is new
            assert following[1] is Y
    for state in (X, {"w": X, "b": Y}, (X, Y)):
        new = jax.tree.map(lambda leaf: 2 * leaf, state)
        assert computation(donate="state").next_args(new, (state, Y))[0] is new


def test_several_arguments_are_fed():
    """Two states of one shape take two elements of the result, in the order of the arguments."""
    params, moments = 2 * X, 3 * X

    def train(params, moments, batch):
        return params, moments, batch.sum()

    for donate in (("params", "moments"), ("moments", "params")):
        made = computation(train, (X, X, Y), donate=donate)
        following = made.next_args((params, moments, jnp.float32(1)), (X, X, Y))
        assert following[0] is params
        assert following[1] is moments
        assert following[2] is Y


def test_a_place_is_found_once():
    """State that drifts to another dtype or shape is still fed, so that its retrace is seen."""
    following = computation(carry="state")
    assert following.next_args((X, jnp.float32(1)), (X, Y))[0] is X
    drifted = X.astype("bfloat16")
    assert following.next_args((drifted, jnp.float32(1)), (X, Y))[0] is drifted
    grown = jnp.ones((5, 5))
    assert following.next_args((grown, jnp.float32(1)), (drifted, Y))[0] is grown
    at_once = computation(carry="state")  # shapes decide: a dtype that drifts at the first step is what is looked for
    assert at_once.next_args((jnp.float32(1), drifted), (X, Y))[0] is drifted


NOT_THERE = {
    "a number": jnp.float32(1),
    "another shape": (jnp.ones((4, 5)), jnp.float32(1)),
    "another structure": ({"w": X}, jnp.float32(1)),
    "nothing": None,
    "an empty tuple": (),
}


@pytest.mark.parametrize("what", NOT_THERE)
def test_a_result_without_the_state(what):
    """What was only donated is copied for each step instead; what carry= asks for must be there."""
    assert computation(donate="state").next_args(NOT_THERE[what], (X, Y)) is None
    with pytest.raises(ValueError, match="no part of the result has the structure and shapes of argument 0"):
        computation(carry="state").next_args(NOT_THERE[what], (X, Y))


def test_carry_replaces_what_donation_would_thread():
    """With both given, donation decides what is consumed and carry what is fed."""
    made = computation(both, donate="batch", carry="state")
    assert donated(made, X, Y) == [False, True]
    following = made.next_args((2 * X, jnp.float32(1)), (X, Y))
    assert following[1] is Y
    assert following[0].tolist() == (2 * X).tolist()


def test_a_donated_keyword_argument_is_copied():
    """A donated keyword argument is not threaded: each step gets a copy. What carry= asks for is fed or refused."""
    made = computation(both, args=(), kwargs={"state": X, "batch": Y}, donate="state")
    assert sorted(donated(made, state=X, batch=Y)) == [False, True]
    assert made.next_args is None or made.next_args((2 * X, 2 * Y), ()) is None
    with pytest.raises(ValueError, match="keyword"):
        computation(args=(), kwargs={"state": X, "batch": Y}, carry="state").next_args((2 * X, jnp.float32(1)), ())


def test_arguments_without_names_of_their_own():
    """A function of any number of arguments is fed and donates by position."""
    made = computation(lambda *arrays: tuple(2 * array for array in arrays), (X, Y, X), donate=1)
    assert donated(made, X, Y, X) == [False, True, False]
    assert made.next_args((X, 2 * Y, X), (X, Y, X))[1].tolist() == (2 * Y).tolist()
