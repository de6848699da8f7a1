"""A suite in parts: each test is judged in one of them, and together they say what one run would."""

import re

import pytest
from support.projects import NO_OTHERS

from jaxgate.ext.shards.command import merge
from jaxgate.keep.results import read_results

TESTS = """
import jax
import jax.numpy as jnp
import pytest


@pytest.mark.parametrize("width", [8, 16, 24, 32, 40, 48])
def test_step(gate, width):
    gate(jax.jit(lambda x: jnp.sin(x) @ x), jnp.ones((width, width)))


def test_other():
    assert True
"""
CONFTEST = """
def pytest_collection_modifyitems(items):
    items[:] = [item for item in items if "16" not in item.name]
"""
FACTS = ("--benchmark-disable", "--perf-profile=never", "--perf-strict")


@pytest.fixture
def suite(project):
    """Six gates that have baselines, and a test that does not gate."""
    project.write("test_model.py", TESTS).record()
    return project


@pytest.fixture
def parts(suite):
    """Runs some parts of three; gives what each came to."""

    def parts(*numbers, workers=0, of=3):
        distributed = ("-p", "xdist", "-n", str(workers)) if workers else ()
        return [
            suite.run(*FACTS, *distributed, f"--perf-shard={number}/{of}", f"--perf-artifacts=parts/{number}")
            for number in numbers
        ]

    return parts


@pytest.fixture
def merged(suite, monkeypatch):
    """Makes one run of the parts; gives its exit code and results."""
    monkeypatch.chdir(suite.path)

    def merged():
        code = merge([suite.path / "parts"], suite.path / "whole", environ={})
        return code, read_results(suite.path / "whole")

    return merged


def statuses(results):
    """Case to status."""
    return {case.case: case.status for case in results.cases}


def test_the_parts_say_what_one_run_says(suite, parts, merged):
    """Also of what is red, in a part whose other cases are not."""
    suite.edit("test_model.py", "jnp.sin(x) @ x)", "jnp.sin(x) @ (x if width != 24 else x @ x @ x))")
    suite.run(*FACTS, "--perf-artifacts=one")
    codes = [found.code for found in parts(1, 2, 3)]
    code, whole = merged()
    one = read_results(suite.path / "one")
    assert statuses(whole) == statuses(one)
    assert sorted(codes) == [0, 0, 1]
    assert (code, one.gate_exit) == (1, 1)
    assert {case.case: case.causes for case in whole.cases} == {case.case: case.causes for case in one.cases}


def test_each_part_is_green_alone_and_knows_of_the_others(suite, parts, merged):
    """Baselines of tests that are elsewhere are neither orphans nor unasked for; seven tests are run once each."""
    found = parts(1, 2, 3)
    assert [one.code for one in found] == [0, 0, 0]
    assert sum(int(re.search(r"(\d+) passed", one.text)[1]) for one in found) == 7
    runs = [read_results(suite.path / f"parts/{number}") for number in (1, 2, 3)]
    assert [(run.shard.number, run.shard.of, run.shard.of_gates) for run in runs] == [(n, 3, 6) for n in (1, 2, 3)]
    assert sum(run.shard.gates for run in runs) == 6
    assert merged()[0] == 0


def test_what_a_project_leaves_out_is_red_in_its_part_too(suite, parts, merged):
    """As in a whole run: a gate that a conftest drops is asked for by its baseline, in each part, as none has it."""
    suite.write("conftest.py", CONFTEST)
    found = parts(1, 2, 3)
    assert [one.code for one in found] == [2, 2, 2]
    code, whole = merged()
    assert code == 2
    assert whole.not_judged == ("test_model.py::test_step[16]",)
    assert "their machines cut" not in (suite.path / "whole/summary.md").read_text()


def test_parts_that_were_cut_by_other_baselines_are_red(suite, parts, merged):
    """A machine that lacks some would cut otherwise: a test that no part has is not missed in silence."""
    parts(1)
    for file in sorted((suite.path / "baselines").glob("*/model/*32*.json")):
        file.unlink()
    parts(2, 3)
    code, whole = merged()
    assert code != 0
    assert not whole.green


def test_workers_cut_as_one_process_does(suite, parts, merged):
    """Each worker of pytest-xdist collects for itself."""
    parts(1)
    alone = statuses(read_results(suite.path / "parts/1"))
    parts(1, workers=2)
    assert statuses(read_results(suite.path / "parts/1")) == alone
    parts(2, 3)
    assert merged()[0] == 0


@pytest.mark.parametrize("given", ["0/3", "4/3", "2", "a/b", "-1/2"])
def test_what_is_no_part_is_refused(project, given):
    expected = f"--perf-shard: expected which part of how many, such as 2/8, found '{given}'"
    with pytest.raises(pytest.UsageError, match=re.escape(expected)):
        project.pytester.parseconfigure(*NO_OTHERS, f"--perf-shard={given}")


def test_a_part_of_what_is_for_the_whole_suite_is_refused(suite):
    found = suite.run("--perf-update=trim", "--perf-shard=1/2")
    assert found.code == 4
    assert "--perf-update=trim is for the whole suite; drop --perf-shard" in found.text
