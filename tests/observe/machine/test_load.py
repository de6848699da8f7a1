"""Is the machine quiet: what is read, what is said of it, what is refused; with fake counters and a fake driver."""
# ruff: noqa: N802, N815 - the fake driver speaks as the real one does

from types import SimpleNamespace

import pytest
from support.nvml import FakeDriver, FakeNvmlError

from jaxgate.observe.machine import nvml as module
from jaxgate.observe.machine.load import Ticks, look, memory_bytes, read_ticks
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


@pytest.mark.parametrize(("load", "cores", "most"), [(0.5, 2, None), (0.6, 2, 0.5), (6.4, 64, None), (6.6, 64, 6.4)])
def test_load_is_refused(machine, load, cores, most):
    """Half a core of other work may be on two cores, a tenth on many; more is refused."""
    machine.load = load
    assert machine.look(cores=cores).objections == ((f"load {load}, at most {most} may be",) if most else ())


@pytest.mark.parametrize(
    ("ticks", "objection"),
    [
        (
            {"user": 150, "idle": 50},
            "1.5 cores at work, at most 0.5 may be",
        ),  # whatever the load of the last minute says
        ({"idle": 197, "stolen": 3}, "steal 1.5%, at most 1% may be"),  # the hypervisor gave it to somebody else
    ],
    ids=["work", "steal"],
)
def test_what_passes_in_the_window_is_refused(machine, ticks, objection):
    vars(machine).update(ticks)
    seen = machine.look()
    assert seen.objections == (objection,)
    assert "steal 1.5%" in str(seen) or "1.5 at work" in str(seen)


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


@pytest.mark.parametrize(("now", "share"), [(1_500_000, 50), (2_900_000, 97)], ids=["slow", "quick"])
def test_a_clock_is_compared_with_what_the_system_allows(machine, now, share):
    """The fastest processor, while one spins, counts: one that idles does not accuse, and a damaged file is unknown."""
    machine.clock(now)
    machine.clock(800_000, cpu="cpu1")
    machine.clock(0, most=0, cpu="cpu2")
    seen = machine.look()
    assert seen.objections == (("clock at 50% of its maximum, at least 80% must be",) if share == 50 else ())
    assert f"clock {share}%" in str(seen)


def test_the_processor_spins_before_its_clock_is_read(machine):
    machine.clock(800_000)
    path = machine.sys / "devices/system/cpu/cpu0/cpufreq/scaling_cur_freq"
    assert machine.look(spin=lambda: path.write_text("3000000")).clock == 1.0


@pytest.mark.parametrize(
    "text", ["", "cpu  1 2 x\n", "cpu 1 2 3\n", IDLE], ids=["none", "no number", "few", "stood still"]
)
def test_counters_that_cannot_be_read_are_unknown(machine, text):
    """The load alone is enough to judge by; that the rest is unknown is said."""
    machine.write(text)
    assert (read_ticks(machine.proc) is None) is (text != IDLE)
    seen = machine.look(wait=lambda: None)
    assert (seen.busy_cores, seen.steal, seen.objections) == (None, None, ())
    assert str(seen) == "load 0.1 of 2 cores, unknown at work, steal unknown, clock unknown"


def test_a_machine_that_tells_nothing_is_refused(machine):
    (machine.proc / "stat").unlink()
    seen = machine.look(load=lambda: None, wait=lambda: None)
    assert seen.objections == ("nothing can be read of the processors",)
    after = machine.look(after_work=True, wait=lambda: None)
    assert after.objections == ("nothing can be read of the processors",)


# GPU


class FakeNvml(FakeDriver):
    """A driver with one idle H200; functions and constants are named as in ``nvidia-ml-py`` 13."""

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
        super().__init__("GPU-a")
        self.open = 0
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


def older(fake):
    """Drivers before 535 call the reasons those of throttling; the bits are the same."""
    fake.broken = {"nvmlDeviceGetCurrentClocksEventReasons"}
    fake.nvmlDeviceGetCurrentClocksThrottleReasons = lambda handle: 0x40


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
    "an older driver": (older, "GPU 0: slowed down by heat (hardware)"),
}


