"""Searches in the user's cache: one folder for each range, a file for each question, gone after a month."""

import os
from pathlib import Path

import pytest

from jaxgate.ext.bisect.kept import copy_files, forget_old, question_file, read_bisection, search_folder
from jaxgate.ext.bisect.model import Bisection, Mark, Probe, Quantity
from jaxgate.keep.machine import cache_folder
from jaxgate.keep.strict import CorruptBaselineError, write_strict

FOUND = Bisection(
    copied=True,
    quantity=Quantity(name="temp_bytes", good=1.0, bad=2.0, good_tolerance=0.1, bad_tolerance=0.2),
    others=("xla_flops",),
    text="red",
    probes=(Probe(revision="a", mark=Mark.SKIPPED, figure=None, why="not measured"),),
)


def test_the_cache_is_the_users(tmp_path):
    assert cache_folder({"XDG_CACHE_HOME": str(tmp_path)}) == tmp_path / "jaxgate"
    assert cache_folder({"XDG_CACHE_HOME": "here"}) == cache_folder({}) == Path.home() / ".cache/jaxgate"


def test_what_was_noted_is_read_back(tmp_path):
    """Nothing where nothing was; each question has its own."""
    path = question_file(tmp_path, "", "good")
    assert read_bisection(path) is None
    write_strict(path, FOUND)
    assert read_bisection(path) == FOUND
    assert read_bisection(question_file(tmp_path, "temp_bytes", "good")) is None
    assert read_bisection(question_file(tmp_path, "", "bad")) is None


@pytest.mark.parametrize("text", ["{", "[]", '{"schema": 2}', '{"schema": 1, "probes": 1}', '{"schema": 1, "more": 1}'])
def test_what_cannot_be_trusted_is_an_error(tmp_path, text):
    path = tmp_path / "question.json"
    path.write_text(text)
    with pytest.raises(CorruptBaselineError):
        read_bisection(path)


def test_another_test_is_another_search(tmp_path):
    """As are other words; how they are divided counts."""
    file = tmp_path / "test_model.py"
    file.write_text("one")
    first = search_folder(tmp_path, ["a", "b"], [file])
    assert first == search_folder(tmp_path, ["a", "b"], [file])
    assert first != search_folder(tmp_path, ["ab"], [file])
    file.write_text("two")
    assert first != search_folder(tmp_path, ["a", "b"], [file])


def test_old_searches_are_forgotten(tmp_path):
    """A month after the last step of any of their questions."""
    for name, day in (("old", 0), ("young", 20)):
        path = question_file(tmp_path / "bisect" / name, "", "good")
        write_strict(path, FOUND)
        for one in (path, tmp_path / "bisect" / name):
            os.utime(one, (day * 86_400, day * 86_400))
    forget_old(tmp_path, 31 * 86_400)
    assert [path.name for path in (tmp_path / "bisect").iterdir()] == ["young"]


def test_files_are_copied_beside_a_link_not_through_it(tmp_path):
    """A link in an old commit could lead anywhere: a file's is replaced, a folder's refused."""
    here, there, elsewhere = (tmp_path / name for name in ("here", "there", "elsewhere"))
    for folder in (here / "a", there, elsewhere):
        folder.mkdir(parents=True)
    (here / "test.py").write_text("today")
    (here / "a/test.py").write_text("today")
    (elsewhere / "test.py").write_text("mine")
    (there / "test.py").symlink_to(elsewhere / "test.py")
    copy_files([Path("test.py")], here, there)
    assert (there / "test.py").read_text() == "today"
    (there / "a").symlink_to(elsewhere)
    with pytest.raises(OSError, match="a is a link there"):
        copy_files([Path("a/test.py")], here, there)
    assert (elsewhere / "test.py").read_text() == "mine"
