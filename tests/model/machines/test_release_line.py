"""Release lines of jax: which versions share one, how folders are named for them, which one is nearest."""

import pytest

from jaxgate.model.machine import distance, folder_name, release_line, split_folder_name


@pytest.mark.parametrize(
    ("version", "line"),
    [
        ("0.10.2", "0.10"),
        ("0.12.0.1", "0.12"),
        ("0.12.0.dev20261120+abc", "0.12"),
        ("0.12rc1", "0.12"),
        ("1.0", "1.0"),
        ("00.012.1", "0.12"),
    ],
)
def test_the_first_two_numbers_of_a_version(version, line):
    """Patches, nightly builds and candidates write the programs of their line."""
    assert release_line(version) == line


@pytest.mark.parametrize("version", ["", "1", "unknown", "v0.12", "../0.12"])
def test_what_is_no_version_is_refused(version):
    """No line is made up: a baseline would lie where nobody looks."""
    with pytest.raises(ValueError, match=r"expected a version of jax such as 0\.12\.0"):
        release_line(version)


def test_a_folder_names_hardware_and_line():
    name = folder_name("cpu-amd-epyc-1", "0.12")
    assert name == "cpu-amd-epyc-1-jax-0.12"
    assert split_folder_name(name) == ("cpu-amd-epyc-1", "0.12")


@pytest.mark.parametrize("name", ["cpu-amd-epyc-1", "log", "programs", "cpu-1-jax-", "cpu-1-jax-0.12.3", "cpu-1-jax-x"])
def test_other_folders_name_no_line(name):
    """Those of an earlier jaxgate, and what is no folder of baselines."""
    assert split_folder_name(name) is None


def test_the_nearest_line_comes_first():
    """Its own, then older ones from the newest, then newer ones from the oldest; numbers, not letters, are compared."""
    lines = ["1.0", "0.9", "0.12", "0.10", "0.13", "0.11", "0.100"]
    assert sorted(lines, key=lambda line: distance(line, "0.12")) == [
        "0.12", "0.11", "0.10", "0.9", "0.13", "0.100",
        "1.0",
    ]  # fmt: skip
