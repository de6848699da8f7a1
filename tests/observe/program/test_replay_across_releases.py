"""Programs recorded on another release of JAX still run here with the recorded numbers, or are refused clearly.

The files in ``tests/data`` were written by this file: on the oldest supported line, jax 0.10.2, and for ``newer``
on 0.12. Write them again only when a line is dropped or added: ``python tests/test_replay_across_releases.py``.
"""

import gzip
import json
import zlib

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import optax
import pytest
from pydantic import TypeAdapter
from support.paths import DATA

from jaxgate.model.program import ProgramRecord, StoredProgram
from jaxgate.observe.arguments.feeder import on_device
from jaxgate.observe.arguments.signature import to_host
from jaxgate.observe.duel.duel import prepare
from jaxgate.observe.duel.sides import restore, to_files
from jaxgate.observe.program.export import NotReplayableError, export_program, load_program, split_call
from jaxgate.observe.trace.lowering import lower

LINE = tuple(int(part) for part in jax.__version__.split(".")[:2])
OLDER = ("adamw", "scan", "while", "sort", "conv", "bfloat16", "random")
NEWER = ("newer-cholesky",)
RECORDS = TypeAdapter(ProgramRecord)


def subjects():
    """Name to subject, arguments and feeds; inputs are plain numbers, without a generator that may change."""
    grid = jnp.arange(12.0).reshape(3, 4) / 10
    params = {"w": grid.T + 0, "b": jnp.zeros(3)}
    optimiser = optax.adamw(1e-2)

    def adamw(params, state, batch):
        grads = jax.grad(lambda p: jnp.mean((batch @ p["w"] + p["b"] - 1) ** 2))(params)
        updates, state = optimiser.update(grads, state, params)
        return optax.apply_updates(params, updates), state

    def newton(x):
        return jax.lax.while_loop(
            lambda s: abs(s[0] ** 2 - x) > 1e-3, lambda s: ((s[0] + x / s[0]) / 2, s[1] + 1), (x, 0)
        )

    def attend(x):
        return jax.nn.softmax(x @ x.T) @ x

    state = optimiser.init(params)
    fed = (*range(len(jax.tree.leaves((params, state)))), None)
    image, kernel = jnp.arange(50.0).reshape(1, 2, 5, 5) / 50, jnp.arange(54.0).reshape(3, 2, 3, 3) / 54
    return {
        "adamw": (jax.jit(adamw, donate_argnums=(0, 1)), (params, state, grid), fed),
        "scan": (lambda x: jax.lax.scan(lambda c, y: (jnp.tanh(c + y), c.sum()), x[0], x), (grid,), None),
        "while": (newton, (2.0,), None),
        "sort": (lambda x: (jnp.sort(x, axis=0), jnp.argsort(-x), jax.lax.top_k(x, 2)), ((grid * 7) % 1,), None),
        "conv": (lambda a, b: jax.lax.conv(a, b, (1, 1), "SAME"), (image, kernel), None),
        "bfloat16": (attend, (grid.astype(jnp.bfloat16),), None),
        "random": (lambda k: (jax.random.split(k)[0], jax.random.normal(k, (4,))), (jax.random.key(7),), (0,)),
        "newer-cholesky": (jnp.linalg.cholesky, (grid.T @ grid + jnp.eye(4),), None),
    }


def to_json(array):
    return {"dtype": array.dtype.name, "shape": array.shape, "values": array.astype(np.float64).ravel().tolist()}


def from_json(found):
    dtype = np.dtype(getattr(ml_dtypes, found["dtype"], found["dtype"]))
    return np.array(found["values"]).astype(dtype).reshape(found["shape"])


