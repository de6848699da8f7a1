"""Files that a stranger may have made: read as far as they are regular files of a bounded size, else refused in one line."""

import gzip
import io
import json
import os
import re
import socket
import sys
import zipfile
import zlib
from contextlib import chdir

import pytest
from support.factories import LINE, PROGRAM, baseline

from jaxgate.ext.times.kept import TimesStore
from jaxgate.keep import cache as references
from jaxgate.keep.artifacts import HISTORY, Artifacts
from jaxgate.keep.baselines import BaselineStore, save_baseline
from jaxgate.keep.cache import DamagedFloorsError, FloorStore, ReferenceCache
from jaxgate.keep.duel_handoff import unpack
from jaxgate.keep.files import RefusedFileError, read_bytes, read_json, unpack_gzip
from jaxgate.keep.git import utc_today
from jaxgate.keep.inventory import read_inventory
from jaxgate.keep.log import append_log, last_line, read_log
from jaxgate.keep.programs import ProgramStore, collect, remove
from jaxgate.keep.strict import CorruptBaselineError
from jaxgate.keep.waivers import WaiverError, read_waivers

SECRET = "machine github.com password hunter2"
BASELINE = baseline()
HARDWARE, CASE = BASELINE.hardware, BASELINE.case


def pipe(path):
    """A FIFO: whoever opens it to read waits for a writer."""
    os.mkfifo(path)


def device(path):
    """A link to a file without end."""
    path.symlink_to("/dev/zero")


def process(path):
    """A link to what the kernel tells: a regular file without a size, full of secrets."""
    path.symlink_to("/proc/self/environ")


def local_socket(path):
    """Nothing that can be opened."""
    with chdir(path.parent), socket.socket(socket.AF_UNIX) as listener:  # the name of a socket is short
        listener.bind(path.name)


def folder(path):
    """A folder named like a file."""
    path.mkdir()


def huge(path):
    """Eleven million bytes, none of them on the disk."""
    with path.open("wb") as file:
        file.truncate(11_000_000)


def circle(path):
    """A link to itself."""
    path.symlink_to(path)


def nowhere(path):
    """A link to nothing, which is not as good as no file."""
    path.symlink_to("nowhere")


KINDS = (pipe, device, process, local_socket, folder, huge, circle, nowhere)
if sys.platform != "linux":
    KINDS = tuple(kind for kind in KINDS if kind is not process)
EVERY = pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)


@EVERY
def test_anything_but_a_regular_file_is_refused(tmp_path, make):
    make(tmp_path / "file")
    with pytest.raises(OSError) as caught:  # noqa: PT011 - its kind is the system's where it refuses first
        read_bytes(tmp_path / "file")
    assert "\n" not in str(caught.value)


