"""The memory of references: what was saved comes back exactly, anything else is as good as nothing."""

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


@pytest.fixture
def cache(tmp_path):
    """A cache in a folder that does not exist yet."""
    return ReferenceCache(tmp_path / "references")


def assert_equal(found, expected):
    """The same type, shape and bits; NaN and negative zero too."""
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    assert found.tobytes() == expected.tobytes()


def filled(dtype, shape):
    """An array of a type, with distinct small values."""
    return np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(np.float32).astype(dtype)


PLAIN = ["float32", "float64", "float16", "int8", "int64", "uint32", "bool", "complex64"]
RARE = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "int4", "uint4"]
SHAPES = {"matrix": (2, 3), "vector": (3,), "scalar": (), "empty": (0,), "no rows": (0, 3), "no columns": (3, 0)}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [*PLAIN, *RARE])
def test_arrays_come_back(cache, dtype, shape):
    """Every type that JAX returns, in every kind of shape, comes back bit for bit."""
    array = filled(getattr(ml_dtypes, dtype) if dtype in RARE else dtype, SHAPES[shape])
    cache.save("key", NUMBERS, [array])
    numbers, (found,) = cache.load("key")
    assert numbers == NUMBERS
    assert_equal(found, array)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_transposed_arrays_come_back(cache, dtype):
    """The order of an array in memory does not change what it holds."""
    array = np.asfortranarray(filled(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype, (2, 3)))
    cache.save("key", NUMBERS, [array])
    _, (found,) = cache.load("key")
    assert found.dtype == array.dtype
    assert found.tolist() == array.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_several_arrays_keep_their_order(cache):
    """More than ten outputs come back in order, each with its own type."""
    arrays = [filled("float32" if i % 2 else ml_dtypes.bfloat16, (i,)) for i in range(1, 13)]
    cache.save("key", NUMBERS, arrays)
    _, found = cache.load("key")
    assert len(found) == 12
    for mine, theirs in zip(found, arrays, strict=True):
        assert_equal(mine, theirs)


def test_no_arrays_and_not_a_number_come_back(cache):
    """A function may return nothing; a stored NaN keeps its bits."""
    cache.save("nothing", NUMBERS, [])
    assert cache.load("nothing") == (NUMBERS, [])
    odd = np.array([np.nan, -0.0, np.inf], np.float32)
    cache.save("odd", NUMBERS, [odd])
    assert_equal(cache.load("odd")[1][0], odd)


def test_saving_changes_neither_argument(cache):
    """The caller's numbers and arrays stay as they were."""
    numbers, array = {"compile_ns": 1}, filled("float32", (3,))
    cache.save("key", numbers, [array])
    assert numbers == {"compile_ns": 1}
    assert array.tolist() == [0.0, 1.0, 2.0]


def test_keys_are_kept_apart(cache):
    """Each key has its own entry; saving again replaces it."""
    for key, value in (("a", 1), ("b", 2), ("a", 3)):
        cache.save(key, {"compile_ns": value}, [])
    assert cache.load("a") == ({"compile_ns": 3}, [])
    assert cache.load("b") == ({"compile_ns": 2}, [])
    assert cache.load("c") is None


def test_without_a_folder_nothing_is_remembered(tmp_path, monkeypatch):
    """With pytest's cache switched off saving and loading do nothing."""
    monkeypatch.chdir(tmp_path)
    cache = ReferenceCache(None)
    cache.save("key", NUMBERS, [filled("float32", (3,))])
    assert cache.load("key") is None
    assert list(tmp_path.iterdir()) == []


def entry(**arrays):
    """The bytes of an entry made by hand."""
    buffer = BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def lone_array():
    """An ``.npy`` file, which NumPy opens as happily as an ``.npz``."""
    buffer = BytesIO()
    np.save(buffer, np.arange(3))
    return buffer.getvalue()


