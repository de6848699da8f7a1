"""How arguments arrive, by what a project gives: device arrays, NumPy, Python numbers, what lies elsewhere."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.measured import measured
from support.processes import python

X = jnp.ones((8, 4))
HERE = jax.devices()[0]


def arrivals(subject, *args, **computation):
    """How each argument arrives, and its bytes, by path."""
    signature = measured(subject, *args, **computation).signature
    return {leaf.path: (leaf.arrival, leaf.sent_bytes) for leaf in signature}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (X, ("uncommitted device array", 0)),
        (jax.device_put(X, HERE), ("device array", 0)),
        (np.ones((8, 4), np.float32), ("NumPy float32", 128)),
        (np.ones((8, 4)), ("NumPy float64", 256)),
        (np.ones((8, 4), np.int64), ("NumPy int64", 256)),
        (np.ones((8, 4), bool), ("NumPy bool", 32)),
        (jnp.bfloat16(2), ("uncommitted device array", 0)),
        (np.ones((8, 4), jnp.bfloat16), ("NumPy bfloat16", 64)),
        (np.float32(2), ("NumPy float32", 4)),
        (2.0, ("Python float", 8)),
        (2, ("Python int", 8)),
        (True, ("Python bool", 1)),
        (2j, ("Python complex", 16)),
    ],
    ids=lambda value: None if isinstance(value, tuple) else f"{type(value).__name__} {getattr(value, 'dtype', '')}",
)
def test_what_is_given_is_told(given, expected):
    """Its kind, its type before JAX converts it, and what a call sends for it."""
    assert arrivals(lambda x: x + x, given) == {"x": expected}


def test_sixty_four_bits_are_not_converted_where_they_are_asked_for():
    """The bytes are those given, whatever JAX makes of them."""
    with jax.enable_x64(True):
        assert arrivals(lambda x: x * 2, np.ones((8, 4))) == {"x": ("NumPy float64", 256)}


def test_leaves_of_a_tree_and_keywords_have_paths():
    """A list of Python floats is as many leaves; static arguments have no place."""
    step = jax.jit(lambda n, state, *, rate: n * rate * state["w"][0] * state["b"], static_argnums=0)
    state = {"w": [0.5, 1.5], "b": np.float64(2)}
    assert arrivals(step, 3, state, kwargs={"rate": X}) == {
        "state['b']": ("NumPy float64", 8),
        "state['w'][0]": ("Python float", 8),
        "state['w'][1]": ("Python float", 0),  # not used: JAX drops it before the call
        "rate": ("uncommitted device array", 0),
    }


def test_random_keys_are_in_place():
    """Arrays of keys have a type and a sharding of their own."""
    assert arrivals(lambda key: jax.random.normal(key, (3,)), jax.random.key(0)) == {
        "key": ("uncommitted device array", 0)
    }


def test_memory_of_the_host_is_told():
    """A program compiled for it takes the array from there: nothing is moved."""
    pinned = jax.device_put(X, jax.sharding.SingleDeviceSharding(HERE, memory_kind="pinned_host"))
    assert arrivals(lambda x: x * 2, pinned) == {"x": ("pinned_host array", 0)}


def test_state_that_is_threaded_counts_as_later_calls_get_it():
    """It starts as NumPy once; the batch is given as NumPy at every call, though the gate puts it on the device."""
    step = jax.jit(lambda state, batch: (state + batch.sum(), batch.mean()), donate_argnums=0)
    start, batch = np.ones((8, 4), np.float32), np.ones((8, 4))
    expected = {"state": ("uncommitted device array", 0), "batch": ("NumPy float64", 256)}
    assert arrivals(step, start, batch) == expected
    assert arrivals(step, X, batch) == expected  # copied for donation, and the batch with it
    assert arrivals(step, start, batch, next_args=lambda output, args: (output[0], args[1])) == expected


def test_what_next_args_makes_counts():
    """The first batch lies on the device, every later one comes from the host."""
    step = jax.jit(lambda state, batch: state + batch)
    loaded = arrivals(step, X, X, next_args=lambda output, _: (output, np.ones((8, 4), np.float32)))
    assert loaded == {"state": ("uncommitted device array", 0), "batch": ("NumPy float32", 128)}
    placed = arrivals(step, X, np.ones((8, 4)), next_args=lambda output, _: (output, X))
    assert placed == {"state": ("uncommitted device array", 0), "batch": ("uncommitted device array", 0)}


def test_what_is_never_threaded_counts_as_it_is_given():
    """Where ``next_args`` has nothing to give, every step starts from the same arguments."""
    assert arrivals(lambda x: x * 2, np.ones((8, 4)), next_args=lambda *_: None) == {"x": ("NumPy float64", 256)}


# Eight virtual devices, in a process of its own

EIGHT = """
import json
from dataclasses import replace
import jax, jax.numpy as jnp, numpy as np
jax.config.update("jax_num_cpu_devices", 8)
from pathlib import Path
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
from jaxgate.judge.verdict import judge
from jaxgate.keep.cache import ReferenceCache
from jaxgate.model.baseline import Baseline, Provenance, StoredBaseline; from jaxgate.model.computation import Computation; from jaxgate.model.program import ProgramRecord; from jaxgate.model.numbers import Samples
from jaxgate.observe.measure import observe
from jaxgate.observe.tools import Tools

