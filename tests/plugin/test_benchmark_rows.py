"""pytest-benchmark's private session is what our rows take it for; one test for each name that is used of it."""

import json
import pickle
from types import SimpleNamespace

import pytest

from jaxgate.plugin import benchmark_rows

PLAIN = """
import pytest

@pytest.mark.parametrize("size", [pytest.param(object(), id="thing")])
def test_sum(benchmark, size):
    benchmark.pedantic(sum, ([1],), rounds=3)
"""


class Watch:
    """A plugin that acts on a run's configuration before pytest-benchmark ends its session."""

    def __init__(self, act):
        self._act = act

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session):
        self._act(session.config)
        return (yield)


class Switch:
    """A plugin that switches every row of a worker on, as ours does for gates."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_call(self, item):
        benchmark_rows.switch_on(item.funcargs["benchmark"], item.config)


@pytest.fixture
def run(project):
    """Run a project with one plain benchmark, acting on its configuration when it ends."""
    project.write("test_plain.py", PLAIN)

    def run(act, *arguments, plugins=()):
        result = project.pytester.runpytest_inprocess(
            "-p", "no:cacheprovider", "--benchmark-json=rows.json", *arguments, plugins=[Watch(act), *plugins]
        )
        file = project.path / "rows.json"
        return result, json.loads(file.read_text())["benchmarks"] if file.exists() and file.stat().st_size else []

    return run


@pytest.mark.jax_text
def test_the_session_has_the_names_that_are_set(run):
    """Setting a name that pytest-benchmark does not read any more would do nothing, silently."""
    found = {}
    run(lambda config: found.update(vars(config._benchmarksession)))
    assert {"json", "save", "autosave", "xdist_benchmark_found", "benchmarks"} <= set(found)


@pytest.mark.jax_text
def test_a_row_travels_and_takes_the_place_of_its_own(run):
    """Pickled, without what binds it to its process, and added again: one row, with the times of the one that was."""
    kept = []

    def travel(config):
        rows = pickle.loads(pickle.dumps(benchmark_rows.rows_since(config, 0)))
        kept.extend(config._benchmarksession.benchmarks)
        benchmark_rows.add_rows(config, rows)
        assert config._benchmarksession.benchmarks == rows

    _, (row,) = run(travel)
    assert row["fullname"] == "test_plain.py::test_sum[thing]"
    assert row["stats"]["data"] == list(kept[0].stats.data)
    assert row["params"]["size"].startswith("UNSERIALIZABLE[")


@pytest.mark.jax_text
def test_a_worker_saves_nothing(run):
    """Rows are left to the controller: no file is written."""
    result, rows = run(benchmark_rows.leave_to_controller)
    result.assert_outcomes(passed=1)
    assert rows == []


@pytest.mark.jax_text
@pytest.mark.parametrize("plain", [False, True])
def test_a_warning_only_where_a_test_has_a_plain_benchmark(run, plain, recwarn):
    """Of benchmarks that are switched off under xdist."""

    def end(config):
        config._benchmarksession.xdist_benchmark_found = True
        benchmark_rows.warn_only_of(plain, config)

    run(end)
    warned = [str(warning.message) for warning in recwarn]
    assert any(text.startswith("Benchmarks are automatically disabled") for text in warned) is plain


@pytest.mark.jax_text
@pytest.mark.parametrize(
    ("options", "plugins", "rows"),
    [((), (), 0), ((), (Switch(),), 1), (("--benchmark-disable",), (Switch(),), 0)],
    ids=["left alone", "switched on", "off by the user"],
)
def test_what_xdist_switches_off_is_switched_on(run, monkeypatch, options, plugins, rows):
    """In a worker every row stays empty unless its fixture is switched on; what the user switched off stays off."""
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw1")
    kept = []
    run(lambda config: kept.extend(config._benchmarksession.benchmarks), *options, plugins=plugins)
    assert len(kept) == rows


def test_a_release_without_that_warning_of_its_own_is_left_alone():
    """Before 5.3 it warns when a worker starts, and has nothing to be told."""
    session = SimpleNamespace()
    benchmark_rows.warn_only_of(True, SimpleNamespace(_benchmarksession=session))
    assert session.xdist_benchmark_found is False
