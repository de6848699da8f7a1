"""Programs that no baseline names: what counts as named, and a store that does not grow."""

import gzip
import hashlib
from dataclasses import replace

import pytest
from support.factories import FINGERPRINTS, OTHER_CPU, PROGRAM, baseline

from jaxgate.keep.baselines import read_all, save_baseline
from jaxgate.keep.programs import ProgramStore, collect, find_unreferenced, named_by
from jaxgate.keep.strict import CorruptBaselineError

A, B = "a0" * 16, "b1" * 16


def accept(root, content, *, fingerprint, case="scan/rnn", **changes):
    """Write a program and the baseline that names it, in this order."""
    digest = ProgramStore(root).save(fingerprint, content, lambda stored: stored == content)
    prints = replace(FINGERPRINTS, program=fingerprint)
    save_baseline(root, baseline(case=case, fingerprints=prints, program=replace(PROGRAM, digest=digest), **changes))


def names(root):
    """The files of the store."""
    return sorted(path.name.removesuffix(".export.gz") for path in (root / "programs").iterdir())


def find(root):
    """What no baseline names."""
    baselines, unreadable = read_all(root)
    assert not unreadable
    return [path.name.removesuffix(".export.gz") for path in find_unreferenced(root, named_by(baselines.values()))]


@pytest.mark.parametrize("collecting", [True, False])
def test_a_case_that_is_refreshed_again_and_again(tmp_path, collecting):
    """With collection the store holds one program, however often it changes; without it grows by one each time."""
    for number in range(10):
        accept(tmp_path, b"program %d" % number, fingerprint=f"{number:032x}")
        if collecting and number:
            ((path, nbytes),) = collect(tmp_path, {f"{number - 1:032x}"})
            assert (path.exists(), nbytes > 20) == (False, True)
    assert len(names(tmp_path)) == (1 if collecting else 10)


def test_a_program_that_another_case_or_hardware_names_stays(tmp_path):
    accept(tmp_path, b"old", fingerprint=A)
    accept(tmp_path, b"old", fingerprint=A, case="scan/other")
    accept(tmp_path, b"old", fingerprint=A, hardware=OTHER_CPU)
    for changes in ({}, {"case": "scan/other"}):
        accept(tmp_path, b"new", fingerprint=B, **changes)
        assert collect(tmp_path, {A}) == []
    accept(tmp_path, b"new", fingerprint=B, hardware=OTHER_CPU)
    assert [path.name for path, _ in collect(tmp_path, {A})] == [f"{A}.export.gz"]
    assert names(tmp_path) == [B]


def test_only_the_structures_asked_about_are_removed(tmp_path):
    """A refresh cleans up after itself; what else lies there is for a trim."""
    accept(tmp_path, b"kept", fingerprint=A)
    ProgramStore(tmp_path).save("c2", b"stray")
    ProgramStore(tmp_path).save("d3", b"replaced")
    assert find(tmp_path) == ["c2", "d3"]
    collect(tmp_path, {"d3"})
    assert names(tmp_path) == [A, "c2"]


def test_two_programs_of_one_structure_are_told_apart(tmp_path):
    """By their content: the one that is named stays, whichever has the plain name."""
    accept(tmp_path, b"first", fingerprint=A)
    accept(tmp_path, b"second", fingerprint=A)
    second = f"{A}-{hashlib.sha256(b'second').hexdigest()[:8]}"
    assert names(tmp_path) == [A, second]
    assert find(tmp_path) == [A]
    collect(tmp_path, {A})
    assert names(tmp_path) == [second]


def test_a_damaged_program_that_is_named_stays(tmp_path):
    """Git has it whole; one that nobody names goes, damaged or not, as one of the structure of a baseline without a program."""
    accept(tmp_path, b"named", fingerprint=A)
    for name in (A, "e4"):
        (tmp_path / f"programs/{name}.export.gz").write_bytes(gzip.compress(b"x")[:5])
    record = replace(PROGRAM, digest=None, why_not="private")
    save_baseline(tmp_path, baseline(case="a/b", fingerprints=replace(FINGERPRINTS, program=B), program=record))
    ProgramStore(tmp_path).save(B, b"left by somebody else")
    assert find(tmp_path) == [B, "e4"]


def test_nothing_is_collected_while_a_baseline_cannot_be_read(tmp_path):
    accept(tmp_path, b"one", fingerprint=A)
    ProgramStore(tmp_path).save(B, b"replaced")
    broken = tmp_path / "cpu-x-1-jax-0.10/scan/broken.json"
    broken.parent.mkdir(parents=True)
    broken.write_text("{")
    with pytest.raises(CorruptBaselineError, match="broken"):
        collect(tmp_path, {B})
    assert names(tmp_path) == [A, B]
