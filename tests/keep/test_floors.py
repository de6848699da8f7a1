"""Noise floors on disk: what was kept comes back, cases of one environment stay together, damage is told."""

import pytest
from support.factories import ENVIRONMENT, HARDWARE, OTHER_CPU

from jaxgate.keep.cache import DamagedFloorsError, FloorStore
from jaxgate.model.calibration import NoiseFloor


def floor(share):
    """What a calibration found."""
    return NoiseFloor(floor=share, duels=20, date="2026-11-20")


@pytest.fixture
def store(tmp_path):
    """A store that has nothing yet."""
    return FloorStore(tmp_path / "floors")


def test_what_was_kept_comes_back(store):
    """Hardware, environment and every digit of the floor; other hardware has none."""
    path = store.save(HARDWARE, ENVIRONMENT, {"scan/rnn": floor(1 / 3)})
    assert path == store.folder / "cpu-amd-epyc-1.json"
    found = store.load(HARDWARE)
    assert (found.hardware, found.environment, found.cases) == (HARDWARE, ENVIRONMENT, {"scan/rnn": floor(1 / 3)})
    assert store.load(OTHER_CPU) is None


def test_cases_of_one_environment_stay_together(store):
    """A calibration of some cases keeps the others, and replaces its own."""
    store.save(HARDWARE, ENVIRONMENT, {"a/one": floor(0.01), "a/two": floor(0.02)})
    store.save(HARDWARE, ENVIRONMENT, {"a/two": floor(0.05)})
    assert store.load(HARDWARE).cases == {"a/one": floor(0.01), "a/two": floor(0.05)}


def test_another_environment_replaces_all(store):
    """Floors of two environments in one file would be applied as one."""
    store.save(HARDWARE, ENVIRONMENT, {"a/one": floor(0.01)})
    other = {**ENVIRONMENT, "jax": "0.12.0"}
    store.save(HARDWARE, other, {"a/two": floor(0.02)})
    assert (store.load(HARDWARE).environment, store.load(HARDWARE).cases) == (other, {"a/two": floor(0.02)})


def test_without_a_folder_nothing_is_kept():
    store = FloorStore(None)
    assert store.save(HARDWARE, ENVIRONMENT, {"a/one": floor(0.01)}) is None
    assert store.load(HARDWARE) is None


DAMAGES = {
    "truncated": ('"cases"', "", "Invalid JSON"),
    "another schema": ('"schema": 1', '"schema": 2', "expected schema 1, found 2"),
    "a missing key": ('"floor": 0.05,', "", "key `cases.scan/rnn.floor`"),
    "an unknown key": ('"cases"', '"surplus": 1, "cases"', "key `surplus`"),
    "text for a number": ('"floor": 0.05', '"floor": "0.05"', "key `cases.scan/rnn.floor`"),
    "a negative floor": ('"floor": 0.05', '"floor": -0.1', "a noise floor needs a share of 0 or more"),
    "not a number": ('"floor": 0.05', '"floor": NaN', ""),
}


@pytest.mark.parametrize("what", DAMAGES)
def test_a_damaged_file_is_told_in_one_line(store, what):
    """Never read in part, never a crash of another kind; the next calibration replaces it."""
    before, after, words = DAMAGES[what]
    path = store.save(HARDWARE, ENVIRONMENT, {"scan/rnn": floor(0.05)})
    assert before in path.read_text()
    path.write_text(path.read_text().replace(before, after))
    with pytest.raises(DamagedFloorsError) as caught:
        store.load(HARDWARE)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    store.save(HARDWARE, ENVIRONMENT, {"scan/rnn": floor(0.01)})
    assert store.load(HARDWARE).cases == {"scan/rnn": floor(0.01)}
    store.path(OTHER_CPU).mkdir(parents=True)  # what cannot be read is not "none"
    with pytest.raises(DamagedFloorsError, match="cannot be read"):
        store.load(OTHER_CPU)
