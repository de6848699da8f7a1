"""What a gate could do here, and what it could not: remarks on each thing that was looked at, and the lines of ``jaxgate doctor``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from textwrap import wrap

from jaxgate.judge.ageing import untested
from jaxgate.model.machine import HardwareKey
from jaxgate.model.words import plural, shortlist


class Level(StrEnum):
    """How much a remark matters."""

    OK = "ok"
    NOTE = "note"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Remark:
    """One thing that was looked at."""

    level: Level  # `BAD` where a gate would fail, or say nothing
    about: str  # what was looked at, in a word
    found: str  # what is there, and what that means for a gate
    remedy: str = ""  # the next command or step; empty where there is nothing to do


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """A machine, what is installed, and a project. Without a device nothing else was looked at."""

    versions: Mapping[str, str | None]  # installed packages; `None` for one that is not
    hardware: HardwareKey | None  # the device that JAX would use first; `None` if it finds none
    no_hardware: str = ""  # why it finds none; empty where JAX could not be asked
    devices: int = 0  # how many of these there are
    settings: Mapping[str, str] = field(default_factory=dict)  # what somebody set of the compiler, the runtime or JAX
    # settings with which no case can be judged, each with the reason
    unfit: Mapping[str, str] = field(default_factory=dict)
    cache: str = ""  # folder of JAX's persistent compilation cache; empty without one
    objections: tuple[str, ...] = ()  # what speaks against timing anything now
    clock_ns: int = 0  # the smallest step of the clock
    spread: float = 1.0  # how many times longer than at its quickest one piece of Python takes, in one round of ten
    in_git: bool = True  # whether the project is in a git checkout
    folder: str = "baselines"  # the folder of the baselines, as a person would write it
    line: str = ""  # the release line of jax
    own: int = 0  # baselines of this hardware and release line
    # baselines of other hardware or another line that would be compared with, by folder
    borrowed: Mapping[str, int] = field(default_factory=dict)
    unreadable: tuple[str, ...] = ()  # baselines that cannot be trusted
    ignored: tuple[str, ...] = ()  # files of the baselines that git ignores
    # what differs between this environment and that of the baselines that would be used
    differences: tuple[str, ...] = ()


NEEDED = ("jaxgate", "jax", "jaxlib", "pytest", "pytest-benchmark")
EXTRAS = {
    "pytest-xdist": ("cases go on side by side with -n", "pip install pytest-xdist"),
    "xprof": ("profiles of red cases open in TensorBoard", "pip install 'jaxgate[tensorboard]'"),
}
"""Packages that a gate can do without: what each is for, and how it is had."""
TARGETS = {"libtpu": ("TPUs", "tpu:v5e:2x4", "tpu-aot"), "jax-cuda13-plugin": ("NVIDIA GPUs", "gpu:h200:8", "cuda-aot")}
"""Compilers for devices that are not attached: which devices, a target of them, and the extra that brings it."""
COARSE_NS = 1_000
"""A clock with larger steps makes the time of a burst uncertain by a per cent, and more."""
UNSTEADY = 1.25
"""One piece of Python that takes so many times longer than at its quickest: duels here need many pairs."""
MAX_SHOWN = 4


def remarks(seen: Surroundings) -> list[Remark]:
    """Judge what was seen, in the order in which a person would mend it."""
    parts = [_versions, _devices]
    parts += [] if seen.hardware is None else [_settings, _cache, _clock, _load, _git, _baselines, _targets, _extras]
    return [remark for part in parts for remark in part(seen)]


def _versions(seen: Surroundings) -> Iterator[Remark]:
    missing = [name for name in NEEDED if seen.versions.get(name) is None]
    if missing:
        yield Remark(Level.BAD, "packages", f"not installed: {', '.join(missing)}", f"pip install {' '.join(missing)}")
        return
    text = ", ".join(f"{name} {seen.versions[name]}" for name in NEEDED)
    newer = untested(str(seen.versions["jax"]))
    yield Remark(Level.NOTE if newer else Level.OK, "packages", newer or text)


def _devices(seen: Surroundings) -> Iterator[Remark]:
    if seen.hardware is None:
        if seen.no_hardware:  # else JAX is not there to be asked
            remedy = "look at JAX_PLATFORMS, and at the wheels of JAX for this accelerator"
            yield Remark(Level.BAD, "devices", f"JAX finds none: {seen.no_hardware}", remedy)
        return
    what = f"{plural(seen.devices, 'device')} of {seen.hardware.platform} ({seen.hardware.device_kind})"
    found, remedy = f"{what}: facts gate, and changed programs are timed", ""
    if seen.hardware.platform == "cpu" and seen.devices == 1:
        found += "; cases on several devices need virtual ones"
        remedy = 'for these: perf_cpu_devices = "8" in the ini section of pytest'
    yield Remark(Level.OK, "devices", found, remedy)


def _settings(seen: Surroundings) -> Iterator[Remark]:
    for name, why in seen.unfit.items():
        yield Remark(Level.BAD, "settings", f"{name} is on: {why}", f"switch {name} off")
    if seen.settings:
        listed = shortlist([f"{name}={value}" for name, value in seen.settings.items()], MAX_SHOWN)
        found = f"set here, and part of what is recorded: {listed}"
        yield Remark(Level.NOTE, "settings", found, "set the same wherever these baselines are judged")
    elif not seen.unfit:
        yield Remark(Level.OK, "settings", "JAX and XLA have their defaults (a conftest may change them)")


def _cache(seen: Surroundings) -> Iterator[Remark]:
    if seen.cache:
        found = "JAX keeps compiled programs: what comes out of its cache has no compile time to gate"
        yield Remark(Level.NOTE, "cache", found, "unset JAX_COMPILATION_CACHE_DIR to gate compile times")


def _clock(seen: Surroundings) -> Iterator[Remark]:
    found = f"steps of {seen.clock_ns:,} ns; one round of ten takes {seen.spread:.2f} × as long as the quickest"
    if seen.clock_ns > COARSE_NS or seen.spread > UNSTEADY:
        found += ": duels need more pairs, and more of them end UNDECIDED"
        remedy = "gate on a quieter machine, or facts alone: --benchmark-disable"
        yield Remark(Level.NOTE, "clock", found, remedy)
    else:
        yield Remark(Level.OK, "clock", found)


def _load(seen: Surroundings) -> Iterator[Remark]:
    if seen.objections:
        found = f"{'; '.join(seen.objections)}: facts gate as ever, times are UNDECIDED more often"
        remedy = "record without a clock (--benchmark-disable), or when it is quiet"
        yield Remark(Level.NOTE, "load", found, remedy)
    else:
        yield Remark(Level.OK, "load", "the machine is quiet")


def _git(seen: Surroundings) -> Iterator[Remark]:
    if not seen.in_git:
        found = "no checkout: baselines have no commit, and --perf-against has nothing to compare with"
        yield Remark(Level.NOTE, "git", found, "git init")
    if seen.ignored:
        files, named = plural(len(seen.ignored), "file"), shortlist(seen.ignored, MAX_SHOWN)
        found = f"ignores {files} of the baselines, so that nobody else has them: {named}"
        yield Remark(Level.BAD, "git", found, f"git add --force {seen.folder}")


def _baselines(seen: Surroundings) -> Iterator[Remark]:
    if seen.unreadable:
        files = plural(len(seen.unreadable), "file")
        found = f"{files} cannot be trusted: {shortlist(seen.unreadable, MAX_SHOWN)}"
        remedy = "take them from git, or record them again: pytest --perf-update=refresh"
        yield Remark(Level.BAD, "baselines", found, remedy)
    changed = f"; recorded in another environment: {shortlist(seen.differences, MAX_SHOWN)}" if seen.differences else ""
    here = f"{seen.hardware.slug if seen.hardware else 'this hardware'} with jax {seen.line}"
    if seen.own:
        level = Level.NOTE if changed else Level.OK
        yield Remark(level, "baselines", f"{seen.own} for {here} in {seen.folder}{changed}")
    elif seen.borrowed:
        whose = ", ".join(f"{count} of {folder}" for folder, count in seen.borrowed.items())
        found = f"none for {here}; borrowed are {whose}: facts gate, a changed program is timed against theirs{changed}"
        yield Remark(Level.NOTE, "baselines", found, 'pytest --perf-update --perf-why "first baselines here"')
    else:
        found = f"none in {seen.folder}: under CI a gate without one fails"
        yield Remark(Level.BAD, "baselines", found, 'pytest --perf-update --perf-why "first baselines"')


def _targets(seen: Surroundings) -> Iterator[Remark]:
    here = [name for name in TARGETS if seen.versions.get(name) is not None]
    for name in here:
        devices, target, _ = TARGETS[name]
        found = f"{name} {seen.versions[name]} compiles for {devices} that are not attached: --perf-target {target}"
        yield Remark(Level.OK, "targets", found)
    if not here:
        devices = " or ".join(devices for devices, _, _ in TARGETS.values())
        install = " or ".join(f"pip install 'jaxgate[{extra}]'" for _, _, extra in TARGETS.values())
        yield Remark(Level.OK, "targets", f"no compiler for {devices} that are not attached", install)


def _extras(seen: Surroundings) -> Iterator[Remark]:
    for name, (what, how) in EXTRAS.items():
        if seen.versions.get(name) is None:
            yield Remark(Level.NOTE, "extras", f"{name} is not installed: {what}", how)


_WORDS = 17
"""Columns before the text: level and subject."""


def checkup_text(remarks: Sequence[Remark], width: int) -> str:
    """All remarks, wrapped, and a last line that sums them up."""
    lines = []
    for remark in remarks:
        first, *rest = wrap(remark.found, max(width - _WORDS, 20), break_long_words=False, break_on_hyphens=False)
        lines.append(f"{remark.level:<4}  {remark.about:<9}  {first}")
        lines += [f"{'':<{_WORDS}}{line}" for line in rest]
        if remark.remedy:
            lines.append(f"{'':<{_WORDS}}→ {remark.remedy}")
    bad = sum(remark.level is Level.BAD for remark in remarks)
    notes = sum(remark.level is Level.NOTE for remark in remarks)
    end = f"{plural(bad, 'thing keeps', 'things keep')} a gate from judging here" if bad else "A gate can judge here"
    lines.append(f"{end}; {plural(notes, 'note')}.")
    return "\n".join(lines) + "\n"
