"""In which size a case is run, and which one says nothing of hardware that is not there."""

import pytest
from support.fakes import import_everything

from jaxgate.ext.targets.model import Target
from jaxgate.model.workload import Family

import_everything()

from jaxgate.observe.errors import NotOnTargetError  # noqa: E402 - imports JAX
from jaxgate.plugin.gate import fit  # noqa: E402 - likewise

V5E = Target.parse("tpu:v5e:2x4")


@pytest.fixture
def case():
    """A case that is compiled for a target at full size only."""
    family = Family("model")
    family.workload("step", sizes={"small": 1, "full": 2}, target_sizes=["full"])(lambda size: size)
    (found,) = family
    return found


def test_a_size_that_says_nothing_of_a_target_is_left_out(case):
    """With the option that chooses the other one; here it is run as ever."""
    with pytest.raises(NotOnTargetError, match=r"in size small .*; --perf-size=full does"):
        fit(case, None, V5E)
    assert fit(case, None).name == "model/step"
    assert fit(case, "full", V5E).name == "model/step.full"


def test_without_a_rule_every_size_is_compiled(case):
    family = Family("model")
    family.workload("step", sizes={"small": 1, "full": 2})(lambda size: size)
    (plain,) = family
    assert fit(plain, None, V5E).build() == 1
