"""Whose code a line is: in an environment that is laid over another one, that one's packages are no project's."""

import sys
from importlib.metadata import version

import numpy as np
import pytest

from jaxgate.observe import source_lines
from jaxgate.observe.errors import raised_in
from jaxgate.observe.source_lines import package_of


@pytest.fixture
def laid_over(tmp_path, monkeypatch):
    """Packages of another environment on the path, as a requirement's environment has them."""
    folder = tmp_path / "other" / "lib" / "site-packages"
    monkeypatch.setattr(sys, "path", [*sys.path, str(folder)])
    source_lines._foreign.cache_clear()
    source_lines.is_project_file.cache_clear()
    yield folder
    source_lines._foreign.cache_clear()
    source_lines.is_project_file.cache_clear()


def test_packages_of_the_environment_below_are_not_the_projects(laid_over, tmp_path):
    """A warning of flax there must not be said to be at a line of the user's."""
    assert not source_lines.is_project_file(str(laid_over / "flax" / "core.py"))
    assert source_lines.is_project_file(str(tmp_path / "train.py"))


@pytest.mark.parametrize(
    ("file", "package"),
    [
        ("/env/lib/python3.12/site-packages/flax/nnx/graph.py", "flax"),
        ("/usr/lib/python3/dist-packages/six.py", "six"),
        ("/home/me/project/model.py", ""),
        ("/env/lib/python3.12/site-packages", ""),
        ("<string>", ""),
    ],
)
def test_a_file_belongs_to_an_installed_package_or_to_none(file, package):
    """By the folder under the last ``site-packages``."""
    assert package_of(file) == package


def test_an_exception_is_raised_in_the_package_of_its_innermost_frame():
    """NumPy's own code raises; ours does not count as a package."""
    with pytest.raises(ValueError, match="same number of dimensions") as raised:
        np.concatenate([np.zeros(1), np.zeros((1, 1))])
    assert raised_in(raised.value) == ""  # in C: the innermost frame is this line
    with pytest.raises(np.linalg.LinAlgError) as raised:
        np.linalg.inv(np.zeros((2, 3)))
    assert raised_in(raised.value) == f"numpy {version('numpy')}"
