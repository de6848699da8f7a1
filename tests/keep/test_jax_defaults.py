"""JAX's defaults are asked for once for an installation."""

import pytest

from jaxgate.keep import cache
from jaxgate.keep.cache import remembered_defaults
from jaxgate.model.machine import JaxDefaults

FOUND = JaxDefaults(jax="0.10.2", file="jax/__init__.py", config={"jax_enable_x64": "False"}, compile_options="0123")


@pytest.fixture
def remembered(tmp_path, monkeypatch):
    """The defaults of an installation, and how often somebody was asked so far; the user's folder is the test's."""
    monkeypatch.setattr(cache, "lock_folder", lambda: tmp_path / "user")
    asked = []
    return lambda name, found=FOUND: (remembered_defaults(name, lambda: asked.append(name) or found), len(asked))


def test_the_second_run_asks_nobody(remembered):
    """No answer is not remembered."""
    assert remembered("one", None) == (None, 1)
    assert [remembered("one"), remembered("one"), remembered("another")] == [(FOUND, 2), (FOUND, 2), (FOUND, 3)]


@pytest.mark.parametrize("content", ["", "{", "[]", '{"jax": "0.10.2"}', '{"surplus": 1}'])
def test_what_cannot_be_read_is_asked_again(remembered, tmp_path, content):
    remembered("one")
    (path,) = (tmp_path / "user").glob("defaults-*.json")
    path.write_text(content)
    assert remembered("one") == (FOUND, 2)


def test_a_folder_that_cannot_be_written_to_costs_a_process_each_time(remembered, tmp_path):
    (tmp_path / "user").write_text("a file")
    assert [remembered("one"), remembered("one")] == [(FOUND, 1), (FOUND, 2)]
