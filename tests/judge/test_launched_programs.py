"""The programs of plain Python, paired with those of the baseline and judged one by one."""

import pytest
from support.factories import baseline, launched_program, measurement

from jaxgate.judge.difference import Difference
from jaxgate.judge.facts import compare_facts
from jaxgate.judge.launched_programs import compare_programs, handed_on_bytes
from jaxgate.model.decision import Status
from jaxgate.model.launched import changed_programs

STEP = launched_program()
OTHER = launched_program(fingerprint="1" * 32)
ADD = launched_program(name="add", fingerprint="2" * 32)


@pytest.mark.parametrize(
    ("now", "before", "pairs"),
    [
        ((STEP, ADD), (ADD, STEP), []),  # in another order
        ((STEP,), (launched_program(count=4),), []),  # launched more often: the same program
        ((OTHER, ADD), (STEP, ADD), [(OTHER, STEP)]),
        ((STEP, ADD), (STEP,), [(ADD, None)]),
        ((STEP,), (STEP, ADD), [(None, ADD)]),
        ((OTHER, STEP), (STEP,), [(OTHER, None)]),  # one more in front moves no neighbour
        ((ADD,), (STEP,), [(ADD, STEP)]),  # a function that was renamed, too
        (
            (launched_program(name="add", fingerprint="2" * 32, arguments=()),),
            (STEP,),
            [(launched_program(name="add", fingerprint="2" * 32, arguments=()), None), (None, STEP)],
        ),
        ((launched_program(options="x=1"),), (STEP,), [(launched_program(options="x=1"), STEP)]),
        ((launched_program(devices="1 0"),), (STEP,), [(launched_program(devices="1 0"), STEP)]),
        ((launched_program(arguments=("int32[]",)),), (STEP,), [(launched_program(arguments=("int32[]",)), STEP)]),
        ((), (), []),
    ],
)
def test_changed_programs_are_paired_by_name(now, before, pairs):
    """What both sides have is left out, whatever its place."""
    assert changed_programs(now, before) == pairs


def found(now, before, red=()):
    """The findings of two programs of one name."""
    return list(
        compare_programs(measurement(launched_programs=(now,)), baseline(launched_programs=(before,)), frozenset(red))
    )


UP, DOWN, WHOLE = (
    launched_program(name=name, fingerprint=str(place) * 32, facts={"temp_bytes": temp, "output_bytes": 5_000})
    for place, (name, temp) in enumerate((("up", 0), ("down", 0), ("whole", 10_000)))
)
HEAVY = launched_program(fingerprint="9" * 32, facts={"temp_bytes": 9_000})


@pytest.mark.parametrize(
    ("now", "before", "handed", "red"),
    [
        # what one handed to the other is a temporary now; one alone is no counterpart
        ((WHOLE,), (UP, DOWN), 10_000, []),
        ((WHOLE,), (UP,), 0, ["temp_bytes of whole"]),  # a function that was renamed, and needs more
        ((UP, DOWN), (WHOLE,), 0, []),
        ((UP,), (UP, DOWN), 5_000, []),
        ((HEAVY,), (STEP, DOWN), 5_000, ["temp_bytes of step"]),  # what is gone makes no room for another that stayed
    ],
)
def test_programs_that_were_joined_are_held_against_all_of_them(now, before, handed, red):
    ours, theirs = measurement(launched_programs=now), baseline(launched_programs=before)
    assert handed_on_bytes(ours, theirs) == handed
    assert [one.name for one in compare_programs(ours, theirs, ())] == red


@pytest.mark.parametrize(("temp_bytes", "status"), [(14_096, Status.SAME), (14_097, Status.REGRESSED)])
def test_what_programs_handed_on_may_be_a_temporary(temp_bytes, status):
    """Besides the 4,096 bytes that any temporaries may be more."""
    now = measurement(facts={"temp_bytes": temp_bytes}, launched_programs=(WHOLE,))
    before = baseline(facts={"temp_bytes": 0}, launched_programs=(UP, DOWN))
    (found,) = [one for one in compare_facts(Difference(now, before)) if one.name == "temp_bytes"]
    assert found.status is status


def test_one_program_of_many_that_needs_more_is_red():
    """By the policy of the fact, under the name of the program."""
    heavy = launched_program(fingerprint="1" * 32, facts={"xla_flops": 3_000, "temp_bytes": 4_096})
    (finding,) = found(heavy, STEP)
    assert (finding.name, finding.status, finding.now, finding.against) == (
        "xla_flops of step",
        Status.REGRESSED,
        3_000,
        1_000,
    )
    assert finding.allowed == 1_074


@pytest.mark.parametrize(
    ("now", "red"),
    [
        ({"fingerprint": "1" * 32, "facts": {"xla_flops": 1_050}}, ()),  # within what may move
        ({"fingerprint": "1" * 32, "facts": {"xla_flops": 9_000}}, ("xla_flops",)),  # the sum says so already
        ({"fingerprint": "1" * 32, "facts": {}}, ()),  # the sum is unknown, which is not green
        ({"facts": {"xla_flops": 9_000}}, ()),  # the same program, compiled by another compiler: the sums say so
        ({"name": "add", "fingerprint": "1" * 32, "arguments": (), "facts": {"xla_flops": 9_000}}, ()),  # new
    ],
)
def test_what_is_not_said_of_a_single_program(now, red):
    assert found(launched_program(**now), STEP, red) == []
