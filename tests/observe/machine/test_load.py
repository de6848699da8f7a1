"""Is the machine quiet: what is read, what is said of it, what is refused; with fake counters and a fake driver."""
# ruff: noqa: N802, N815 - the fake driver speaks as the real one does

from __future__ import annotations

from types import SimpleNamespace

import pytest

from jaxgate.observe.machine import Ticks, look, read_ticks
from jaxgate.observe.machine import nvml as module
from jaxgate.observe.machine.nvml import read_gpus

IDLE = "cpu  1000 0 1000 100000 0 0 0 500 0 0\ncpu0 1 2 3\n"


class Machine:
    """A processor whose counters are the test's."""

    def __init__(self, folder):
        self.proc, self.sys = folder / "proc", folder / "sys"
        self.proc.mkdir()
        self.write(IDLE)
        self.load, self.user, self.idle, self.stolen = 0.1, 0, 200, 0

    def write(self, text):
        (self.proc / "stat").write_text(text)

    def pass_time(self):
        """What a window adds to the counters."""
        user, _, _, idle, _, _, _, stolen = (int(word) for word in (self.proc / "stat").read_text().split()[1:9])
        self.write(f"cpu  {user + self.user} 0 1000 {idle + self.idle} 0 0 0 {stolen + self.stolen} 0 0\n")

    def clock(self, now, most=3_000_000, cpu="cpu0"):
        """Give a processor a clock, in kHz."""
        folder = self.sys / "devices/system/cpu" / cpu / "cpufreq"
        folder.mkdir(parents=True)
        (folder / "scaling_cur_freq").write_text(f"{now}\n")
        (folder / "scaling_max_freq").write_text(f"{most}\n")

    def look(self, platform="cpu", **changes):
        whole = {
            "proc": self.proc,
            "system": self.sys,
            "load": lambda: self.load,
            "cores": 2,
            "wait": self.pass_time,
            "spin": lambda: None,
            "environ": {},
        }
        return look(platform, **{**whole, **changes})


@pytest.fixture
def machine(tmp_path):
    """A quiet machine of two cores that tells everything but its clocks."""
    return Machine(tmp_path)


def test_a_quiet_machine_is_not_refused(machine):
    """And what was seen is said, the unknown as unknown."""
    seen = machine.look()
    assert seen.objections == ()
    assert str(seen) == "load 0.1 of 2 cores, 0.0 at work, steal 0.0%, clock unknown"


def test_load_is_refused(machine):
    """Half a core of other work may be on two cores; more is refused."""
    machine.load = 0.5
    assert machine.look().objections == ()
    machine.load = 0.6
    assert machine.look().objections == ("load 0.6, at most 0.5 may be",)


def test_a_tenth_of_many_cores_may_be_loaded(machine):
    """64 cores: 6.4."""
    machine.load = 6.4
    assert machine.look(cores=64).objections == ()
    machine.load = 6.6
    assert machine.look(cores=64).objections == ("load 6.6, at most 6.4 may be",)


def test_cores_at_work_now_are_refused(machine):
    """Three quarters of the window at work are 1.5 of 2 cores, whatever the load of the last minute says."""
    machine.user, machine.idle = 150, 50
    assert machine.look().objections == ("1.5 cores at work, at most 0.5 may be",)


def test_steal_is_refused(machine):
    """The hypervisor gave 3 of 200 ticks to somebody else."""
    machine.idle, machine.stolen = 197, 3
    seen = machine.look()
    assert seen.objections == ("steal 1.5%, at most 1% may be",)
    assert "steal 1.5%" in str(seen)


def test_steal_counts_since_a_session_began(machine):
    """Over the session, not over the second after it: 500 of 10700 ticks were stolen, none in the window."""
    since = Ticks(busy=1500, stolen=0, total=1500 + 90_000)
    seen = machine.look(after_work=True, since=since)
    assert seen.steal == pytest.approx(500 / (102_700 - 91_500))
    assert "steal 4.5%, at most 1% may be" in seen.objections