def generate():
    """Write the files of this line: what it can record that the other has to read."""
    DATA.mkdir(exist_ok=True)
    for name, (subject, args, feeds) in subjects().items():
        if name not in (OLDER if LINE < (0, 12) else NEWER):
            continue
        call = on_device(args, {})
        lowered = lower(subject, *call, role="subject", clock=lambda: 0)
        program = export_program(lowered, call, feeds, 0)
        inputs, kinds = to_files(split_call(lowered, call)[0])
        about = {
            "jax": jax.__version__,
            "record": RECORDS.dump_python(program.record, mode="json"),
            "kinds": kinds,
            "inputs": [to_json(array) for array in inputs],
            "outputs": [to_json(to_host(leaf)) for leaf in jax.tree.leaves(subject(*args))],
        }
        (DATA / f"{name}.export.gz").write_bytes(gzip.compress(program.content, mtime=0))
        (DATA / f"{name}.json").write_text(json.dumps(about, indent=None, separators=(",", ":")) + "\n")


def recorded(name):
    """A file of another release: its program, its arguments on the device, its outputs."""
    about = json.loads((DATA / f"{name}.json").read_text())
    content = gzip.decompress((DATA / f"{name}.export.gz").read_bytes())
    program = StoredProgram(record=RECORDS.validate_json(json.dumps(about["record"])), content=content)
    leaves = restore([from_json(found) for found in about["inputs"]], about["kinds"])
    return program, leaves, [from_json(found) for found in about["outputs"]]


def check_numbers(program, leaves, expected):
    """Run a program; every output has the type, the shape and the numbers that were recorded."""
    side = prepare(program, leaves)
    outputs = [to_host(leaf) for leaf in side.call(side.feeder.fresh()[0])]
    assert [(leaf.dtype, leaf.shape) for leaf in outputs] == [(leaf.dtype, leaf.shape) for leaf in expected]
    for ours, theirs in zip(outputs, expected, strict=True):
        exact = theirs.dtype.kind in "iub"
        tolerance = 0.0 if exact else 2e-2 if theirs.dtype.name == "bfloat16" else 1e-5
        np.testing.assert_allclose(
            ours.astype(np.float64), theirs.astype(np.float64), rtol=tolerance, atol=0 if exact else 1e-6
        )
    return side


@pytest.mark.parametrize("name", OLDER)
def test_a_program_of_the_oldest_line_runs_here(name):
    """The window that is promised: recorded on jax 0.10.2, it loads, compiles and gives the recorded numbers."""
    assert json.loads((DATA / f"{name}.json").read_text())["jax"] == "0.10.2"
    check_numbers(*recorded(name))


def test_donation_and_feeding_last_over_releases():
    """The recorded train step still updates its state in place, call after call."""
    program, leaves, expected = recorded("adamw")
    side = check_numbers(program, leaves, expected)
    assert side.facts["aliased_bytes"] == sum(leaf.nbytes for leaf in leaves[:-1])
    first = side.feeder.fresh()[0]
    output = side.call(first)
    assert [leaf.is_deleted() for leaf in first] == [True] * (len(leaves) - 1) + [False]
    second = side.following(first, output)
    side.call(second)
    assert [leaf.is_deleted() for leaf in second] == [True] * (len(leaves) - 1) + [False]
    assert not any(leaf.is_deleted() for leaf in leaves)


@pytest.mark.parametrize("name", NEWER)
def test_a_program_of_a_newer_line_runs_or_is_refused(name, capfd):
    """Calls into LAPACK are written in a newer dialect on 0.12: an older JAX says that it cannot read them."""
    program, leaves, expected = recorded(name)
    if LINE >= (0, 12):
        check_numbers(program, leaves, expected)
        return
    with pytest.raises(NotReplayableError) as caught:
        load_program(program)
    reason = f"jax {jax.__version__} cannot read it (JaxRuntimeError); record it again with --perf-update"
    assert str(caught.value) == reason
    assert "vhlo.custom_call_v2" in capfd.readouterr().err  # MLIR's own complaint


@pytest.mark.parametrize("name", OLDER + NEWER)
def test_recorded_files_are_small_and_say_nothing_private(name):
    packed = (DATA / f"{name}.export.gz").read_bytes()
    content = zlib.decompress(packed, wbits=31)
    assert len(packed) < 4_000
    assert len((DATA / f"{name}.json").read_bytes()) < 4_000
    assert [word for word in (b".py", b"/home", b"/tmp", b"packages") if word in content] == []


if __name__ == "__main__":
    generate()
