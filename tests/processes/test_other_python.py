"""A requirement that has no release for this Python: one line says which one would do."""

import sys

import pytest

from jaxgate.ext.upgrade.venv import why_other_python

COMPLAINT = (
    "ERROR: Ignored the following versions that require a different python version: 0.11.0 Requires-Python >=3.12; "
    "0.12.0.1 Requires-Python >=3.12\n"
    "ERROR: Could not find a version that satisfies the requirement jax==0.12.0.1 (from versions: 0.10.1, 0.10.2)\n"
    "ERROR: No matching distribution found for jax==0.12.0.1\n"
)
HERE = sys.version.split()[0]


def test_the_first_python_that_would_do_is_named_with_the_command():
    """Of the interpreters on the path the oldest that both the requirement and jaxgate run on."""
    found = why_other_python(
        ["jax==0.12.0.1"], COMPLAINT, lambda name: name if name in ("python3.11", "python3.13") else None
    )
    assert found == (
        f"jax==0.12.0.1 is for Python >=3.12, and this is {HERE}; let another make its environment: "
        "jaxgate upgrade 'jax==0.12.0.1' --python python3.13"
    )


def test_without_such_a_python_it_says_which_to_install():
    """None is on the path: the names are what to look for."""
    found = why_other_python(["jax==0.12.0.1"], COMPLAINT, lambda _: None)
    assert found.endswith("found no python3.12 or python3.13 here: install one, and name it with --python")


@pytest.mark.parametrize("requirement", ["jax==0.99", "numpy==9", "jax @ file:///x.whl"])
def test_another_complaint_is_not_about_python(requirement):
    """A version that does not exist, and a package that pip did not complain of."""
    assert why_other_python([requirement], COMPLAINT) == ""


def test_a_python_that_jaxgate_does_not_run_on_is_not_proposed():
    """A release for Pythons beyond those of jaxgate has none to propose."""
    assert why_other_python(["jax==0.12.0.1"], COMPLAINT.replace(">=3.12", ">=3.20")).endswith(
        "jaxgate runs on none of these"
    )
