"""What the libraries' own saves and restores need of the host's memory, over the state: the figures of docs/loops.md."""

import pickle

import jax
import jax.numpy as jnp
import pytest

from jaxgate.ext.loop.held import listening, memory
from jaxgate.ext.loop.model import LIMITS

STATE = {f"w{number}": (256, 256) for number in range(16)}  # 4.2 MB


def by_pickle(file):
    def save(state):
        with file.open("wb") as stream:
            pickle.dump(jax.device_get(state), stream)

    def restore(like):
        del like
        with file.open("rb") as stream:
            return jax.device_put(pickle.load(stream))

    return save, restore


def by_dumps(file):
    return (
        lambda state: file.write_bytes(pickle.dumps(jax.device_get(state))),
        lambda like: jax.device_put(pickle.loads(file.read_bytes())),
    )


def by_flax(file):
    flax = pytest.importorskip("flax.serialization")
    return (
        lambda state: file.write_bytes(flax.to_bytes(state)),
        lambda like: jax.device_put(flax.from_bytes(like, file.read_bytes())),
    )


def by_orbax(file):
    orbax = pytest.importorskip("orbax.checkpoint")

    def save(state):
        with orbax.StandardCheckpointer() as checkpointer:
            checkpointer.save(file, state, force=True)

    def restore(like):
        with orbax.StandardCheckpointer() as checkpointer:
            return checkpointer.restore(file, like)

    return save, restore


def by_equinox(file):
    equinox = pytest.importorskip("equinox")
    return (
        lambda state: equinox.tree_serialise_leaves(str(file), state),
        lambda like: equinox.tree_deserialise_leaves(str(file), like),
    )


@pytest.mark.parametrize(
    ("library", "saves", "restores"),
    [
        (by_pickle, (0.9, 1.1), (0.9, 1.2)),
        (by_dumps, (1.9, 2.4), (1.9, 2.2)),
        (by_flax, (3.1, 4.1), (2.0, 2.7)),
        (by_orbax, (0.0, 0.3), (0.0, 1.2)),
        (by_equinox, (0.0, 0.3), (0.0, 1.2)),
    ],
)
def test_what_it_needs(tmp_path, library, saves, restores):
    """Each once to import, and once more; only Flax's save and ``dumps`` need more than is allowed."""
    state = jax.block_until_ready({name: jnp.ones(shape) for name, shape in STATE.items()})
    size = sum(leaf.nbytes for leaf in state.values())
    save, restore = library(tmp_path / "state")
    for _ in range(2):
        with listening(), memory() as saving:
            save(state)
        with listening(), memory() as restoring:
            restore(state)
    found = saving.most / size, restoring.most / size
    print(f"{library.__name__}: {found[0]:.2f} × to save, {found[1]:.2f} × to restore")  # noqa: T201 - the figures
    assert saves[0] <= found[0] <= saves[1], found
    assert restores[0] <= found[1] <= restores[1] <= LIMITS["restore_ratio"], found
    assert (found[0] > LIMITS["save_ratio"]) == (library in {by_flax, by_dumps})