def test_our_own_work_is_not_held_against_the_machine(machine):
    """After a session the load of the last minute is ours: it is not asked, and not called unknown."""
    machine.load = 2.0
    seen = machine.look(after_work=True)
    assert seen.objections == ()
    assert str(seen) == "0.0 of 2 cores at work, steal 0.0%, clock unknown"


def test_a_slow_clock_is_refused(machine):
    """The fastest processor, while one spins, stays at half of what it may."""
    machine.clock(1_500_000)
    machine.clock(800_000, cpu="cpu1")
    assert machine.look().objections == ("clock at 50% of its maximum, at least 80% must be",)


def test_a_clock_is_compared_with_what_the_system_allows(machine):
    """One idle processor does not accuse; a damaged file is unknown."""
    machine.clock(2_900_000)
    machine.clock(800_000, cpu="cpu1")
    machine.clock(0, most=0, cpu="cpu2")
    seen = machine.look()
    assert seen.objections == ()
    assert "clock 97%" in str(seen)


def test_the_processor_spins_before_its_clock_is_read(machine):
    """An idle processor is slow for no bad reason."""
    machine.clock(800_000)
    path = machine.sys / "devices/system/cpu/cpu0/cpufreq/scaling_cur_freq"
    assert machine.look(spin=lambda: path.write_text("3000000")).clock == 1.0


@pytest.mark.parametrize("text", ["", "cpu  1 2 x\n", "cpu 1 2 3\n"])
def test_counters_that_cannot_be_read_are_unknown(machine, text):
    """The load alone is enough to judge by; that the rest is unknown is said."""
    machine.write(text)
    assert read_ticks(machine.proc) is None
    seen = machine.look(wait=lambda: None)
    assert seen.objections == ()
    assert str(seen) == "load 0.1 of 2 cores, unknown at work, steal unknown, clock unknown"


def test_counters_that_stand_still_are_unknown(machine):
    """No tick passed: no share of anything."""
    seen = machine.look(wait=lambda: None)
    assert (seen.busy_cores, seen.steal) == (None, None)


def test_a_machine_that_tells_nothing_is_refused(machine):
    """Fail closed."""
    (machine.proc / "stat").unlink()
    seen = machine.look(load=lambda: None, wait=lambda: None)
    assert seen.objections == ("nothing can be read of the processors",)
    after = machine.look(after_work=True, wait=lambda: None)
    assert after.objections == ("nothing can be read of the processors",)


# GPU


class FakeNvmlError(Exception):
    """As ``pynvml.NVMLError``."""


class FakeNvml:
    """A driver with one idle H200; functions and constants are named as in ``nvidia-ml-py`` 13."""

    NVMLError = FakeNvmlError
    NVML_TEMPERATURE_GPU = 0
    NVML_TEMPERATURE_THRESHOLD_SLOWDOWN = 1
    nvmlClocksEventReasonGpuIdle = 0x1
    nvmlClocksEventReasonApplicationsClocksSetting = 0x2
    nvmlClocksEventReasonSwPowerCap = 0x4
    nvmlClocksEventReasonHwSlowdown = 0x8
    nvmlClocksEventReasonSwThermalSlowdown = 0x20
    nvmlClocksEventReasonHwThermalSlowdown = 0x40
    nvmlClocksEventReasonHwPowerBrakeSlowdown = 0x80

    def __init__(self):
        self.open = 0
        self.devices = ["GPU-a"]
        self.processes = {}
        self.busy = 0
        self.reasons = 0x1
        self.broken = set()

    def __getattribute__(self, name):
        if name.startswith("nvmlDevice") and name in object.__getattribute__(self, "broken"):

            def refuse(*_):
                raise FakeNvmlError("Not Supported")

            return refuse
        return object.__getattribute__(self, name)

    def nvmlInit(self):
        self.open += 1

    def nvmlShutdown(self):
        self.open -= 1

    def nvmlDeviceGetCount(self):
        return len(self.devices)

    def nvmlDeviceGetHandleByIndex(self, index):
        if not 0 <= index < len(self.devices):
            raise FakeNvmlError("Invalid Argument")
        return self.devices[index]

    def nvmlDeviceGetHandleByUUID(self, name):
        if name not in self.devices:
            raise FakeNvmlError("Not Found")
        return name

    def nvmlDeviceGetName(self, handle):
        return "NVIDIA H200"

    def nvmlDeviceGetComputeRunningProcesses(self, handle):
        return [SimpleNamespace(pid=pid) for pid in self.processes.get(handle, ())]

    def nvmlDeviceGetUtilizationRates(self, handle):
        return SimpleNamespace(gpu=self.busy, memory=0)

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle):
        return self.reasons

    def nvmlDeviceGetTemperature(self, handle, sensor):
        assert sensor == self.NVML_TEMPERATURE_GPU
        return 34

    def nvmlDeviceGetTemperatureThreshold(self, handle, which):
        assert which == self.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN
        return 87


