"""Programs in a store beside git: whole or not at all, never changed, and checked when they are read."""

import gzip
import hashlib

import pytest

from jaxgate.ext.store.shelf import Shelf
from jaxgate.keep.programs import ProgramStore, move_to
from jaxgate.model.outcome import UsageError
from jaxgate.model.program import UnreachableError

CONTENT, OTHER = b"a program", b"the same program with other names"


def digest(content):
    """SHA-256."""
    return hashlib.sha256(content).hexdigest()


@pytest.fixture(params=["folder", "memory"])
def shelf(request, tmp_path):
    """An empty store, in a folder or in memory."""
    return Shelf(str(tmp_path / "there") if request.param == "folder" else f"memory://{tmp_path}")


@pytest.fixture
def programs(tmp_path, shelf):
    """The programs of a project that has it."""
    return ProgramStore(tmp_path / "baselines", shelf)


def serves(stored):
    """Whether a stored program may stand for another one: here each may."""
    return bool(stored)


def test_a_program_is_kept_there_and_not_in_git(programs, shelf):
    """It is found by its fingerprint and its digest, and by nothing else."""
    assert programs.save("abc", CONTENT) == digest(CONTENT)
    assert programs.files() == []
    assert shelf.names() == {("abc", digest(CONTENT))}
    assert programs.load("abc", digest(CONTENT)) == CONTENT
    assert programs.load("abc", digest(OTHER)) is None
    assert programs.load("xyz", digest(CONTENT)) is None


def test_one_that_serves_as_well_stands_for_the_next(programs, shelf):
    """So recording again what did not change touches nothing; one that does not serve is kept beside it."""
    programs.save("abc", CONTENT)
    assert programs.save("abc", OTHER, serves) == digest(CONTENT)
    assert len(shelf.names()) == 1
    assert programs.save("abc", OTHER, lambda _: False) == digest(OTHER)
    assert shelf.digests("abc") == sorted([digest(CONTENT), digest(OTHER)])


def test_what_git_has_stays_in_use(tmp_path, programs, shelf):
    """A project may move its programs, or not: those that are there are read first."""
    ProgramStore(tmp_path / "baselines").save("abc", CONTENT)
    assert programs.save("abc", OTHER, serves) == digest(CONTENT)
    assert programs.load("abc", digest(CONTENT)) == CONTENT
    assert shelf.names() == set()


DAMAGED = {
    "empty": b"",
    "no gzip": b"no gzip",
    "another program": gzip.compress(OTHER),
    "cut": gzip.compress(CONTENT)[:-4],
}


@pytest.mark.parametrize("found", DAMAGED.values(), ids=DAMAGED)
def test_what_is_damaged_is_missing(programs, shelf, found):
    """Whatever its name says; it is written again when it is recorded."""
    shelf.put("abc", digest(CONTENT), found)
    assert programs.load("abc", digest(CONTENT)) is None
    assert "missing or damaged, here and in" in programs.why_missing("abc")
    assert programs.save("abc", CONTENT, serves) == digest(CONTENT)
    assert programs.load("abc", digest(CONTENT)) == CONTENT


def test_a_copy_is_kept_of_what_was_read(tmp_path):
    """The store is asked once; a copy that was damaged is no program either."""
    ProgramStore(tmp_path, Shelf(str(tmp_path / "there"))).save("abc", CONTENT)
    programs = ProgramStore(tmp_path, Shelf(str(tmp_path / "there"), tmp_path / "cache"))
    assert programs.load("abc", digest(CONTENT)) == CONTENT
    (there,) = (tmp_path / "there").rglob("*.gz")
    there.unlink()
    assert programs.load("abc", digest(CONTENT)) == CONTENT
    (copy,) = (tmp_path / "cache").iterdir()
    copy.write_bytes(b"")
    assert programs.load("abc", digest(CONTENT)) is None


class Silent:
    """A store that does not answer."""

    url = "s3://gone"

    def _fail(self, *_):
        raise UnreachableError(f"{self.url}: no route to host")

    get = put = digests = names = _fail


def test_a_store_that_does_not_answer_is_told(tmp_path):
    """Reading goes on without the program, and says why; writing does not."""
    programs = ProgramStore(tmp_path, Silent())
    assert programs.load("abc", digest(CONTENT)) is None
    assert "abc could not be fetched: s3://gone: no route to host; run again" in programs.why_missing("abc")
    with pytest.raises(UnreachableError):
        programs.save("abc", CONTENT)


def test_a_store_that_is_silent_is_not_one_that_has_nothing(tmp_path, shelf):
    """Moving stops, and does not call a program lost; what is missing later is not blamed on a silence that is over."""
    silent = Silent()
    silent.names = set
    with pytest.raises(UnreachableError, match="no route to host"):
        move_to(silent, tmp_path, {("abc", digest(CONTENT))})
    programs = ProgramStore(tmp_path, silent)
    assert programs.load("abc", digest(CONTENT)) is None
    programs.shelf = shelf
    assert programs.load("abc", digest(CONTENT)) is None
    assert "missing or damaged, here and in" in programs.why_missing("abc")


def test_a_store_that_stays_silent_is_asked_no_more(tmp_path):
    """A run of many cases would wait for each; one answer, and it is asked again."""
    (tmp_path / "file").write_text("no folder")
    shelf = Shelf(str(tmp_path / "file/there"))
    said = []
    for _ in range(4):
        with pytest.raises(UnreachableError) as found:
            shelf.put("abc", "0", b"")
        said.append(str(found.value))
    assert "Not a directory" in said[0]
    assert ["asked no more" in text for text in said] == [False, False, False, True]
    again = Shelf(str(tmp_path / "file/there"))
    for _ in range(3):
        with pytest.raises(UnreachableError):
            again.put("abc", "0", b"")
        assert again.names() == set()  # a folder that is not there is an answer


def test_an_address_that_nothing_knows_is_refused():
    with pytest.raises(UsageError, match="nosuch"):
        Shelf("nosuch://bucket/folder")


def test_programs_are_moved_once_they_can_be_read_back(tmp_path, shelf):
    """What no baseline names stays; what is neither here nor there is told; a second time there is nothing to move."""
    root = tmp_path / "baselines"
    here = ProgramStore(root)
    for fingerprint in ("abc", "def", "unnamed"):
        here.save(fingerprint, CONTENT)
    named = {("abc", digest(CONTENT)), ("def", digest(CONTENT)), ("gone", digest(OTHER))}
    moved, missing = move_to(shelf, root, named)
    assert sorted(path.name for path, _ in moved) == ["abc.export.gz", "def.export.gz"]
    assert missing == [("gone", digest(OTHER))]
    assert [path.name for path in here.files()] == ["unnamed.export.gz"]
    assert ProgramStore(root, shelf).load("abc", digest(CONTENT)) == CONTENT
    assert move_to(shelf, root, named) == ([], missing)


def test_a_store_that_loses_what_it_was_given_moves_nothing(tmp_path, shelf):
    root = tmp_path / "baselines"
    ProgramStore(root).save("abc", CONTENT)
    shelf.put = lambda *_: None
    with pytest.raises(UnreachableError, match="does not give back abc"):
        move_to(shelf, root, {("abc", digest(CONTENT))})
    assert len(ProgramStore(root).files()) == 1