@EVERY
def test_every_reader_says_so_in_its_own_way(tmp_path, make):
    """What each calls damaged: never a traceback, never a wait."""
    store, times, floors = (
        BaselineStore(tmp_path / "b", LINE),
        TimesStore(tmp_path / "b", LINE),
        FloorStore(tmp_path / "f"),
    )
    for path in (
        store.path(HARDWARE, CASE),
        times.path(HARDWARE, CASE),
        floors.path(HARDWARE),
        tmp_path / "w/waivers.toml",
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        make(path)
    with pytest.raises(CorruptBaselineError, match=r"rnn\.json: cannot be read: "):
        store.load(HARDWARE, CASE)
    with pytest.raises(CorruptBaselineError, match=r"rnn\.json: cannot be read: "):
        times.load(HARDWARE, CASE)
    if make is nowhere:
        assert floors.load(HARDWARE) is None, "they are measured again"
    else:
        with pytest.raises(DamagedFloorsError, match="cannot be read: "):
            floors.load(HARDWARE)
    with pytest.raises(WaiverError, match=r"waivers\.toml: cannot be read: "):
        read_waivers(tmp_path / "w")


@EVERY
def test_what_may_be_missing_is_as_good_as_missing(tmp_path, make):
    """Programs, remembered references, entries of the log."""
    if make is huge:
        pytest.skip("programs and arrays may be larger")
    programs, cache = ProgramStore(tmp_path), ReferenceCache(tmp_path / "r")
    append_log(tmp_path, created=[CASE], refreshed=[], folder=BASELINE.folder, why="first")
    for path in (programs.path("0" * 32), tmp_path / "r/key.npz", tmp_path / "log/9999-12-31.md"):
        path.parent.mkdir(parents=True, exist_ok=True)
        make(path)
    assert programs.load("0" * 32) is None
    assert cache.load("key") is None
    assert [entry.why for entry in read_log(tmp_path)] == ["first"]
    assert last_line(tmp_path).endswith("Why: first")


@EVERY
def test_what_is_stored_can_be_listed_all_the_same(tmp_path, make):
    save_baseline(tmp_path, baseline(case="scan/other", program=PROGRAM))
    for path in (
        BaselineStore(tmp_path, LINE).path(HARDWARE, CASE),
        ProgramStore(tmp_path).path("1" * 32),
        tmp_path / "log/1.md",
        tmp_path / "waivers.toml",
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        make(path)
    found = read_inventory(tmp_path, today=utc_today())
    assert [case.case for case in found.cases] == ["scan/other"]
    assert [path for path, _ in found.unreadable] == [f"{BASELINE.folder}/{CASE}.json"]
    assert found.waiver_problem.startswith("waivers.toml: cannot be read")


def test_a_link_to_a_file_is_read(tmp_path):
    save_baseline(tmp_path, BASELINE)
    path = BaselineStore(tmp_path, LINE).path(HARDWARE, CASE)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert BaselineStore(tmp_path, LINE).load(HARDWARE, CASE).baseline == BASELINE


# Unpacking


def test_a_program_of_nothing_but_zeros_is_not_unpacked(tmp_path):
    store = ProgramStore(tmp_path)
    store.folder.mkdir()
    packer = zlib.compressobj(9, wbits=31)
    content = b"".join(packer.compress(bytes(2**20)) for _ in range(65)) + packer.flush()
    store.path("0" * 32).write_bytes(content)
    assert len(content) < 100_000
    assert store.load("0" * 32) is None
    assert store.digest_of(store.path("0" * 32)) is None


def test_unpacking_is_exact_up_to_its_limit():
    """One byte more is refused, and what follows the first member; NumPy unpacks a compressed member to whatever it holds."""
    assert unpack_gzip(gzip.compress(bytes(100)), limit=100) == bytes(100)
    with pytest.raises(RefusedFileError, match="expected at most 99 bytes unpacked, found more"):
        unpack_gzip(gzip.compress(bytes(100)), limit=99)
    with pytest.raises(EOFError):
        unpack_gzip(gzip.compress(bytes(100)) * 2, limit=100)
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("about.npy", bytes(10_000_000))
    with pytest.raises(ValueError, match="found a compressed one"):
        unpack(bomb.getvalue())


# Nesting and numbers

DEEP = "[" * 200_000


def test_brackets_in_brackets_are_one_line(tmp_path):
    path = BaselineStore(tmp_path, LINE).path(HARDWARE, CASE)
    path.parent.mkdir(parents=True)
    for text in (DEEP, '{"a":' * 200_000, f'{{"schema": 5, "case": {DEEP}'):
        path.write_text(text)
        with pytest.raises(CorruptBaselineError, match=r"rnn\.json: is nested too deeply"):
            BaselineStore(tmp_path, LINE).load(HARDWARE, CASE)
    with pytest.raises(ValueError, match="nested"):
        read_json(path)
    for text, error in ((DEEP, "nested"), ("9" * 5000, "digits")):
        (tmp_path / "waivers.toml").write_text(f"a = {text}")
        with pytest.raises(WaiverError, match=rf"waivers\.toml: is not TOML .*{error}"):
            read_waivers(tmp_path)


@pytest.mark.parametrize("digits", ["9" * 20, "9" * 400, "9" * 5000, "-" + "9" * 400])
def test_a_number_that_floats_cannot_hold_is_refused(tmp_path, digits):
    """A tolerance of it would overflow in the middle of a run."""
    path = save_baseline(tmp_path, BASELINE)
    path.write_text(path.read_text().replace('"temp_bytes": 20000', f'"temp_bytes": {digits}'))
    with pytest.raises(CorruptBaselineError, match="a number is beyond 64 bits"):
        BaselineStore(tmp_path, LINE).load(HARDWARE, CASE)


# Names


@pytest.mark.parametrize("program", ["../../secret", "/**", "", "0" * 31, "0" * 33, "A" * 32, "0" * 32 + "\n"])
def test_a_program_is_named_by_hexadecimal_digits(tmp_path, program):
    """As is its content. Anything else could be another file's name, or a pattern of names."""
    path = save_baseline(tmp_path, BASELINE)
    content = json.loads(path.read_text())
    fingerprint = {"fingerprints": content["fingerprints"] | {"program": program}}
    digest = {"program": content["program"] | {"digest": program * 2}}
    for changes, key in ((fingerprint, "fingerprints.program`: expected 32"), (digest, "program.digest`: expected 64")):
        path.write_text(json.dumps(content | changes))
        with pytest.raises(CorruptBaselineError, match=re.escape(f"key `{key} hexadecimal digits, found ")):
            BaselineStore(tmp_path, LINE).load(HARDWARE, CASE)


# Links to somebody's secrets


def test_what_a_link_leads_to_is_not_quoted(tmp_path):
    """Neither by the error of a parser nor as a line of the log."""
    secret = tmp_path / ".netrc"
    secret.write_text(f"{SECRET}\n")
    root = tmp_path / "baselines"
    (root / "log").mkdir(parents=True)
    (root / "waivers.toml").symlink_to(secret)
    (root / "log" / "9999.md").symlink_to(secret)
    with pytest.raises(WaiverError, match="is not TOML") as caught:
        read_waivers(root)
    assert "hunter2" not in str(caught.value)
    assert (last_line(root), read_log(root)) == ("", ())


def test_a_folder_of_logs_behind_a_link_is_not_read(tmp_path):
    (tmp_path / "diary").mkdir()
    (tmp_path / "diary" / "today.md").write_text(SECRET)
    (tmp_path / "baselines").mkdir()
    (tmp_path / "baselines" / "log").symlink_to(tmp_path / "diary")
    assert last_line(tmp_path / "baselines") == ""


def test_json_of_somebody_else_is_not_quoted(tmp_path):
    """Neither a word in the place of the schema, nor the beginning of what is no JSON."""
    (tmp_path / "secret").write_text(json.dumps({"schema": SECRET}))
    path = BaselineStore(tmp_path, LINE).path(HARDWARE, CASE)
    path.parent.mkdir(parents=True)
    path.symlink_to(tmp_path / "secret")
    with pytest.raises(CorruptBaselineError, match="expected schema") as caught:
        BaselineStore(tmp_path, LINE).load(HARDWARE, CASE)
    assert "hunter2" not in str(caught.value)
    floors = FloorStore(tmp_path)
    floors.path(HARDWARE).write_text("hunter2")
    with pytest.raises(DamagedFloorsError) as damaged:
        floors.load(HARDWARE)
    assert "hunter2" not in str(damaged.value)


# Removing


def test_what_lies_behind_a_link_is_not_removed(tmp_path):
    """History, programs, remembered references: links lead to somebody else's files."""
    theirs = tmp_path / "theirs"
    (theirs / "logs").mkdir(parents=True)
    for name in ("logs/1.log", "curve.png", f"{'a' * 32}.export.gz"):
        (theirs / name).write_text("mine")
    before = sorted(theirs.rglob("*"))

    artifacts = Artifacts(tmp_path / "artifacts")
    artifacts.write("model/step", "report.md", "old")
    (tmp_path / "artifacts" / HISTORY).symlink_to(theirs)
    Artifacts(tmp_path / "artifacts").begin()
    assert sorted(theirs.rglob("*")) == before

    root = tmp_path / "baselines"
    save_baseline(root, baseline())
    (root / "programs").symlink_to(theirs)
    with pytest.raises(RefusedFileError, match=r"found it behind a link; remove the link"):
        collect(root, {"a" * 32})
    assert sorted(theirs.rglob("*")) == before


def test_a_link_itself_is_removed(tmp_path):
    (tmp_path / "theirs").write_text("mine")
    link = tmp_path / "baselines" / "programs" / "a.export.gz"
    link.parent.mkdir(parents=True)
    link.symlink_to(tmp_path / "theirs")
    remove(link, tmp_path / "baselines")
    assert (os.path.lexists(link), (tmp_path / "theirs").exists()) == (False, True)


def test_references_behind_a_link_are_not_forgotten(tmp_path, monkeypatch):
    """A folder of arrays of somebody's own, beyond the limit."""
    monkeypatch.setattr(references, "MAX_FILES", 1)
    (tmp_path / "data").mkdir()
    for number in range(3):
        (tmp_path / "data" / f"{number}.npz").write_bytes(b"mine")
    (tmp_path / "cache").symlink_to(tmp_path / "data")
    ReferenceCache(tmp_path / "cache").save("key", {}, [])
    assert len(list((tmp_path / "data").glob("?.npz"))) == 3