GRID = np.array(jax.devices()).reshape(2, 4)
ORDERS = {"rows": GRID, "columns": GRID.reshape(4, 2).T[::-1], "first four": GRID[:1], "last four": GRID[1:]}
mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
SPLIT, WHOLE = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())
X = jnp.ones((1024, 512))
put, devices = jax.device_put, jax.devices()
PLACED = jax.jit(lambda x: jnp.tanh(x) * 2, in_shardings=(SPLIT,), out_shardings=SPLIT)
step = jax.jit(lambda x, *rest: x + sum(jnp.sum(leaf) for leaf in rest))
STEP = lambda x, *rest: step(x, *rest)
found, measured = {}, {}

def measure(function, args):
    key = (id(function), *map(id, args))
    if key not in measured:
        build = lambda: Computation(subject=function, args=args)
        seen = observe(build, Tools(store=ReferenceCache(None), sampling=False)).measurement
        measured[key] = (function, args), replace(seen, samples=Samples(bursts_ns=(1,), calls_per_burst=1))
    return measured[key][1]

def case(name, function, before, now):
    first, second = measure(function, before), measure(function, now)
    old = Baseline.of(
        first, case="a/b", test="", provenance=Provenance(commit=None, dirty=False, date="2026-11-22", jaxgate="0"),
        program=ProgramRecord(digest=None, donated=(), feeds=None, why_not=""),
    )
    verdict = judge("a/b", (), second, StoredBaseline(baseline=old, path=Path("a"), borrowed=False), strict=True)
    red = sorted(finding.name for finding in verdict.findings if finding.status == "REGRESSED")
    found[name] = {
        "reason": verdict.time.reason, "devices": second.fingerprints.devices,
        "program": first.fingerprints.program == second.fingerprints.program, "red": red, "time": verdict.time.status,
        "cause": str(verdict.causes[0]) if verdict.causes else "", "status": verdict.status,
        "leaves": [(leaf.arrival, leaf.sent_bytes) for leaf in second.signature],
    }

split = put(X, SPLIT)
case("no longer placed", PLACED, (split,), (X,))
case("from the host", PLACED, (split,), (np.ones((1024, 512)),))
case("the same", PLACED, (split,), (put(X, SPLIT),))
case("never placed", PLACED, (X,), (X,))
number = put(jnp.float32(2), WHOLE)
case("one number", STEP, (split, number), (split, jnp.float32(2)))
case("a Python number", STEP, (split, number), (split, 2.0))
few = [jnp.ones((8, 8))] * 8
case("small state", STEP, (split, *(put(leaf, WHOLE) for leaf in few)), (split, *few))
case("another device", STEP, (put(X, devices[0]),), (put(X, devices[3]),))
keys = put(jax.random.split(jax.random.key(0), 8), SPLIT)
case("keys", jax.jit(jax.vmap(lambda key: jax.random.normal(key, (3,)))), (keys,), (keys,))
for name, first, second in (("another order", "rows", "columns"), ("the same order", "columns", "columns"),
                            ("other devices", "first four", "last four")):
    both = []
    for order in (first, second):
        grid = jax.sharding.Mesh(ORDERS[order], ("a", "b"))
        both.append((put(X, NamedSharding(grid, P("a", "b"))),))
    case(name, STEP, *both)
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def eight():
    """What was found on eight devices, by case."""
    return json.loads(python("-c", EIGHT).splitlines()[-1])


MOVED = "x: device array then, uncommitted device array on other devices now: 2,097,152 bytes are moved at every call"
FOUND = {
    # the program is the same; the array is spread over the devices at every call
    "no longer placed": {"program": True, "red": ["jax_calls", "sent_bytes"], "time": "UNDECIDED", "cause": MOVED},
    # each device is sent its part; the bytes are those before JAX converts them
    "from the host": {
        "program": True,
        "red": ["jax_calls", "sent_bytes"],
        "leaves": [["NumPy float64", 1024 * 512 * 8]],
    },
    # the StableHLO is the same, and the program is laid out on its devices otherwise
    "another order": {"program": True, "red": [], "time": "UNDECIDED", "devices": "1 3 5 7 0 2 4 6"},
    "the same order": {"status": "SAME", "devices": "1 3 5 7 0 2 4 6"},
    "other devices": {"program": True, "time": "UNDECIDED", "devices": "4 5 6 7"},
    "the same": {"status": "SAME", "red": [], "leaves": [["device array", 0]]},
    "keys": {"status": "SAME", "red": [], "leaves": [["device array", 0]]},
    "never placed": {"status": "SAME", "red": [], "leaves": [["uncommitted device array on other devices", 2_097_152]]},
    # sent to eight devices, or to seven more than it lies on: few bytes, and JAX's slow path for the call
    "one number": {"red": ["jax_calls"], "leaves 1": 28},
    "a Python number": {"red": ["jax_calls"], "leaves 1": 64},
    "small state": {"red": ["jax_calls", "moved_arrays"]},
    "another device": {"red": [], "devices": None, "leaves": [["device array", 0]]},
}


@pytest.mark.parametrize("name", FOUND)
def test_where_arrays_lie_on_several_devices_is_part_of_a_case(eight, name):
    found = eight[name]
    known = found | {f"leaves {place}": nbytes for place, (_, nbytes) in enumerate(found["leaves"])}
    assert {field: known[field] for field in FOUND[name]} == FOUND[name]


def test_a_changed_order_and_many_small_arrays_are_told(eight):
    """Each of the small ones takes as long as a small program."""
    assert eight["another order"]["reason"].startswith("device assignment changed and ")
    assert eight["small state"]["cause"].endswith("1,792 bytes are moved at every call; and 7 more")