@pytest.mark.parametrize("what", BUSY)
def test_a_busy_or_throttled_gpu_is_refused(machine, nvml, what):
    change, objection = BUSY[what]
    change(nvml)
    (found,) = machine.look("gpu").objections
    assert objection in found


def test_what_we_did_ourselves_is_not_asked_of_the_gpu(machine, nvml):
    """While we hold it and after our work: neither users nor utilisation, but still what slows it down."""
    nvml.processes, nvml.busy = {"GPU-a": [1]}, 90
    assert machine.look("gpu", after_work=True, holds_device=True).objections == ()
    (found,) = machine.look("gpu", after_work=True).objections  # our process is over: whoever is there is somebody else
    assert found == "GPU 0: 1 other process computes on it"
    nvml.reasons = 0x20
    seen = machine.look("gpu", after_work=True, holds_device=True)
    assert seen.objections == ("GPU 0: slowed down by heat",)
    assert "at work;" not in str(seen)
    assert "other processes" not in str(seen)


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


@pytest.mark.parametrize(
    ("broken", "error", "why"),
    [
        ("init", FakeNvmlError("NVML Shared Library Not Found"), "NVML Shared Library Not Found"),
        ("import", ImportError("pynvml"), "nvidia-ml-py is not installed (pip install nvidia-ml-py)"),
    ],
)
def test_a_driver_that_cannot_be_asked_is_refused(machine, nvml, monkeypatch, broken, error, why):
    """Fail closed, with its own words or the package to install; the processors are told all the same."""

    def fail(*_):
        raise error

    if broken == "init":
        nvml.nvmlInit = fail
    else:
        monkeypatch.setattr(module, "import_module", fail)
    seen = machine.look("gpu")
    assert seen.objections == (f"the GPU cannot be read: {why}",)
    assert str(seen).startswith("load 0.1 of 2 cores")
    assert str(seen).endswith(f"the GPU cannot be read: {why}")


@pytest.mark.parametrize(
    ("visible", "why"), [("", "the driver shows no GPU"), (" ", "the driver shows no GPU"), ("GPU-z", "Not Found")]
)
def test_no_visible_gpu_is_refused(machine, nvml, visible, why):
    """Nothing was looked at, or a name is one that the driver does not know."""
    assert machine.look("gpu", environ={"CUDA_VISIBLE_DEVICES": visible}).objections == (
        f"the GPU cannot be read: {why}",
    )
    assert nvml.open == 0


@pytest.mark.parametrize(
    ("visible", "refused"), [("0", 0), ("1", 1), ("GPU-b", 1), ("GPU-a", 0), ("0,1", 1), (None, 1)]
)
def test_only_visible_gpus_are_looked_at(machine, nvml, visible, refused):
    """By index or by name; all of them where nothing is said."""
    nvml.devices, nvml.processes = ["GPU-a", "GPU-b"], {"GPU-b": [7]}
    environ = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    assert len(machine.look("gpu", environ=environ).objections) == refused


def test_other_platforms_do_not_ask_for_gpus(machine, nvml):
    """On CPU a GPU in the machine is nobody's business."""
    nvml.busy = 100
    assert machine.look("cpu").objections == ()
    assert read_gpus({}, used_by_us=False, after_work=False)[0].utilisation == 100


def test_the_most_memory_is_that_of_this_process_and_never_less_than_what_it_holds():
    held = bytearray(b"x" * 64 * 1024 * 1024)
    most, now = memory_bytes("VmHWM"), memory_bytes("RssAnon")
    assert most >= now >= len(held)
    del held
    assert memory_bytes("VmHWM") >= most


def test_a_system_that_does_not_say_it_is_an_error(tmp_path):
    (tmp_path / "status").write_text("Name:\tpython\n")
    with pytest.raises(OSError, match="expected RssAnon"):
        memory_bytes("RssAnon", tmp_path / "status")
