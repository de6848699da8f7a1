"""Whether a result is worth a second opinion: where the compiler may have made something else than was accepted."""

from dataclasses import replace

import pytest
from support.factories import ENVIRONMENT, FINGERPRINTS, OTHER_CPU, baseline, measurement

from jaxgate.ext.opinion.case import is_compiled_anew
from jaxgate.judge.difference import Difference

BUILT = replace(FINGERPRINTS, executable="e0", devices="d0")


@pytest.mark.parametrize(
    ("now", "anew"),
    [
        ({}, False),
        ({"fingerprints": replace(FINGERPRINTS, inputs="i1")}, False),
        ({"fingerprints": replace(FINGERPRINTS, source="s1")}, False),
        ({"fingerprints": replace(FINGERPRINTS, program="1" * 32)}, True),
        ({"fingerprints": replace(FINGERPRINTS, options="xla_x=1")}, True),
        ({"environment": ENVIRONMENT | {"jaxlib": "0.10.3"}}, True),
        ({"hardware": OTHER_CPU}, True),
    ],
    ids=["nothing", "inputs", "source", "program", "options", "environment", "hardware"],
)
def test_a_result_is_new_where_the_compiler_was_given_something_else(now, anew):
    """Other values or other source that makes the same program do not make a new one."""
    assert is_compiled_anew(Difference(measurement(**now), baseline())) is anew


def test_the_same_executable_gives_the_same_result():
    """Whatever else of the environment changed; but some options leave no trace in its text."""
    before, other = baseline(fingerprints=BUILT), ENVIRONMENT | {"python": "3.12"}
    assert not is_compiled_anew(Difference(measurement(fingerprints=BUILT, environment=other), before))
    options = replace(BUILT, options="xla_backend_optimization_level=0")
    assert is_compiled_anew(Difference(measurement(fingerprints=options, environment=other), before))
    unknown = replace(BUILT, executable=None)
    assert is_compiled_anew(Difference(measurement(fingerprints=unknown, environment=other), before))


@pytest.mark.parametrize("changed", [{"devices": "d1", "executable": None}, {"executable": "e1"}])
def test_another_order_of_devices_or_another_executable_is_new(changed):
    assert is_compiled_anew(
        Difference(measurement(fingerprints=replace(BUILT, **changed)), baseline(fingerprints=BUILT))
    )
