"""Real peaks: what each backend's allocator tells, what is made of it, and when nothing is."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

from jaxgate.model import Computation, InvalidCaseError
from jaxgate.observe.memory import allocator, measure_peak
from jaxgate.observe.memory.allocator import preallocation, read_figures

GB = 10**9
BFC = {  # published figures of a GPU with 12.7 GB to give; a pool that grew
    "num_allocs": 63,
    "bytes_in_use": 14983168,
    "peak_bytes_in_use": 2431167744,
    "largest_alloc_size": 2415922432,
    "bytes_limit": 12701761536,
    "bytes_reserved": 0,
    "peak_bytes_reserved": 0,
    "largest_free_block_bytes": 0,
    "pool_bytes": 3228616192,
    "peak_pool_bytes": 3228616192,
}
TPU = {  # published figures of a v5e
    "num_allocs": 1044,
    "bytes_in_use": 2353927680,
    "peak_bytes_in_use": 2353927680,
    "largest_alloc_size": 44040192,
    "bytes_limit": 16909332480,
    "bytes_reserved": 66560,
    "peak_bytes_reserved": 66560,
    "bytes_reservable_limit": 14573867008,
    "largest_free_block_bytes": 14555338240,
}


class Device:
    """A device whose allocator says what it is told to."""

    def __init__(self, platform, statistics, number=0):
        self.platform, self.id, self._statistics = platform, number, statistics

    def memory_stats(self):
        if isinstance(self._statistics, Exception):
            raise self._statistics
        return self._statistics


def read(platform, statistics):
    """What is made of them."""
    return read_figures(Device(platform, statistics))


def test_a_gpu_tells_its_pool_and_not_its_largest_free_block():
    """BFC never fills it: 0 is not "everything is fragmented"."""
    found = read("gpu", BFC)
    assert (found.device, found.in_use_bytes, found.allocations) == ("gpu:0", 14983168, 63)
    assert (found.peak_bytes, found.held_bytes) == (2431167744, 14983168)
    assert (found.limit_bytes, found.pool_bytes, found.peak_pool_bytes) == (12701761536, 3228616192, 3228616192)
    assert found.largest_free_bytes is None
    assert found.fragmentation is None
    reserving = read("gpu", {**BFC, "bytes_reserved": GB, "peak_bytes_reserved": GB})  # a part of those in use, or not?
    assert reserving == found


def test_on_a_tpu_reserved_bytes_are_beside_those_in_use():
    """Limit, in use, reserved and the free block add up to the byte: nothing is fragmented."""
    found = read("tpu", TPU)
    assert found.held_bytes == found.peak_bytes == 2353927680 + 66560
    assert found.limit_bytes - found.held_bytes == found.largest_free_bytes
    assert found.fragmentation == 0
    assert found.pool_bytes is None
    working = read("tpu", {**TPU, "peak_bytes_reserved": 14 * GB, "bytes_reserved": 14 * GB})
    assert working.peak_bytes == 2353927680 + 14 * GB  # of temporaries, which are not "in use"


def test_fragmentation_is_the_share_that_one_block_cannot_have():
    """Half of what is free in the largest block: 50 %."""
    free = TPU["bytes_limit"] - TPU["bytes_in_use"] - TPU["bytes_reserved"]
    assert read("tpu", {**TPU, "largest_free_block_bytes": free // 2}).fragmentation == pytest.approx(0.5)
    pooled = {**BFC, "bytes_in_use": 60, "pool_bytes": 100, "largest_free_block_bytes": 10}
    assert read("gpu", pooled).fragmentation == 0.75


@pytest.mark.parametrize(
    "odd",
    [
        {"largest_free_block_bytes": TPU["bytes_limit"]},
        {"largest_free_block_bytes": -1},
        {"largest_free_block_bytes": "all"},
        {"bytes_limit": 1},
        {"bytes_limit": 0},
        {"bytes_limit": -1},
        {"bytes_in_use": TPU["bytes_limit"], "peak_bytes_in_use": TPU["bytes_limit"]},
    ],
    ids=str,
)
def test_fragmentation_of_figures_that_make_no_sense_is_unknown(odd):
    """Larger than what is free, negative, no limit, nothing free: neither 0 nor 1 would be true."""
    assert read("tpu", {**TPU, **odd}).fragmentation is None


@pytest.mark.parametrize(
    ("platform", "statistics", "why"),
    [
        ("cpu", None, "cpu: its allocator keeps no figures"),
        ("cpu", {}, "cpu: its allocator keeps no figures"),
        ("gpu", RuntimeError("UNIMPLEMENTED: MemoryStats\nmore"), "gpu:0: RuntimeError: UNIMPLEMENTED: MemoryStats"),
        (
            "gpu",
            {**BFC, "peak_bytes_in_use": 1},
            "gpu:0: its allocator contradicts itself: 14,983,168 bytes in use, at most 1 ever",
        ),
    ],
    ids=["none", "empty", "raises", "contradicts itself"],
)
def test_an_allocator_without_figures_says_so(platform, statistics, why):
    """As on CPU, where plugins raise, and where a peak is no peak."""
    assert read(platform, statistics) == f"unavailable on {why}"


@pytest.mark.parametrize("value", [None, -1, True, 1.5, "1"], ids=str)
@pytest.mark.parametrize(
    ("platform", "statistics", "key"),
    [
        ("gpu", BFC, "peak_bytes_in_use"),
        ("gpu", BFC, "bytes_in_use"),
        ("tpu", TPU, "peak_bytes_reserved"),
        ("tpu", TPU, "bytes_reserved"),
    ],
)
def test_without_what_a_peak_is_made_of_there_is_none(platform, statistics, key, value):
    """Missing, -1 for "not told", or no number of bytes: unavailable, never less than it was."""
    changed = {**statistics, key: value} if value is not None else {k: v for k, v in statistics.items() if k != key}
    assert read(platform, changed) == f"unavailable on {platform}:0: its allocator does not report {key}"


def test_all_else_may_be_missing():
    """Limit, pool and count are then unknown."""
    found = read("gpu", {"bytes_in_use": 1, "peak_bytes_in_use": 2, "num_allocs": -1})
    assert (found.peak_bytes, found.limit_bytes, found.pool_bytes, found.allocations) == (2, None, None, None)
    assert found.fragmentation is None


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, "allocator default, preallocates 0.75 of the device (JAX default)"),
        ({"XLA_CLIENT_MEM_FRACTION": ".9"}, "allocator default, preallocates .9 of the device"),
        ({"XLA_PYTHON_CLIENT_MEM_FRACTION": ".5"}, "allocator default, preallocates .5 of the device"),
        (
            {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "XLA_PYTHON_CLIENT_ALLOCATOR": "BFC"},
            "allocator bfc, preallocates nothing, up to 0.75 of the device (JAX default)",
        ),
        ({"XLA_PYTHON_CLIENT_PREALLOCATE": "true"}, "allocator default, preallocates 0.75 of the device (JAX default)"),
        ({"XLA_PYTHON_CLIENT_ALLOCATOR": "platform"}, "allocator platform: no pool"),
    ],
    ids=str,
)
def test_what_jax_was_told_to_preallocate(environ, expected):
    """By the variables that jaxlib reads, in its own way; a TPU is taken whole in any case."""
    assert preallocation("gpu", environ) == expected
    assert preallocation("tpu", environ) == "nothing to preallocate on tpu"


# Whole cases, on the CPU, with an allocator that is the test's


class Allocator:
    """Says one thing after the other: at each look the peak that comes next, of every device that is asked."""

    def __init__(self, monkeypatch):
        self.peaks, self.in_use, self.by_device, self.looks = [100, 100, 500, 500, 500], 40, {}, 0
        monkeypatch.setattr(allocator, "statistics_of", self)

    def __call__(self, device):
        if device.id == 0:
            self.looks += 1
        peak = self.peaks[min(self.looks, len(self.peaks)) - 1]
        found = {"bytes_in_use": self.in_use, "peak_bytes_in_use": peak, "num_allocs": 10 * self.looks}
        return {**found, **self.by_device.get(device.id, {})} if self.by_device.get(device.id, {}) is not None else None


@pytest.fixture
def counted(monkeypatch):
    """An allocator of the test's."""
    return Allocator(monkeypatch)


