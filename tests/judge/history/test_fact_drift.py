"""Facts over time: first value, today's, moves in between, and what differs of the environment."""

from math import inf

import pytest
from support.history_points import commit, day, named, point

from jaxgate.ext.history.chain import fact_drift, fact_steps
from jaxgate.judge.policy import POLICIES

BASELINE = named("p0", 0)
POLICY = {policy.name: policy for policy in POLICIES}
HERE = {"jax": "0.12.1", "jaxlib": "0.12.1", "python": "3.11"}


def points(name, *values, **changes):
    """Runs with these values of a fact; one without is ``None``."""
    return tuple(
        point(number, "p0", BASELINE, figures={} if value is None else {name: value}, environment=HERE, **changes)
        for number, value in enumerate(values)
    )


def test_first_now_and_steps():
    """1.05 MB to 1.31 MB in three moves, since the first day; a run without the value is passed over."""
    found = fact_drift(
        points("temp_bytes", 1_050_000, 1_100_000, None, 1_100_000, 1_200_000, 1_310_000), POLICY["temp_bytes"]
    )
    assert found is not None
    assert (found.first, found.now, found.steps, found.since) == (1_050_000, 1_310_000, 3, day(0))
    assert found.environment == ()
    failed, last = points("temp_bytes", 9_000, fails=True), points("temp_bytes", 2_000, fails=True)
    found = fact_drift((*failed, *points("temp_bytes", 1_000), *last), POLICY["temp_bytes"])
    assert found is not None
    assert (found.first, found.now) == (1_000, 2_000), "what nobody accepted is no measure, and today's counts"


def test_what_is_not_known_has_no_drift():
    for values in ([1, None], [None, 1], [None, None], [1], []):
        assert fact_drift(points("temp_bytes", *values), POLICY["temp_bytes"]) is None


def test_another_environment_is_named():
    """A patch release of jax in between is shown; a fact that other versions count otherwise begins anew with them."""
    before = point(0, "p0", BASELINE, figures={"temp_bytes": 1, "jax_calls": 1}, environment=HERE | {"jax": "0.12.0"})
    same = point(1, "p0", BASELINE, figures={"temp_bytes": 2, "jax_calls": 5}, environment=HERE)
    today = point(2, "p0", BASELINE, figures={"temp_bytes": 2, "jax_calls": 6}, environment=HERE)
    found = fact_drift((before, same, today), POLICY["temp_bytes"])
    assert found is not None
    assert found.environment == ("jax 0.12.0 → 0.12.1",)
    calls = fact_drift((before, same, today), POLICY["jax_calls"])
    assert calls is not None
    assert (calls.first, calls.environment) == (5, ())


def test_each_move_is_a_step_with_its_commits():
    """Exact values need no search: from 0 too, and for how many runs each stayed; imported and foreign runs are none."""
    odd = points("collectives", 5, elsewhere="--perf-against jax==0.10.2")
    imported = points("collectives", 6, source="pytest-benchmark")
    known = points("collectives", 0, 0, 2, 2, 2, 3)
    first, second = fact_steps((*known[:1], *odd, *imported, *known[1:]), "collectives")
    assert (first.before, first.after, first.ratio, first.run, first.runs) == (0, 2, inf, "2", 3)
    assert (first.commit, first.last_before) == (commit(2), commit(1))
    assert (second.before, second.after, second.ratio, second.runs) == (2, 3, pytest.approx(1.5), 1)