@pytest.fixture
def nvml(monkeypatch):
    """The fake driver in place of the real one."""
    fake = FakeNvml()
    monkeypatch.setattr(module, "import_module", lambda name: {"pynvml": fake}[name])
    return fake


def test_an_idle_gpu_is_not_refused(machine, nvml):
    """Idle, or with clocks set by its owner: nothing slows it down. What was seen is said."""
    nvml.reasons = 0x1 | 0x2
    seen = machine.look("gpu")
    assert seen.objections == ()
    assert str(seen).endswith(
        "GPU 0 (NVIDIA H200; 0 other processes; 0 % at work; slowed by nothing; 34 °C (slows at 87 °C))"
    )
    assert nvml.open == 0  # the driver was let go


BUSY = {
    "another process": (
        lambda fake: fake.processes.update({"GPU-a": [7, 8]}),
        "GPU 0: 2 other processes compute on it",
    ),
    "utilisation": (lambda fake: setattr(fake, "busy", 40), "GPU 0: 40 % at work, at most 5 % may be"),
    "power cap": (lambda fake: setattr(fake, "reasons", 0x4), "GPU 0: slowed down by power cap"),
    "hardware": (lambda fake: setattr(fake, "reasons", 0x8), "GPU 0: slowed down by hardware slow-down"),
    "heat": (lambda fake: setattr(fake, "reasons", 0x21), "GPU 0: slowed down by heat"),
    "more heat": (lambda fake: setattr(fake, "reasons", 0x68), "hardware slow-down and heat and heat (hardware)"),
    "power brake": (lambda fake: setattr(fake, "reasons", 0x80), "GPU 0: slowed down by power brake"),
}


@pytest.mark.parametrize("what", BUSY)
def test_a_busy_or_throttled_gpu_is_refused(machine, nvml, what):
    """Each reason by its name."""
    change, objection = BUSY[what]
    change(nvml)
    (found,) = machine.look("gpu").objections
    assert objection in found


def test_what_we_did_ourselves_is_not_asked_of_the_gpu(machine, nvml):
    """While we hold it and after our work: neither users nor utilisation, but still what slows it down."""
    nvml.processes, nvml.busy = {"GPU-a": [1]}, 90
    assert machine.look("gpu", after_work=True, holds_device=True).objections == ()
    nvml.reasons = 0x20
    seen = machine.look("gpu", after_work=True, holds_device=True)
    assert seen.objections == ("GPU 0: slowed down by heat",)
    assert "at work;" not in str(seen)
    assert "other processes" not in str(seen)


