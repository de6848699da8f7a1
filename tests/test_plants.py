"""The mistakes planted into the catalogue, run once in processes of their own; a test for each."""

from __future__ import annotations

import pytest

from tests.plants.bench import edited
from tests.plants.model import Plant
from tests.plants.runner import families, run

_ALL = [(family, plant) for family, plants in families().items() for plant in plants]
_PLANTS = pytest.mark.parametrize(
    ("family", "name"),
    [pytest.param(family, plant.name, id=f"{family}-{plant.name.replace(' ', '-')}") for family, plant in _ALL],
)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """What became of every plant."""
    return {(outcome.family, outcome.name): outcome for outcome in run(cache=tmp_path_factory.mktemp("references"))}


@_PLANTS
def test_a_mistake_planted_into_the_catalogue_turns_its_case_red(outcomes, family, name):
    """The case of the edited workload fails, by a quantity that the mistake moves."""
    outcome = outcomes[family, name]
    assert outcome.caught, f"{outcome.why}; {outcome.line}"


@_PLANTS
def test_its_first_culprit_is_the_mistake(outcomes, family, name):
    """The first culprit line names what was planted: the argument, the operation, the collective, the line."""
    outcome = outcomes[family, name]
    assert outcome.blamed, f"{outcome.why}; {outcome.line}"


def test_no_two_plants_of_a_family_share_a_name():
    """Each has a test of its own."""
    assert len({(family, plant.name) for family, plant in _ALL}) == len(_ALL)


def test_a_plant_that_does_not_fit_its_file_is_refused():
    """An edit whose text is not there would plant nothing."""
    plant = Plant(
        name="x", file="workloads/parts.py", case="y", edits=(("nowhere", "z"),), status="INVALID", culprit="x"
    )
    with pytest.raises(ValueError, match=r"expected 'nowhere' once in workloads/parts\.py, found 0"):
        edited(plant)


@pytest.mark.parametrize("wrong", [{"edits": ()}, {"culprit": ""}, {"moves": frozenset()}])
def test_a_plant_that_nothing_could_miss_is_refused(wrong):
    """Without an edit, a culprit, or a fact that moves, an outcome would always be right."""
    plant = {"name": "n", "file": "f", "case": "c", "edits": (("a", "b"),), "moves": frozenset({"x"}), "culprit": "y"}
    with pytest.raises(ValueError, match="expected"):
        Plant(**{**plant, **wrong})
