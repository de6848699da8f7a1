"""The counters of processors, in a folder laid out as the kernel does it."""

from types import SimpleNamespace

import pytest

from jaxgate.ext.energy import rapl_counter as module
from jaxgate.ext.energy.model import CounterError
from jaxgate.ext.energy.rapl_counter import RaplCounter, open_rapl
from jaxgate.observe.machine.load import Ticks


def zone(powercap, place, name, energy=None, range_uj=262_143_328_850):
    """A domain: its folder, with what the kernel writes there."""
    folder = powercap / f"intel-rapl:{place}"
    folder.mkdir(parents=True)
    (folder / "name").write_text(f"{name}\n")
    if energy is not None:
        (folder / "energy_uj").write_text(f"{energy}\n")
    if range_uj is not None:
        (folder / "max_energy_range_uj").write_text(f"{range_uj}\n")
    return folder


def test_packages_are_counted_and_nothing_twice(tmp_path):
    """Not the board, of which they are parts, nor their own parts."""
    zone(tmp_path, "0", "package-0", 100)
    zone(tmp_path, "0:0", "core", 60)
    zone(tmp_path, "1", "package-1", 200, range_uj=1000)
    zone(tmp_path, "2", "psys", 900)
    counter = open_rapl(tmp_path)
    assert counter.read_uj() == (100, 200)
    assert counter.ranges_uj == (262_143_328_850, 1000)
    assert counter.name == "RAPL"


def test_a_range_that_the_kernel_does_not_say_is_none(tmp_path):
    """Then a counter that begins again went backwards."""
    zone(tmp_path, "0", "package-0", 100, range_uj=None)
    assert open_rapl(tmp_path).ranges_uj == (None,)


def test_a_machine_without_packages_has_no_counter(tmp_path):
    with pytest.raises(CounterError, match="no counter of energy"):
        open_rapl(tmp_path / "powercap")
    zone(tmp_path, "0", "psys", 900)
    with pytest.raises(CounterError, match="shows no package of a processor"):
        open_rapl(tmp_path)


class Unreadable:
    """A package whose counter only root may read; a test may run as root."""

    def __truediv__(self, name):
        return self

    def __str__(self):
        return "intel-rapl:0/energy_uj"

    def read_text(self, **_):
        """As the kernel refuses it."""
        raise PermissionError


def test_a_counter_that_may_not_be_read_says_so():
    with pytest.raises(CounterError, match=r"no permission to read intel-rapl:0/energy_uj \(since Linux 5.10"):
        RaplCounter([Unreadable()], (None,)).read_uj()


@pytest.mark.parametrize("content", [None, "", "many"])
def test_a_counter_that_says_no_number_cannot_be_read(tmp_path, content):
    folder = zone(tmp_path, "0", "package-0")
    if content is not None:
        (folder / "energy_uj").write_text(content)
    with pytest.raises(CounterError, match="energy_uj cannot be read"):
        open_rapl(tmp_path)


def watch(*, busy_s, own_s, passed_s=1.0, ticks=True):
    """Who used the processors in a second: all of them, and this process."""
    now = SimpleNamespace(busy=0.0, own=0.0, clock=0.0)
    counter = RaplCounter(
        [],
        (),
        ticks=lambda: Ticks(round(now.busy * 100), 0, 0) if ticks else None,
        own_ns=lambda: round(now.own * 1e9),
        clock=lambda: round(now.clock * 1e9),
        tick_hz=100,
    )
    others = counter.watch_others()
    now.busy, now.own, now.clock = busy_s, own_s, passed_s
    return others()


def test_this_process_alone_is_nobody_else():
    """Also with what every system does besides: a fifth of a core, or a tenth of what this process does."""
    assert watch(busy_s=1.0, own_s=0.9) == ""
    assert watch(busy_s=17.0, own_s=16.0) == ""


def test_others_on_the_processors_are_seen():
    assert watch(busy_s=1.8, own_s=0.9) == "other processes used 0.9 cores meanwhile, and this one 0.9"
    assert watch(busy_s=20.0, own_s=16.0) == "other processes used 4.0 cores meanwhile, and this one 16.0"
    assert (module.MAX_OTHERS, module.MAX_OTHERS_SHARE) == (0.2, 0.1)


def test_a_system_that_does_not_say_who_is_at_work_is_not_believed():
    with pytest.raises(CounterError, match="who else uses the processors cannot be read"):
        watch(busy_s=1.0, own_s=1.0, ticks=False)
