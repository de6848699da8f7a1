"""JAX's defaults are asked for once for an installation."""

import pytest

from jaxgate.keep import cache
from jaxgate.keep.cache import remembered_defaults
from jaxgate.model.machine import JaxDefaults

FOUND = JaxDefaults(jax="0.10.2", file="jax/__init__.py", config={"jax_enable_x64": "False"}, compile_options="0123")


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """The installations that were asked about; the user's folder is the test's."""
    monkeypatch.setattr(cache, "lock_folder", lambda: tmp_path / "user")
    return []


def ask(asked, found=FOUND):
    """A process that answers, and is counted."""

    def answer():
        asked.append(found)
        return found

    return answer


def test_the_second_run_asks_nobody(asked):
    assert [remembered_defaults("one", ask(asked)) for _ in range(2)] == [FOUND, FOUND]
    assert len(asked) == 1
    assert remembered_defaults("another", ask(asked)) == FOUND
    assert len(asked) == 2


@pytest.mark.parametrize("content", ["", "{", "[]", '{"jax": "0.10.2"}', '{"surplus": 1}'])
def test_what_cannot_be_read_is_asked_again(asked, tmp_path, content):
    remembered_defaults("one", ask(asked))
    (path,) = (tmp_path / "user").glob("defaults-*.json")
    path.write_text(content)
    assert remembered_defaults("one", ask(asked)) == FOUND
    assert len(asked) == 2


def test_no_answer_is_not_remembered(asked):
    assert remembered_defaults("one", ask(asked, None)) is None
    assert remembered_defaults("one", ask(asked)) == FOUND


def test_a_folder_that_cannot_be_written_to_costs_a_process_each_time(asked, tmp_path):
    (tmp_path / "user").write_text("a file")
    assert [remembered_defaults("one", ask(asked)) for _ in range(2)] == [FOUND, FOUND]
    assert len(asked) == 2