def computation(function=lambda x: x + 1, *args, **options):
    """Built by a function, as a case is."""
    args = args or (jnp.ones(8),)
    return lambda: Computation(subject=function, args=args, **options)


def test_on_the_cpu_there_is_no_peak():
    """For real: said, with the compiler's prediction kept."""
    found = measure_peak("model/wave", computation())
    assert (found.peak, found.failed) == (None, False)
    assert found.why_not == "unavailable on cpu: its allocator keeps no figures"
    assert found.predicted_bytes == 64


def test_looks_before_and_after_the_calls_make_a_peak(counted):
    """With the arguments alone, before the first call, after it, and after the last."""
    found = measure_peak("model/wave", computation(), {})
    assert counted.looks == 5
    peak = found.peak
    assert (peak.before.peak_bytes, peak.ready.peak_bytes, peak.first.peak_bytes) == (100, 100, 500)
    assert (peak.peak_bytes, peak.own_bytes, peak.calls, peak.devices) == (500, 460, 3, 1)
    assert peak.by_calls
    assert peak.allocations == 30
    assert peak.after.device == "cpu:0"
    assert peak.preallocation == "nothing to preallocate on cpu"


def test_a_peak_that_no_call_made_is_told_apart(counted):
    """Autotuning while compiling may need more than the program."""
    counted.peaks = [100, 500, 500]
    assert not measure_peak("model/wave", computation()).peak.by_calls
    counted.peaks, counted.in_use = [0], 0  # after calls that cannot be
    found = measure_peak("model/wave", computation())
    assert (found.peak, found.why_not) == (None, "unavailable on cpu:0: its allocator says 0 bytes, after 3 calls")


