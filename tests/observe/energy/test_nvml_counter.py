"""The counter of NVIDIA GPUs, with a fake driver whose functions are named as in ``nvidia-ml-py`` 13."""
# ruff: noqa: N802 - the fake driver speaks as the real one does

from types import SimpleNamespace

import pytest
from support.nvml import FakeDriver, FakeNvmlError

from jaxgate.ext.energy.model import CounterError
from jaxgate.ext.energy.nvml_counter import NvmlDriver


class FakeNvml(FakeDriver):
    """A driver with three H200s, which this process uses alone."""

    def __init__(self):
        super().__init__("GPU-a", "GPU-b", "GPU-c")
        self.energy = {"GPU-a": 5_000, "GPU-b": 7_000, "GPU-c": 0}
        self.pids = {device: [42] for device in self.devices}
        self.mig = 0
        self.kind = "NVIDIA H200"
        self.broken = set()

    def _may(self, name):
        if name in self.broken:
            raise FakeNvmlError("Not Supported")

    def nvmlInit(self):
        self._may("init")

    def nvmlDeviceGetName(self, handle):
        self._may("name")
        return self.kind

    def nvmlDeviceGetMigMode(self, handle):
        self._may("mig")
        return [self.mig, self.mig]

    def nvmlDeviceGetTotalEnergyConsumption(self, handle):
        self._may("energy")
        return self.energy[handle]

    def nvmlDeviceGetComputeRunningProcesses(self, handle):
        self._may("processes")
        return [SimpleNamespace(pid=pid) for pid in self.pids[handle]]


@pytest.fixture
def nvml():
    """The fake driver."""
    return FakeNvml()


def open_counter(nvml, *places, environ=None):
    """The counter of these devices, as JAX numbers them."""
    devices = [SimpleNamespace(local_hardware_id=place, device_kind="NVIDIA H200") for place in places]
    return NvmlDriver(environ or {}, lambda: nvml).counter(devices)


def test_millijoules_of_each_device_are_given_in_microjoules(nvml):
    """In the order of the case's devices; none of the counters begins again."""
    counter = open_counter(nvml, 1, 0)
    assert counter.read_uj() == (7_000_000, 5_000_000)
    assert counter.ranges_uj == (None, None)
    assert counter.name == "NVML"


def test_a_device_is_found_among_the_visible_ones(nvml):
    """JAX counts from 0 what ``CUDA_VISIBLE_DEVICES`` names."""
    assert open_counter(nvml, 0, environ={"CUDA_VISIBLE_DEVICES": "GPU-b,0"}).read_uj() == (7_000_000,)
    assert open_counter(nvml, 1, environ={"CUDA_VISIBLE_DEVICES": "GPU-b,0"}).read_uj() == (5_000_000,)


def absent():
    """As where the package is not installed."""
    raise ImportError("nvidia-ml-py is not installed (pip install nvidia-ml-py)")


def test_without_the_package_there_is_no_counter():
    with pytest.raises(CounterError, match="pip install nvidia-ml-py"):
        NvmlDriver({}, absent)


REFUSED = {
    "no driver": (lambda nvml: nvml.broken.add("init"), 0, "the GPU's driver cannot be asked: Not Supported"),
    "no counter": (lambda nvml: nvml.broken.add("energy"), 0, "the GPU's energy cannot be read: Not Supported"),
    "no name": (lambda nvml: nvml.broken.add("name"), 0, "the GPU's driver cannot be asked: Not Supported"),
    "not shown": (lambda nvml: None, 3, "the driver shows 3 GPUs, and JAX uses number 3"),
    "no place": (lambda nvml: None, None, "the driver shows 3 GPUs, and JAX uses number None"),
    "another one": (
        lambda nvml: setattr(nvml, "kind", "NVIDIA A100"),
        0,
        "GPU 0 is NVIDIA A100 to the driver and NVIDIA H200 to JAX",
    ),
    "divided": (lambda nvml: setattr(nvml, "mig", 1), 0, "GPU 0 is divided (MIG)"),
}


@pytest.mark.parametrize("refused", REFUSED)
def test_what_counts_for_something_else_is_refused(nvml, refused):
    spoil, place, reason = REFUSED[refused]
    spoil(nvml)
    with pytest.raises(CounterError) as caught:
        open_counter(nvml, place)
    assert str(caught.value).startswith(reason)


def test_a_device_that_cannot_be_divided_has_a_counter(nvml):
    nvml.broken.add("mig")
    assert open_counter(nvml, 0).read_uj() == (5_000_000,)


def test_other_processes_are_seen_before_and_after(nvml):
    """In a container this process has another number: one process is ours, whatever its number is."""
    others = open_counter(nvml, 0, 1).watch_others()
    assert others() == ""
    nvml.pids["GPU-b"] = [42, 7]
    assert others() == "1 other process computes on the GPU"
    nvml.pids["GPU-b"] = [42, 7, 8]
    with pytest.raises(CounterError, match="2 other processes compute on the GPU"):
        open_counter(nvml, 0, 1).watch_others()


SILENT = {
    "an error": lambda nvml: nvml.broken.add("processes"),
    "an empty list": lambda nvml: nvml.pids.update({"GPU-a": []}),
}


@pytest.mark.parametrize("silent", SILENT)
def test_a_driver_that_shows_no_processes_is_not_believed(nvml, silent):
    """Not even this one: others would not be seen either."""
    SILENT[silent](nvml)
    with pytest.raises(CounterError, match="who else uses the GPU cannot be read"):
        open_counter(nvml, 0).watch_others()
