"""The store of programs: one file for each structure, touched only when there is need."""

from __future__ import annotations

import gzip
import hashlib
import json
import os

import pytest

from jaxgate.keep.programs import ProgramStore

CONTENT = b"".join(hashlib.sha256(bytes([i])).digest() for i in range(20)) + b"program" * 30
OTHER = b"the same structure, other names"
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def store(tmp_path):
    """An empty store."""
    return ProgramStore(tmp_path)


def test_what_is_saved_can_be_loaded(store, tmp_path):
    """Under ``programs/``, by fingerprint; the digest is that of the content."""
    assert store.load("f00d") is None
    assert store.save("f00d", CONTENT) == DIGEST
    assert store.load("f00d") == CONTENT
    assert store.load("f00") is None
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()] == [
        "programs/f00d.export.gz"
    ]


def test_saving_again_touches_nothing(store):
    """Neither bytes nor time; the digest is that of the content on disk, even if the new one differs."""
    store.save("f00d", CONTENT)
    path = store.path("f00d")
    before = path.read_bytes()
    os.utime(path, (1, 1))
    assert store.save("f00d", CONTENT) == DIGEST
    assert store.save("f00d", OTHER) == DIGEST
    assert (path.read_bytes(), path.stat().st_mtime) == (before, 1)


def test_files_are_the_same_everywhere(store, tmp_path):
    """No time and no name in the header."""
    store.save("f00d", CONTENT)
    other = ProgramStore(tmp_path / "elsewhere")
    other.save("beef", CONTENT)
    content = store.path("f00d").read_bytes()
    assert content == other.path("beef").read_bytes()
    assert content[3:8] == bytes(5)
    assert gzip.decompress(content) == CONTENT


def damaged():
    """A file cut at many places, with single bits flipped, replaced, or grown."""
    whole = gzip.compress(CONTENT, mtime=0)
    yield from (whole[:at] for at in [*range(12), len(whole) // 2, len(whole) - 8, len(whole) - 1])
    for at in (0, 1, 2, 3, 10, len(whole) // 2, len(whole) - 8, len(whole) - 1):
        flipped = bytearray(whole)
        flipped[at] ^= 1 if at != 3 else 4
        yield bytes(flipped)
    yield from (b"garbage", bytes(100), CONTENT, whole + b"garbage")


DAMAGED = list(damaged())


@pytest.mark.parametrize("content", DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_file_is_missing_and_is_replaced(store, content):
    """Whatever is wrong with it, an empty file included: it reads as none, and recording again mends it."""
    store.save("f00d", CONTENT)
    store.path("f00d").write_bytes(content)
    assert store.load("f00d") is None
    assert store.save("f00d", CONTENT) == DIGEST
    assert store.load("f00d") == CONTENT


TEST = """
import jax.numpy as jnp

def test_step(gate):
    gate(lambda x: x * 2, jnp.ones(8))
"""


def test_recording_again_mends_a_program_that_cannot_be_read(project):
    """A sound file with a content that this JAX cannot read: ``--perf-update``, which the refusal asks for, helps."""
    project.write("test_own.py", TEST)
    project.run("--perf-update").counts(passed=1)
    (path,) = project.path.rglob("*.export.gz")
    recorded = path.read_bytes()
    path.write_bytes(gzip.compress(b"by a JAX to come"))
    project.run("--perf-update").counts(passed=1)
    assert path.read_bytes() == recorded
    (text,) = project.baselines().values()
    assert json.loads(text)["program"]["digest"] == hashlib.sha256(gzip.decompress(recorded)).hexdigest()