def test_donated_arguments_are_threaded_and_not_copied(counted):
    """The state of the caller is gone: a copy would count as the program's."""
    state = jnp.ones(8)
    step = jax.jit(lambda state: state * 2, donate_argnums=0)
    found = measure_peak("model/step", computation(step, state))
    assert found.peak.calls == 3
    assert state.is_deleted()


def test_arguments_that_are_consumed_for_good_end_the_calls(counted):
    """One call is what there is; the second would fail."""
    step = jax.jit(lambda state: state * 2, donate_argnums=0)
    found = measure_peak("model/step", computation(lambda state: step(state), eager=True))
    assert (found.peak.calls, found.peak.peak_bytes) == (1, 100)
    assert (found.peak.first, found.peak.after) == (found.peak.after, found.peak.first)


def test_plain_python_is_called_as_it_is(counted):
    """No prediction of the compiler, but a peak."""
    double = jax.jit(lambda x: x * 2)
    found = measure_peak("model/loop", computation(lambda x: double(double(x)), eager=True))
    assert found.predicted_bytes is None
    assert (found.peak.peak_bytes, found.peak.calls) == (500, 3)


def test_of_several_devices_the_fullest_counts():
    """It is named; whichever is first does not matter."""
    quiet = {"device": "gpu:0", "reserved_bytes": None, "peak_reserved_bytes": None, "limit_bytes": None}
    quiet |= {"pool_bytes": None, "peak_pool_bytes": None, "largest_free_bytes": None, "allocations": None}

    def figures(number, peak):
        named = quiet | {"device": f"gpu:{number}"}
        return allocator.AllocatorFigures(in_use_bytes=1, peak_in_use_bytes=peak, **named)

    devices = [Device("gpu", None, number) for number in range(3)]
    stage = {device: figures(device.id, peak) for device, peak in zip(devices, (5, 9, 7), strict=True)}
    stages = dict.fromkeys(("before", "ready", "first", "after"), stage)
    found = allocator._fullest(stages, 3, {})
    assert (found.after.device, found.peak_bytes, found.devices) == ("gpu:1", 9, 3)
    silent = {**stage, devices[2]: "unavailable on gpu:2: it is silent"}
    assert allocator._fullest({**stages, "first": silent}, 3, {}) == "unavailable on gpu:2: it is silent"
    unseen = {device: stage[device] for device in devices[:2]}
    assert allocator._fullest({**stages, "before": unseen}, 3, {}) == (
        "unavailable on gpu:2: it was not looked at before"
    )
    assert allocator._fullest({**stages, "after": {}}, 3, {}) == (
        "unavailable: no device holds a result or an argument"
    )


@pytest.mark.parametrize(
    ("function", "stage"),
    [
        (lambda x: x + undefined, "tracing the subject"),  # noqa: F821 - what the case does wrong
        (lambda x: None, "compiling the subject"),
    ],
)
def test_a_case_that_cannot_run_is_invalid(function, stage):
    """As everywhere, with the stage."""
    with pytest.raises(InvalidCaseError, match=stage):
        measure_peak("model/wave", computation(function))


def test_a_call_that_runs_out_of_memory_is_invalid():
    """With the number of the call, and the name of the fault."""

    def grow(x):
        raise RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 5 bytes")

    with pytest.raises(InvalidCaseError, match="call 1 of the subject: RESOURCE_EXHAUSTED: asked for 5 B"):
        measure_peak("model/wave", computation(grow, eager=True))
