"""One measurement out of several: what must be equal is, the worst counts, and the rank has a name."""

import json
from dataclasses import replace

import pytest
from pydantic import ValidationError
from support.factories import CASE, FINGERPRINTS, OTHER_CPU, PHASES, SAMPLES, measurement, record

from jaxgate.ext.ranks.merge import RankMeasurement, merge, name_ranks
from jaxgate.judge.verdict import judge
from jaxgate.keep.strict import adapter_of
from jaxgate.model.decision import Status
from jaxgate.model.measurement import Culprits, InvalidCaseError
from jaxgate.model.numbers import Phases, Samples

OWN, OTHER = "rank 0 (a, pid 10)", "rank 1 (b, pid 11)"


def other(**changes):
    """What rank 1 measured, as it came over the wire."""
    wire = adapter_of(RankMeasurement)
    return wire.validate_json(wire.dump_json(RankMeasurement.of(measurement(**changes), OTHER)))


def merged(own=None, **changes):
    """Rank 0's healthy measurement with rank 1's."""
    return merge(own or measurement(), [other(**changes)], OWN)


def test_what_is_equal_stays_as_it_is():
    """Two ranks that saw the same are one measurement, fit to be judged as in one process."""
    assert merged() == (measurement(), {})


@pytest.mark.parametrize(
    "fact", ["traces", "compiles", "sampled_traces", "lost_bytes", "temp_bytes", "xla_flops", "launches"]
)
def test_the_larger_number_counts_where_less_is_better(fact):
    """Whichever rank has it; a smaller one elsewhere makes nothing better."""
    value = getattr(measurement().facts, fact)
    found, worst = merged(facts={fact: value + 7})
    assert getattr(found.facts, fact) == value + 7
    assert worst == {fact: OTHER}
    found, worst = merged(measurement(facts={fact: value + 7}))
    assert getattr(found.facts, fact) == value + 7
    assert worst == {fact: OWN}


def test_the_smaller_number_counts_where_more_is_better():
    found, worst = merged(facts={"aliased_bytes": 5})
    assert (found.facts.aliased_bytes, worst) == (5, {"aliased_bytes": OTHER})


def test_a_fact_that_one_rank_does_not_know_is_not_known():
    found, _ = merged(facts={"temp_bytes": None}, unknown={"temp_bytes": "this backend does not report it"})
    assert found.facts.temp_bytes is None
    assert found.unknown == {"temp_bytes": "this backend does not report it"}
    verdict = judge(CASE, (), found, record(), strict=True)
    assert verdict.status is Status.INVALID


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"hardware": OTHER_CPU}, "the hardware"),
        ({"processes": 2}, "the number of processes"),
        ({"eager": True}, "the kind of subject"),
        ({"signature": ()}, "the arguments and results"),
        ({"fingerprints": replace(FINGERPRINTS, program="p1")}, "the program"),
        ({"fingerprints": replace(FINGERPRINTS, options="a=1")}, "the compiler options"),
        ({"fingerprints": replace(FINGERPRINTS, source="s1")}, "the source"),
        ({"environment": {"jax": "0.12.0", "jaxlib": "0.10.2", "python": "3.11"}}, "jax"),
    ],
    ids=lambda part: part.split()[-1] if isinstance(part, str) else None,
)
def test_ranks_that_ran_something_else_are_refused(changes, what):
    with pytest.raises(InvalidCaseError, match=f"expected {what} to be the same on all ranks") as error:
        merged(**changes)
    assert OWN in error.value.reason
    assert OTHER in error.value.reason


def test_inputs_may_differ_and_are_known_together():
    """Each rank has its own part of the data; the same parts again are the same inputs."""
    found, _ = merged(fingerprints=replace(FINGERPRINTS, inputs="i1"))
    assert found.fingerprints.inputs == "i0+i1"
    again, _ = merged(fingerprints=replace(FINGERPRINTS, inputs="i2"))
    assert again.fingerprints.inputs != found.fingerprints.inputs


def test_times_are_those_of_the_slowest_rank():
    """Samples of the rank whose call is longest, phases of the one that took longest to come to its first call."""
    slow = Samples(bursts_ns=(9_000, 9_000, 9_000), calls_per_burst=2)
    late = Phases(trace_ns=1, lower_ns=1, compile_ns=900_000_000, first_call_ns=1, host_ns=5, yardstick_ns=7)
    found, _ = merged(samples=slow, phases=late)
    assert found.samples == slow
    assert found.phases == late
    quick, _ = merged(samples=Samples(bursts_ns=(1,), calls_per_burst=2), phases=replace(PHASES, compile_ns=1))
    assert quick.samples == SAMPLES
    assert quick.phases == PHASES


def test_samples_of_one_rank_only_are_refused():
    with pytest.raises(InvalidCaseError, match="expected samples of all ranks or of none"):
        merged(samples=None)


def test_a_retrace_elsewhere_has_the_name_of_its_rank():
    """In the number and in its cause; rank 0's own lines stay as they are."""
    found, worst = merged(facts={"traces": 2}, culprits=Culprits(retraces=("step 2 retraced: x",)))
    assert found.culprits.retraces == (f"{OTHER}: step 2 retraced: x",)
    verdict = name_ranks(judge(CASE, (), found, record(), strict=True), worst)
    red = [finding for finding in verdict.findings if finding.status is Status.REGRESSED]
    assert red
    assert all(f"on {OTHER}" in finding.detail for finding in red)
    same = [finding for finding in verdict.findings if finding.status is Status.SAME]
    assert not any(OTHER in finding.detail for finding in same)


def test_facts_come_over_the_wire_whole():
    """Every field, and nothing else: another version of jaxgate is noticed."""
    wire = adapter_of(RankMeasurement)
    plain = wire.dump_python(RankMeasurement.of(measurement(), OTHER), mode="json")
    assert wire.validate_json(json.dumps(plain)).facts == measurement().facts
    less = {name: value for name, value in plain.items() if name != "samples"}
    for other in ({**plain, "facts": {**plain["facts"], "invented": 1}}, less):
        with pytest.raises(ValidationError):
            wire.validate_json(json.dumps(other))