def test_after_a_session_other_users_are_still_asked(machine, nvml):
    """Our process is over; whoever is there now is somebody else."""
    nvml.processes = {"GPU-a": [1]}
    assert machine.look("gpu", after_work=True).objections == ("GPU 0: 1 other process computes on it",)


def test_what_a_gpu_does_not_tell_is_unknown(machine, nvml):
    """Without utilisation (as on a MIG slice) the rest decides."""
    nvml.broken = {"nvmlDeviceGetUtilizationRates", "nvmlDeviceGetTemperature"}
    seen = machine.look("gpu")
    assert seen.objections == ()
    assert "unknown % at work" in str(seen)
    assert "unknown °C" in str(seen)


def test_a_gpu_that_tells_nothing_is_refused(machine, nvml):
    """Fail closed: the device is there, and nothing of it is known."""
    nvml.broken = {name for name in dir(FakeNvml) if name.startswith("nvmlDeviceGet")} - {
        "nvmlDeviceGetCount",
        "nvmlDeviceGetHandleByIndex",
        "nvmlDeviceGetName",
    }
    assert machine.look("gpu").objections == ("GPU 0: neither its users nor its clocks can be read",)


def test_the_older_name_of_the_reasons_is_asked_too(machine, nvml):
    """Drivers before 535 call them throttle reasons; the bits are the same."""
    nvml.broken = {"nvmlDeviceGetCurrentClocksEventReasons"}
    nvml.nvmlDeviceGetCurrentClocksThrottleReasons = lambda handle: 0x40
    assert machine.look("gpu").objections == ("GPU 0: slowed down by heat (hardware)",)


def test_a_driver_that_cannot_be_asked_is_refused(machine, nvml):
    """Fail closed, with its own words; the processors are told all the same."""

    def fail():
        raise FakeNvmlError("NVML Shared Library Not Found")

    nvml.nvmlInit = fail
    seen = machine.look("gpu")
    assert seen.objections == ("the GPU cannot be read: NVML Shared Library Not Found",)
    assert str(seen).startswith("load 0.1 of 2 cores")
    assert str(seen).endswith("the GPU cannot be read: NVML Shared Library Not Found")


def test_a_missing_package_is_refused(machine, monkeypatch):
    """It says which one to install."""

    def fail(name):
        raise ImportError(name)

    monkeypatch.setattr(module, "import_module", fail)
    assert machine.look("gpu").objections == (
        "the GPU cannot be read: nvidia-ml-py is not installed (pip install nvidia-ml-py)",
    )


@pytest.mark.parametrize("visible", ["", " "])
def test_no_visible_gpu_is_refused(machine, nvml, visible):
    """Nothing was looked at."""
    assert machine.look("gpu", environ={"CUDA_VISIBLE_DEVICES": visible}).objections == (
        "the GPU cannot be read: the driver shows no GPU",
    )


@pytest.mark.parametrize(
    ("visible", "refused"), [("0", 0), ("1", 1), ("GPU-b", 1), ("GPU-a", 0), ("0,1", 1), (None, 1)]
)
def test_only_visible_gpus_are_looked_at(machine, nvml, visible, refused):
    """By index or by name; all of them where nothing is said."""
    nvml.devices, nvml.processes = ["GPU-a", "GPU-b"], {"GPU-b": [7]}
    environ = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    assert len(machine.look("gpu", environ=environ).objections) == refused


def test_an_unknown_gpu_is_refused(machine, nvml):
    """A name that the driver does not know is not quiet."""
    (found,) = machine.look("gpu", environ={"CUDA_VISIBLE_DEVICES": "GPU-z"}).objections
    assert found == "the GPU cannot be read: Not Found"
    assert nvml.open == 0


def test_other_platforms_do_not_ask_for_gpus(machine, nvml):
    """On CPU a GPU in the machine is nobody's business."""
    nvml.busy = 100
    assert machine.look("cpu").objections == ()
    assert read_gpus({}, used_by_us=False, after_work=False)[0].utilisation == 100
