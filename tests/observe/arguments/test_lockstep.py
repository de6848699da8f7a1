"""What several processes decide together: bursts, repeats and memories; and the parts of arrays that are spread."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.measured import measured, sample_of

from jaxgate.keep.cache import ReferenceCache
from jaxgate.model.measurement import InvalidCaseError
from jaxgate.observe.arguments.feeder import Shards, inputs_fingerprint, on_host, pieces, side_by_side
from jaxgate.observe.arguments.lockstep import Lockstep, processes_of
from jaxgate.observe.execute.correctness import Closeness, check_agreement, refuse_nan
from jaxgate.observe.execute.steps import take_steps
from jaxgate.observe.execute.subjects import JittedSubject
from jaxgate.observe.machine.environment import hardware_key
from jaxgate.observe.trace.lowering import lower

X = np.arange(12, dtype=np.float32).reshape(4, 3)
TOP, BOTTOM = ((0, 2), (0, 3)), ((2, 4), (0, 3))


class Others(Lockstep):
    """The rest of the ranks, as one of them hears it."""

    def __init__(self, *, numbers=None, yes=()):
        self.numbers, self.yes, self.asked = numbers, yes, []

    def first(self, what, numbers):
        self.asked.append(what)
        return numbers if self.numbers is None else self.numbers

    def anyone(self, what, yes):
        self.asked.append(what)
        return yes or any(piece in what for piece in self.yes)


def clock():
    """Nanoseconds that pass by themselves."""
    clock.now = getattr(clock, "now", 0) + 1000
    return clock.now


def sample(together, next_args=None):
    """A sample of a small function, and how often it was called."""
    calls = []
    function = jax.jit(lambda x: x * 2)
    call = ((jnp.float32(3),), {})
    lowered = lower(function, *call, role="subject", clock=clock)
    take_steps(JittedSubject.of(lowered, call), next_args, clock=clock)

    class Counting:
        def __call__(self, *args):
            calls.append(args)
            return function(*args)

    counted = JittedSubject.of(replace(lowered, called=Counting()), call)
    return sample_of(counted, next_args, call_ns=1_000_000, clock=clock, together=together), len(calls)


def test_bursts_are_those_of_rank_0():
    """A clock that runs otherwise on this rank decides nothing."""
    found, calls = sample(Others(numbers=(3, 4)))
    assert (found.samples.calls_per_burst, len(found.samples.bursts_ns), calls) == (3, 4, 12)


def test_calls_are_made_again_where_another_rank_retraced():
    """As many as there; this rank, which did not, has nothing to say of it."""
    found, calls = sample(Others(numbers=(3, 4), yes=("again",)))
    assert calls == 12 + 4
    assert found.retraces == []


def test_a_reference_is_run_where_another_rank_does_not_remember_it(tmp_path):
    store, others = ReferenceCache(tmp_path), Others(yes=("reference is not remembered",))

    def cached(**tools):
        doubled = measured(lambda x: x * 2, jnp.ones(3), reference=lambda x: x + x, tools={"store": store, **tools})
        return doubled.reference.cached

    assert [cached(), cached(), cached(together=others)] == [False, True, False]


def spread(values=X, places=(TOP,)):
    """What a process holds of an array."""
    parts = {place: values[tuple(slice(*span) for span in place)] for place in places}
    return Shards(shape=values.shape, dtype=values.dtype, parts=parts)


def test_parts_are_compared_with_the_whole_and_with_the_same_parts():
    """Where the reference is whole, its part is looked at; an array of this process is one part, at no place."""
    assert [(place, values.tolist()) for place, values in pieces(on_host(jnp.asarray(X)))] == [((), X.tolist())]
    check_agreement(spread(), X, Closeness(0, 0))
    check_agreement(X, spread(), Closeness(0, 0))
    check_agreement(spread(), spread(), Closeness(0, 0))


@pytest.mark.parametrize("turned", [False, True], ids=["subject", "reference"])
def test_a_wrong_element_of_a_part_has_its_place_in_the_whole(turned):
    """Row 3 of the array, which is row 1 of the part."""
    wrong = X.copy()
    wrong[3, 1] += 1
    sides = (spread(X, (BOTTOM,)), wrong) if not turned else (wrong, spread(X, (BOTTOM,)))
    with pytest.raises(InvalidCaseError, match=r"result\[3, 1\]: subject gives"):
        check_agreement(*sides, Closeness(0, 0))
    check_agreement(spread(X, (TOP,)), wrong, Closeness(0, 0))  # another rank's to see


def test_parts_at_other_places_cannot_be_compared():
    with pytest.raises(InvalidCaseError, match="spread over the processes in different ways"):
        list(side_by_side(spread(), spread(X, (BOTTOM,)), stage="comparing", what="result"))


def test_a_nan_in_a_part_is_found(monkeypatch):
    broken = X.copy()
    broken[0, 0] = np.nan
    monkeypatch.setattr("jaxgate.observe.execute.correctness.on_host", lambda _: spread(broken))
    with pytest.raises(InvalidCaseError, match="found 1 NaN of 6 in result"):
        refuse_nan(X, "the result")


def test_inputs_are_known_by_parts_and_places(monkeypatch):
    """The same values at another place are other inputs."""
    same = np.zeros((4, 3), np.float32)
    found = []
    for places in ((TOP,), (BOTTOM,), (TOP,)):
        monkeypatch.setattr("jaxgate.observe.arguments.feeder.on_host", lambda _, places=places: spread(same, places))
        found.append(inputs_fingerprint((same,), {}))
    assert found[0] == found[2] != found[1]


class Device:
    """A device of some process."""

    def __init__(self, process):
        self.process_index, self.platform, self.device_kind = process, "gpu", "H200"


def test_processes_are_counted_and_this_one_must_be_among_them():
    """A program on another process's devices would run nothing here."""
    assert processes_of([Device(0), Device(0), Device(1)]) == 2
    with pytest.raises(InvalidCaseError, match="found none of process 0, only of 1 and 2"):
        processes_of([Device(1), Device(2)])


def test_the_key_tells_processes_apart():
    """Two of four devices are not one of eight; one is what it was."""
    assert hardware_key(Device(0), 8).slug == "gpu-h200-8"
    assert hardware_key(Device(0), 8, 2).slug == "gpu-h200-2-processes-8"
    assert hardware_key(Device(0), 8, 2).same_platform(hardware_key(Device(0), 8))
