"""Steps and creep: what is found when, what never is, and that the errors of links count."""

from itertools import combinations, pairwise
from math import log
from random import Random
from statistics import fmean

import pytest
from support.history_points import commit, day, named, point

from ci.creep import time_shifts
from jaxgate.ext.history.chain import ChainPoint
from jaxgate.ext.history.changes import find_shifts, noise_of, phase_shifts, split
from jaxgate.model.waiver import TIME

BASELINE = named("p0", 0)
NOISE = 0.006


def series(*values, links=None):
    """Runs with these logarithms; ``links`` gives the errors of the links before a run."""
    links = links or {}
    return [
        ChainPoint(
            point=point(number, f"p{number}", BASELINE, 1.0), value=value, error=NOISE, links=links.get(number, ())
        )
        for number, value in enumerate(values)
    ]


def noise(count, seed=1):
    """Runs of identical work."""
    random = Random(seed)
    return [random.gauss(0, NOISE) for _ in range(count)]


def test_a_step_is_found_at_its_third_run_with_its_place():
    """Not at the second; then with the run, both commits, the ratio and how long it is there."""
    values = [*noise(40), *(log(1.05) + one for one in noise(5, seed=2))]
    assert find_shifts(series(*values[:42]), TIME).steps == ()
    (step,) = find_shifts(series(*values[:43]), TIME).steps
    assert (step.run, step.moment[:10], step.commit, step.last_before) == ("40", day(40), commit(40), commit(39))
    assert (step.runs, step.before, step.after) == (3, None, None)
    assert step.ratio == pytest.approx(1.05, abs=0.01)
    down = find_shifts(series(*noise(40), *(log(0.9) + one for one in noise(10, seed=2))), TIME)
    assert [step.ratio == pytest.approx(0.9, abs=0.01) for step in down.steps] == [True]
    assert down.creep is None
    less = [ChainPoint(point=point(number, "p", BASELINE), value=0.005 * (number >= 20)) for number in range(40)]
    assert find_shifts(less, TIME).steps == (), "less than a per cent is not said"


def test_one_odd_run_is_no_step():
    """30 % once, and twice in a row, also at the end: neighbours say otherwise."""
    values = noise(60)
    for odd in ([30], [30, 31], [59], [58, 59]):
        changed = [value + log(1.3) * (place in odd) for place, value in enumerate(values)]
        assert find_shifts(series(*changed), TIME).steps == ()


def test_creep_is_found_and_no_step_is_said():
    """1 % a week over 10 weeks: its size with its interval, from when, and its commits."""
    values = [*noise(40), *(log(1.01) / 7 * (place + 1) + one for place, one in enumerate(noise(70, seed=2)))]
    found = find_shifts(series(*values), TIME)
    assert found.creep is not None
    assert found.creep.ratio == pytest.approx(1.01**10, abs=0.02)
    assert found.creep.low < found.creep.ratio < found.creep.high
    assert found.steps == ()
    assert found.creep.commits[-1] == commit(109)
    assert day(30) < found.creep.since[:10] < day(60)
    faster = [one - log(1.01) / 7 * place for place, one in enumerate(noise(80))]
    assert find_shifts(series(*faster), TIME).creep is None


def test_the_error_of_a_link_is_no_step():
    """A level that moves by 2 % where a link of 1 % error lies is chance; without the link it is a step."""
    values = [*noise(30), *(0.02 + one for one in noise(30, seed=2))]
    assert len(find_shifts(series(*values), TIME).steps) == 1
    assert find_shifts(series(*values, links={30: (0.01,)}), TIME).steps == ()


def test_a_step_that_a_refresh_accepted_is_found():
    """Exact levels, unchanged programs on both sides, and between them one accepted duel of 8 %."""
    points = [point(number, "p0", BASELINE) for number in range(20)]
    points.append(point(20, "p1", BASELINE, 1.08, recorded="refreshed"))
    points += [point(number, "p1", named("p1", 20)) for number in range(21, 26)]
    (step,) = time_shifts(points).steps
    assert (step.run, step.ratio) == ("20", pytest.approx(1.08))


def test_a_case_noisier_than_usual_needs_more():
    """What is a step at usual noise is none where runs scatter five times as far."""
    random = Random(3)
    wild = [random.gauss(0, 5 * NOISE) for _ in range(60)]
    values = [value + 0.03 * (place >= 40) for place, value in enumerate(wild)]
    assert noise_of(series(*values)) > 4 * NOISE
    assert find_shifts(series(*values), TIME).steps == ()


def test_too_short_a_history_says_nothing():
    """Nineteen runs, whatever they show; the twentieth is enough."""
    values = [0.0] * 10 + [1.0] * 10
    assert find_shifts(series(*values[:19]), TIME).steps == ()
    assert len(find_shifts(series(*values), TIME).steps) == 1
    assert time_shifts([]).steps == ()


def test_a_phase_steps_by_its_values():
    """compile_ns doubles: before and after are values; runs that lack it are left out."""
    random = Random(5)
    points = [
        point(number, "p", BASELINE, figures={"compile_ns": 1e9 * (1 + (number >= 20)) * (1 + random.gauss(0, 0.03))})
        for number in range(30)
    ]
    points.insert(3, point(99, "p", BASELINE))
    (step,) = phase_shifts(points, "compile_ns").steps
    assert (step.quantity, step.run) == ("compile_ns", "20")
    assert (step.before, step.after) == (pytest.approx(1e9, rel=0.03), pytest.approx(2e9, rel=0.03))


def test_the_search_finds_the_ends_of_levels():
    assert split([0.0] * 10 + [8.0] * 10, 25, 3) == [10, 20]
    assert split([0.0] * 20, 25, 3) == [20]
    assert split([0.0, 9.0, 0.0, 9.0], 25, 3) == [4]


@pytest.mark.parametrize("seed", range(8))
def test_no_other_levels_fit_better(seed):
    """Of all ways to divide nine values into levels of two and more."""
    random = Random(seed)
    values = [random.gauss(3 * (place // 3 % 2), 1) for place in range(9)]

    def cost(ends):
        levels = [values[start:end] for start, end in pairwise([0, *ends])]
        return sum(sum((one - fmean(level)) ** 2 for one in level) + 2 for level in levels)

    inner = (chosen for count in range(4) for chosen in combinations(range(2, 8), count))
    ways = [[*chosen, 9] for chosen in inner if all(b - a > 1 for a, b in pairwise([0, *chosen, 9]))]
    assert split(values, 2, 2) == min(ways, key=cost)
