"""``--perf-distributed``: what it takes, what it refuses, and what is not done over several processes."""

import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
from support.factories import CASE, FINGERPRINTS, measurement, record

from jaxgate.engine.duels import reference_duel
from jaxgate.engine.duels.baseline_duel import why_hopeless
from jaxgate.judge.difference import Difference
from jaxgate.judge.verdict import judge
from jaxgate.model.decision import Status
from jaxgate.plugin.options.table import DISTRIBUTED


def config(**options):
    """A configuration with these options and no others."""
    return SimpleNamespace(getoption=lambda name, default=None: options.get(name, default), option=SimpleNamespace())


HERE = "expected HOST:PORT,COUNT,RANK (10.0.0.1:1234,2,0 on the first of two processes) or auto, then ,SECONDS if wanted, found "


@pytest.mark.parametrize(
    "where",
    [
        *("here", "h:1,2,2", "h:1,1,0", "h,2,0", "h:70000,2,0", "h:1,two,0", "h:1,2,0,9,9", "auto,2,0"),
        *(f"h:1,2,0,{limit}" for limit in ("soon", "0", "inf")),
    ],
)
def test_what_makes_no_sense_is_refused(where):
    """One error for each, before anything is joined."""
    with pytest.raises(pytest.UsageError, match=re.escape(HERE + repr(where))):
        DISTRIBUTED.read(config(**{"--perf-distributed": where}), {})


def test_variables_serve_a_launcher_that_sets_them_for_each_process():
    environ = {"JAXGATE_DISTRIBUTED": "h:1,4,3,7"}
    found = DISTRIBUTED.read(config(), environ)
    assert (found.coordinator, found.count, found.rank, found.timeout_s) == ("h:1", 4, 3, 7.0)
    assert DISTRIBUTED.read(config(**{"--perf-distributed": "[::1]:5,2,1"}), environ).coordinator == "[::1]:5"


def test_auto_leaves_the_cluster_to_jax():
    found = DISTRIBUTED.read(config(**{"--perf-distributed": "auto"}), {})
    assert (found.coordinator, found.count, found.rank, found.timeout_s) == (None, None, None, 300.0)
    assert DISTRIBUTED.read(config(**{"--perf-distributed": "auto,9"}), {}).timeout_s == 9.0
    assert DISTRIBUTED.read(config(), {}) is None


def test_what_is_not_duelled_over_several_processes_is_undecided_and_says_why():
    """Plain Python around programs, and a reference; a jitted program is duelled, and an unchanged one SAME by identity."""
    changed = measurement(fingerprints=replace(FINGERPRINTS, program="p1"), processes=2)
    assert not why_hopeless(Difference(changed, record().baseline))
    why_not = why_hopeless(Difference(replace(changed, eager=True), record().baseline))
    assert why_not == "several processes: timed beside the baseline's program alone"
    verdict = judge(CASE, (), changed, record(), strict=True, no_duel=why_not)
    assert verdict.time.status is Status.UNDECIDED
    assert why_not in verdict.time.reason
    assert reference_duel._hopeless(changed) == why_not
    assert judge(CASE, (), measurement(processes=2), record(), strict=True).time.status is Status.SAME