FOUR = np.arange(4, dtype=np.float32)
UNREADABLE = {
    "empty": b"",
    "garbage": b"garbage" * 100,
    "zip of nothing": b"PK\x05\x06" + bytes(18),
    "a lone array": lone_array(),
    "a pickle": pickle.dumps({"numbers": "{}"}),
    "no numbers": entry(output_0=FOUR),
    "numbers are not JSON": entry(numbers=np.array("{")),
    "numbers are a list": entry(numbers=np.array("[1]")),
    "numbers are one number": entry(numbers=np.array("3")),
    "numbers are nested deeply": entry(numbers=np.array("[" * 100_000)),
    "no types": entry(numbers=np.array("{}"), output_0=FOUR),
    "types are a number": entry(numbers=np.array('{"dtypes": 3}'), output_0=FOUR),
    "type is a number": entry(numbers=np.array('{"dtypes": [3]}'), output_0=FOUR),
    "type is unknown": entry(numbers=np.array('{"dtypes": ["float3"]}'), output_0=FOUR),
    "type is no type": entry(numbers=np.array('{"dtypes": ["finfo"]}'), output_0=FOUR),
    "array is missing": entry(numbers=np.array('{"dtypes": ["float32", "float32"]}'), output_0=FOUR),
    "array has another size": entry(numbers=np.array('{"dtypes": ["bfloat16"]}'), output_0=np.zeros(3, np.uint8)),
}


@pytest.mark.parametrize("what", UNREADABLE)
def test_an_entry_that_cannot_be_read_is_none(cache, what):
    """A damaged entry costs time only: it is computed again, and saving replaces it."""
    cache.folder.mkdir()
    (cache.folder / "key.npz").write_bytes(UNREADABLE[what])
    assert cache.load("key") is None
    cache.save("key", NUMBERS, [FOUR])
    assert cache.load("key")[0] == NUMBERS
    (cache.folder / "folder.npz").mkdir()
    assert cache.load("folder") is None


def outcomes(cache, damaged):
    """What loading damaged entries gives besides ``None`` and the entry itself."""
    surprises = set()
    for content in damaged:
        (cache.folder / "key.npz").write_bytes(content)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ResourceWarning)  # has its own test below
                found = cache.load("key")
        except Exception as error:  # noqa: BLE001 - all of them are surprises
            surprises.add(f"{type(error).__name__}: {error}")
            continue
        if found is not None and not (found[0] == NUMBERS and found[1][0].tolist() == FOUR.tolist()):
            surprises.add(f"wrong content: {found}")
    return surprises


@pytest.fixture
def whole(cache):
    """The bytes of a good entry."""
    cache.save("key", NUMBERS, [FOUR])
    return (cache.folder / "key.npz").read_bytes()


def test_a_truncated_entry_is_none(cache, whole):
    """Cut anywhere, an entry is never half believed."""
    assert outcomes(cache, (whole[:size] for size in range(len(whole) - 1))) == set()


def test_a_flipped_bit_is_never_another_number(cache, whole):
    """Wherever one byte is damaged the entry is whole or nothing, and nothing is raised."""
    flipped = (
        whole[:place] + bytes([whole[place] ^ mask]) + whole[place + 1 :]
        for place in range(len(whole))
        for mask in (0x01, 0x80)
    )
    assert outcomes(cache, flipped) == set()


def test_a_damaged_entry_leaves_no_open_file(cache, whole):
    """A file left open would be a warning, and so an error, in the tests of whoever turns warnings into errors."""
    (cache.folder / "key.npz").write_bytes(whole[:-30])

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert cache.load("key") is None
    assert [str(warning.message) for warning in caught if warning.category is ResourceWarning] == []


class Planted:
    """Unpickling this creates a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("member", ["numbers", "output_0", "whole file"])
def test_nothing_is_unpickled(cache, tmp_path, member):
    """An entry with Python objects in it is none, and nothing in it has run."""
    planted = tmp_path / "planted"
    objects = np.array([Planted(planted)], dtype=object)
    arrays = {"numbers": np.array('{"dtypes": ["object"]}'), "output_0": FOUR, member: objects}
    content = pickle.dumps(Planted(planted)) if member == "whole file" else entry(**arrays)
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


def test_a_folder_that_cannot_be_written_costs_time_only(tmp_path):
    """A cache on a full or read-only disk does not fail the case."""
    (tmp_path / "references").write_text("a file in its place")
    cache = ReferenceCache(tmp_path / "references")
    cache.save("key", NUMBERS, [FOUR])
    assert cache.load("key") is None
