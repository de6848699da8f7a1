"""The store of programs: one file for each structure, touched only when there is need."""

import gzip
import hashlib
import json
import os
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from pydantic import TypeAdapter
from support.lines import line_here

from jaxgate.keep.programs import ProgramStore
from jaxgate.model.program import ProgramRecord, StoredProgram
from jaxgate.observe.duel.duel import prepare
from jaxgate.observe.program.export import load_program

CONTENT = b"".join(hashlib.sha256(bytes([i])).digest() for i in range(20)) + b"program" * 30
OTHER = b"the same structure, other names"
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def store(tmp_path):
    """An empty store."""
    return ProgramStore(tmp_path)


def test_what_is_saved_can_be_loaded(store, tmp_path):
    """Under ``programs/``, by fingerprint; the digest is that of the content, and the same bytes are written everywhere."""
    assert store.load("f00d") is None
    assert store.save("f00d", CONTENT) == DIGEST
    assert store.load("f00d") == CONTENT
    assert store.load("f00") is None
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()] == [
        "programs/f00d.export.gz"
    ]
    content = store.path("f00d").read_bytes()
    assert (content[3:8], gzip.decompress(content)) == (bytes(5), CONTENT), "no moment and no name"


def test_saving_again_touches_nothing(store):
    """Neither bytes nor time; the digest is that of the content on disk, even if the new one differs."""
    store.save("f00d", CONTENT)
    path = store.path("f00d")
    before = path.read_bytes()
    os.utime(path, (1, 1))
    assert store.save("f00d", CONTENT) == DIGEST
    assert store.save("f00d", OTHER) == DIGEST
    assert (path.read_bytes(), path.stat().st_mtime) == (before, 1)


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
import jax
import jax.numpy as jnp

X, U = jnp.arange(4.0), jnp.arange(4.0) + 9

def test_plain(gate):
    gate(lambda x: x * 2, X)
"""
UNUSED = """
from jaxgate import Tolerance

def test_last(gate):
    gate(lambda x, unused: x * 2, X, U)

def test_first(gate):
    lost = Tolerance(fact="lost_bytes", absolute=16, why="it is not used at all")
    gate(jax.jit(lambda unused, x: x * 2, donate_argnums=0), U, X, tolerances=[lost])
"""


def programs(project):
    """For each baseline, in their order: its record, and the stored content that the record vouches for."""
    contents = [gzip.decompress(path.read_bytes()) for path in project.path.rglob("*.export.gz")]
    by_digest = {hashlib.sha256(content).hexdigest(): content for content in contents}
    for text in project.baselines().values():
        record = TypeAdapter(ProgramRecord).validate_json(json.dumps(json.loads(text)["program"]))
        yield StoredProgram(record=record, content=by_digest[record.digest])


def test_programs_that_differ_in_unused_arguments(project):
    """They have one structure, and yet each baseline's program must take its own case's arguments."""
    project.write("test_own.py", TEST + UNUSED)
    project.run("--perf-update").counts(passed=3)
    x = jnp.arange(4.0)
    for program, leaves in zip(programs(project), [(x + 9, x), (x, x + 9), (x,)], strict=True):
        assert np.asarray(prepare(program, leaves).call(leaves)[0]).tolist() == [0.0, 2.0, 4.0, 6.0]


def lend(own, content):
    """Write the baseline of a TPU that names a program of the same structure."""
    text = json.loads(own.read_text())
    text["hardware"] = {"platform": "tpu", "device_kind": "v5e", "devices": 1}
    text["program"]["digest"] = hashlib.sha256(content).hexdigest()
    theirs = own.parents[2] / f"tpu-v5e-1-jax-{line_here()}" / own.parent.name / own.name
    theirs.parent.mkdir(parents=True)
    theirs.write_text(json.dumps(text))


@pytest.mark.parametrize("other", ["unreadable", "tpu"])
def test_recording_again_mends_a_program_that_cannot_run_here(project, other):
    """A sound file of this structure, of a JAX to come or of another platform: ``--perf-update`` helps."""
    project.write("test_own.py", TEST)
    project.run("--perf-update").counts(passed=1)
    (path,) = project.path.rglob("*.export.gz")
    (recorded,) = programs(project)
    foreign = b"by a JAX to come"
    if other == "tpu":
        foreign = bytes(replace(load_program(recorded), platforms=("tpu",)).serialize())
    path.write_bytes(gzip.compress(foreign))
    (own,) = (project.path / "baselines").glob("cpu-*/*/*.json")
    if other == "tpu":
        lend(own, foreign)
    project.run("--perf-update").counts(passed=1)
    (mended, *_) = programs(project)
    assert load_program(mended).platforms == load_program(recorded).platforms
    kept = [gzip.decompress(path.read_bytes()) for path in project.path.rglob("*.export.gz")]
    assert foreign in kept or other == "unreadable"  # the other platform's baseline still needs it
