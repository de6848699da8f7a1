"""A duel on disk: job and outcome come back as they were written."""

import json

import jax
import ml_dtypes
import numpy as np
import pytest

from jaxgate.keep.duel_handoff import Job, read_duels, read_job, write_duels, write_job
from jaxgate.model.duel import Duel
from jaxgate.model.program import Match, ProgramRecord, StoredProgram
from jaxgate.observe.duel.sides import restore, to_files

NOW = StoredProgram(
    record=ProgramRecord(digest="ab" * 32, donated=(0, 2), feeds=(1, None, 0), why_not=""), content=b"\x00now\xff"
)
BEFORE = StoredProgram(record=ProgramRecord(digest=None, donated=(), feeds=None, why_not="“why”"), content=b"")
LEAVES = [
    np.arange(6, dtype=np.float32).reshape(2, 3),
    np.array(3, np.int32),
    np.array([True, False]),
    np.array([1 + 2j], np.complex64),
    np.zeros((0, 3), np.float16),
    np.arange(6).astype(ml_dtypes.bfloat16).reshape(3, 2),
    np.array(1.5, ml_dtypes.bfloat16),
    np.zeros((2, 0), ml_dtypes.bfloat16),
    np.arange(4).astype(ml_dtypes.float8_e4m3fn),
    np.arange(-3, 4).astype(ml_dtypes.int4),
    np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    np.arange(12, dtype=np.int8)[::2],
]
ABOUT = {"kinds": ["array"] * len(LEAVES), "platform": "cpu", "seed": 2**32 - 1, "settings": {"jax_enable_x64": False}}
MATCHES = [Match(now=NOW, baseline=BEFORE, leaves=LEAVES, calls=(4, 5)), Match(now=BEFORE, baseline=NOW, leaves=[])]
JOB = Job(matches=MATCHES, about=ABOUT)
DUEL = Duel(now_ns=((3, 1, 2), (4, 5, 6)), baseline_ns=((7, 8, 9), (1, 1, 1)), calls_per_burst=12, seed=7, traces=1)


def test_a_job_comes_back(tmp_path):
    """Programs with their records, arrays with types, shapes and bits, and what else was said."""
    write_job(tmp_path, JOB)
    back = read_job(tmp_path)
    assert back.about == ABOUT
    first, second = back.matches
    assert (first.now, first.baseline, first.calls) == (NOW, BEFORE, (4, 5))
    assert second == MATCHES[1]
    for ours, theirs in zip(first.leaves, LEAVES, strict=True):
        assert (ours.dtype, ours.shape, ours.tobytes()) == (theirs.dtype, theirs.shape, theirs.tobytes())


def test_arguments_come_back_to_the_device(tmp_path):
    """Weak scalars, random keys and small types, through the files."""
    leaves = [2.5, jax.random.key(3), jax.numpy.ones(3, jax.numpy.bfloat16), jax.numpy.asarray(4)]
    arrays, kinds = to_files(leaves)
    write_job(tmp_path, Job(matches=[Match(now=NOW, baseline=NOW, leaves=arrays)], about={"kinds": [kinds]}))
    job = read_job(tmp_path)
    back = restore(job.matches[0].leaves, job.about["kinds"][0])
    assert [str(leaf.dtype) for leaf in back] == ["float32", "key<fry>", "bfloat16", "int32"]
    assert [getattr(leaf, "weak_type", None) for leaf in back] == [True, None, False, True]
    assert jax.random.key_data(back[1]).tolist() == [0, 3]


@pytest.mark.parametrize("name", ["now-0.export", "baseline-1.export", "job.npz"])
def test_a_job_without_a_part_is_an_error(tmp_path, name):
    write_job(tmp_path, JOB)
    (tmp_path / name).unlink()
    with pytest.raises(FileNotFoundError, match=name):
        read_job(tmp_path)


def test_duels_come_back(tmp_path):
    """Raw times by name; nothing but the outcome is left in the folder."""
    duels = {"case": DUEL, "control": Duel(now_ns=(), baseline_ns=(), calls_per_burst=1, seed=0)}
    write_duels(tmp_path, duels)
    assert read_duels(tmp_path) == duels
    assert [path.name for path in tmp_path.iterdir()] == ["duels.json"]
    assert json.loads((tmp_path / "duels.json").read_text())["case"]["now_ns"] == [[3, 1, 2], [4, 5, 6]]


BROKEN = {
    "cut": '{"case": {"now_ns": [[1',
    "missing-key": '{"case": {"now_ns": [[1]], "baseline_ns": [[1]], "seed": 0}}',
    "unknown-key": '{"case": {"now_ns": [], "baseline_ns": [], "calls_per_burst": 1, "seed": 0, "loops": 3}}',
    "fraction": '{"case": {"now_ns": [[1.5]], "baseline_ns": [[1]], "calls_per_burst": 1, "seed": 0}}',
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_broken_duels_are_an_error(tmp_path, text):
    """As are none: a process that did not come to an end leaves nothing to read."""
    with pytest.raises(FileNotFoundError, match=r"duels\.json"):
        read_duels(tmp_path)
    (tmp_path / "duels.json").write_text(text)
    with pytest.raises(ValueError, match="validation error"):
        read_duels(tmp_path)
