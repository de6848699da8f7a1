"""The memory of references: what was saved comes back exactly, anything else is as good as nothing."""

import json
import os
import pickle
import warnings
from io import BytesIO

import ml_dtypes
import numpy as np
import pytest

from jaxgate.keep import cache as references
from jaxgate.keep.cache import ReferenceCache

NUMBERS = {"facts": {"temp_bytes": 4096, "traces": None}, "compile_ns": 12_000_000}
FOUR = np.arange(4, dtype=np.float32)


@pytest.fixture
def cache(tmp_path):
    """A cache in a folder that does not exist yet."""
    return ReferenceCache(tmp_path / "references")


PLAIN = ["float32", "float64", "float16", "int8", "int64", "uint32", "bool", "complex64"]
RARE = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "int4", "uint4"]


@pytest.mark.parametrize("dtype", [*PLAIN, *RARE])
def test_arrays_come_back(cache, dtype):
    """Every type that JAX returns, in every kind of shape and order in memory, comes back bit for bit and in order."""
    kind = getattr(ml_dtypes, dtype) if dtype in RARE else dtype
    shapes = [(2, 3), (3,), (), (0,), (0, 3), (3, 0), *((number,) for number in range(1, 7))]
    arrays = [np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(np.float32).astype(kind) for shape in shapes]
    arrays += [np.asfortranarray(arrays[0]), np.array([np.nan, -0.0, np.inf], np.float32)]
    cache.save("key", NUMBERS, arrays)
    numbers, found = cache.load("key")
    assert numbers == NUMBERS
    told = [(one.dtype, one.shape, one.tobytes()) for one in found]
    assert told == [(one.dtype, one.shape, one.tobytes()) for one in arrays]


def test_keys_are_kept_apart(cache):
    """Each key has its own entry, without arrays, too; saving again replaces it."""
    for key, value in (("a", 1), ("b", 2), ("a", 3)):
        cache.save(key, {"compile_ns": value}, [])
    assert cache.load("a") == ({"compile_ns": 3}, [])
    assert cache.load("b") == ({"compile_ns": 2}, [])
    assert cache.load("c") is None


def test_without_a_folder_nothing_is_remembered(tmp_path, monkeypatch):
    """With pytest's cache switched off; one that cannot be written costs time only."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("a file in its place")
    for cache in (ReferenceCache(None), ReferenceCache(tmp_path / "file")):
        cache.save("key", NUMBERS, [FOUR])
        assert cache.load("key") is None
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def entry(about, **arrays):
    """The bytes of an entry made by hand."""
    buffer = BytesIO()
    np.savez(buffer, about=about if isinstance(about, np.ndarray) else np.array(about), **arrays)
    return buffer.getvalue()


def typed(*dtypes):
    """What an entry says of its arrays."""
    return json.dumps({"dtypes": dtypes})


def lone_array():
    """An ``.npy`` file, which NumPy opens as happily as an ``.npz``."""
    buffer = BytesIO()
    np.save(buffer, np.arange(3))
    return buffer.getvalue()


UNREADABLE = {
    "empty": b"",
    "garbage": b"garbage" * 100,
    "zip of nothing": b"PK\x05\x06" + bytes(18),
    "a lone array": lone_array(),
    "a pickle": pickle.dumps({"about": "{}"}),
    "numbers are not JSON": entry("{"),
    "numbers are a list": entry("[1]"),
    "numbers are nested deeply": entry("[" * 100_000),
    "no types": entry("{}", array_0=FOUR),
    "types are a number": entry('{"dtypes": 3}', array_0=FOUR),
    "type is a number": entry(typed(3), array_0=FOUR),
    "type is unknown": entry(typed("float3"), array_0=FOUR),
    "type is no type": entry(typed("finfo"), array_0=FOUR),
    "array is missing": entry(typed("float32", "float32"), array_0=FOUR),
    "array has another size": entry(typed("bfloat16"), array_0=np.zeros(3, np.uint8)),
}


@pytest.mark.parametrize("what", UNREADABLE)
def test_an_entry_that_cannot_be_read_is_none(cache, what):
    """A damaged entry costs time only: it is computed again, and saving replaces it."""
    cache.folder.mkdir()
    (cache.folder / "key.npz").write_bytes(entry(typed("float32"), array_0=FOUR))
    assert cache.load("key") is not None, "one that is made by hand can be read"
    (cache.folder / "key.npz").write_bytes(UNREADABLE[what])
    assert cache.load("key") is None
    cache.save("key", NUMBERS, [FOUR])
    assert cache.load("key")[0] == NUMBERS
    (cache.folder / "folder.npz").mkdir()
    assert cache.load("folder") is None


def test_damage_anywhere_is_never_half_believed(cache):
    """Cut, or with one byte changed, an entry is whole or nothing; nothing is raised, and no file is left open."""
    cache.save("key", NUMBERS, [FOUR])
    path = cache.folder / "key.npz"
    whole = path.read_bytes()
    damaged = [whole[:size] for size in range(0, len(whole) - 1, 17)]
    damaged += [
        whole[:place] + bytes([whole[place] ^ mask]) + whole[place + 1 :]
        for place in range(0, len(whole), 11)
        for mask in (0x01, 0x80)
    ]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for content in damaged:
            path.write_bytes(content)
            found = cache.load("key")
            assert found is None or (found[0], found[1][0].tolist()) == (NUMBERS, FOUR.tolist())
    assert [str(warning.message) for warning in caught if warning.category is ResourceWarning] == []


class Planted:
    """Unpickling this creates a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("member", ["about", "array", "whole file"])
def test_nothing_is_unpickled(cache, tmp_path, member):
    """An entry with Python objects in it is none, and nothing in it has run."""
    planted = tmp_path / "planted"
    objects = np.array([Planted(planted)], dtype=object)
    about, array = (objects, FOUR) if member == "about" else (typed("object"), objects)
    content = pickle.dumps(Planted(planted)) if member == "whole file" else entry(about, array_0=array)
    cache.folder.mkdir()
    (cache.folder / "key.npz").write_bytes(content)
    assert cache.load("key") is None
    assert not planted.exists()


@pytest.mark.parametrize("limit", ["MAX_FILES", "MAX_BYTES"])
def test_the_oldest_entries_go_first(cache, monkeypatch, limit):
    """Beyond either limit the entries written longest ago are forgotten, and no other file: a disk must not fill up."""
    for age, key in enumerate(["a", "b", "c", "d", "e"]):
        cache.save(key, NUMBERS, [])
        os.utime(cache.folder / f"{key}.npz", (2_000 - age, 2_000 - age))
    (cache.folder / "notes.txt").write_text("somebody's")
    os.utime(cache.folder / "notes.txt", (1, 1))
    size = (cache.folder / "a.npz").stat().st_size
    monkeypatch.setattr(references, limit, 3 if limit == "MAX_FILES" else 3 * size)
    cache.save("new", NUMBERS, [])
    assert sorted(path.name for path in cache.folder.iterdir()) == ["a.npz", "b.npz", "new.npz", "notes.txt"]


def test_an_entry_that_vanishes_meanwhile_costs_nothing(cache):
    """Another run may forget an entry while this one looks for the oldest."""
    cache.folder.mkdir()
    (cache.folder / "gone.npz").symlink_to("nowhere")  # listed, and not there when asked for its age
    cache.save("key", NUMBERS, [])
    assert cache.load("key") == (NUMBERS, [])
