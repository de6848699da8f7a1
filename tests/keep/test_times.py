"""Files of stored times: what is written comes back, what cannot be trusted is an error that names file and key."""

import json

import pytest
from support.factories import CASE, HARDWARE, LINE, OTHER_CPU, session

from jaxgate.ext.times.kept import TimesStore
from jaxgate.keep.baselines import BaselineStore, baseline_files
from jaxgate.keep.strict import CorruptBaselineError


@pytest.fixture
def store(tmp_path):
    """A store with two sessions of one case."""
    found = TimesStore(tmp_path, LINE)
    found.add(HARDWARE, CASE, session(1000.5))
    found.add(HARDWARE, CASE, session(1100.25))
    return found


def edit(store, change):
    """Change the content of the file."""
    path = store.path(HARDWARE, CASE)
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def test_sessions_are_added_in_order(store, tmp_path):
    first, second = store.load(HARDWARE, CASE).sessions
    assert first == session(1000.5)
    assert second.run_ns == 1100.25
    assert store.path(HARDWARE, CASE) == tmp_path / "cpu-amd-epyc-1-jax-0.10/times/scan/rnn.json"


def test_no_file_is_no_session(store):
    """A case that was never recorded here has no times, which is no error: none are borrowed."""
    assert store.load(HARDWARE, "scan/other").sessions == store.load(OTHER_CPU, CASE).sessions == ()


def test_times_are_no_baselines(store, tmp_path):
    """The store of baselines does not take the file for one, nor the folder for a family."""
    baselines = BaselineStore(tmp_path, LINE)
    assert baselines.load(HARDWARE, CASE) is None
    assert baselines.elsewhere(OTHER_CPU, CASE) == ()
    assert baseline_files(tmp_path) == []  # where orphans are looked for


def last(content):
    """The last session of the file."""
    return content["sessions"][-1]


BROKEN = {
    "an unknown schema": (lambda c: c.update(schema=3), "expected schema 2, found 3"),
    "an unknown key": (lambda c: c.update(speed=1), "unknown key `speed`"),
    "a missing key of a session": (lambda c: last(c).pop("environment"), "key `sessions.1.environment` is missing"),
    "a text for a number": (lambda c: last(c).update(run_ns="1000"), "key `sessions.1.run_ns`"),
    "no time": (lambda c: last(c).update(run_ns=0.0), "run_ns must be a positive number"),
    "an unknown contract": (lambda c: last(c).update(contract="hopeful"), "key `sessions.1.contract`"),
    "other hardware": (lambda c: c["hardware"].update(devices=8), "expected hardware"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_file_that_cannot_be_trusted_is_an_error(store, what):
    """It is named with its key, never read in part; and a recording leaves it as it is."""
    change, reason = BROKEN[what]
    edit(store, change)
    before = store.path(HARDWARE, CASE).read_bytes()
    with pytest.raises(CorruptBaselineError) as error:
        store.load(HARDWARE, CASE)
    assert reason in str(error.value)
    assert str(store.path(HARDWARE, CASE)) in str(error.value)
    with pytest.raises(CorruptBaselineError):
        store.add(HARDWARE, CASE, session())
    assert store.path(HARDWARE, CASE).read_bytes() == before


def test_a_file_that_was_moved_is_that_of_its_new_name(store):
    """As a baseline's; one that was copied is refused."""
    path, other = store.path(HARDWARE, CASE), store.path(HARDWARE, "scan/other")
    content = path.read_bytes()
    path.rename(other)
    found = store.load(HARDWARE, "scan/other")
    assert (found.case, len(found.sessions)) == ("scan/other", len(json.loads(content)["sessions"]))
    path.write_bytes(content)
    with pytest.raises(CorruptBaselineError, match="found `scan/rnn`, which has a file of its own"):
        store.load(HARDWARE, "scan/other")
