"""A range of releases: what pip says, what is installed for each, and which are between."""

import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from jaxgate.ext.bisect.model import Mark
from jaxgate.ext.bisect.ranges import ReleaseRange, between, releases_of, requirement
from jaxgate.model.outcome import UsageError
from jaxgate.processes.child import Finished

LISTED = "jax (0.12.0.1)\nAvailable versions: 0.12.0.1, 0.12.0, 0.11.0rc1, 0.10.2, 0.9.2, odd\n  INSTALLED: 0.10.2\n"
RELEASES = ["0.10.2", "0.11.0", "0.11.1", "0.11.2", "0.12.0"]


def pip(stdout="", stderr="", status=0):
    """A pip that says this."""
    return lambda command: Finished(status=status, stdout=stdout, stderr=stderr)


def test_releases_are_sorted_by_their_numbers_without_prereleases():
    assert releases_of("jax", pip(LISTED)) == ["0.9.2", "0.10.2", "0.12.0", "0.12.0.1"]


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (
            pip(stderr="/a/python: No module named pip", status=1),
            "expected pip in .*, found none; install it: .* -m ensurepip",
        ),
        (
            pip(stderr="ERROR: No matching distribution found for jay", status=1),
            "pip finds no release of jay: ERROR: No matching",
        ),
        (pip(), "pip finds no release of jay: exit status 0"),
    ],
)
def test_without_pip_or_an_index_there_is_one_line(said, message):
    with pytest.raises(UsageError, match=message):
        releases_of("jay", said)


def test_both_sides_must_be_releases_that_this_python_can_have():
    assert between(RELEASES, "0.11.0", "0.11.2") == ["0.11.0", "0.11.1", "0.11.2"]
    with pytest.raises(UsageError, match=r"found --good 0.11.3; it finds 0.12.0, 0.11.2"):
        between(RELEASES, "0.11.3", "0.12.0")
    with pytest.raises(UsageError, match=r"found --bad main"):
        between(RELEASES, "0.11.0", "main")
    with pytest.raises(UsageError, match="expected --good to be older than --bad"):
        between(RELEASES, "0.12.0", "0.11.0")
    with pytest.raises(UsageError, match="expected --good to be older than --bad"):
        between(RELEASES, "0.12.0", "0.12.0")


def test_another_jax_comes_with_the_plugins_that_are_here():
    """Else it would not find the devices, or find them by a plugin of this release."""
    assert requirement("jax", "0.11.0", ["jax", "jaxlib"]) == "jax==0.11.0"
    assert requirement("jax", "0.11.0", ["jax-cuda13-plugin", "jax-cuda13-pjrt"]) == "jax[cuda13]==0.11.0"
    assert requirement("flax", "0.12.0", ["libtpu"]) == "flax==0.12.0"


def test_the_release_that_is_installed_needs_no_environment(tmp_path):
    here = version("jax")
    within = ReleaseRange(tmp_path, "jax", ["0.0.1", here], tmp_path, environ={"A": "1"})
    with within.opened(here, copied=False) as side:
        assert (side.python, side.environment) == (Path(sys.executable), {"A": "1"})
    assert not [*tmp_path.iterdir()]


def test_what_is_left_of_a_range():
    """As of any range in which each revision follows the one before."""
    within = ReleaseRange(Path(), "jax", RELEASES, Path(), environ={})
    assert within.left([]).following == "0.11.1"
    left = within.left([("0.11.1", Mark.BAD), ("0.11.0", Mark.GOOD)])
    assert (left.first_bad, left.following) == (("0.11.1",), None)
