"""The rules that others decide by, each on the same two looks at a program. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from statistics import mean, median
from typing import Any

from pytest_benchmark.utils import PercentageRegressionCheck
from scipy.stats import mannwhitneyu

ASV_FACTOR = 1.1
ASV_P = 0.002
BENCHSTAT_P = 0.05
MEMORY = 1.1
_METADATA = re.compile(r",? ?metadata=\{[^}]*\}")
_TABLES = re.compile(r"^(FileNames|FunctionNames|FileLocations|StackFrames)\n(?:\d.*\n)*\n?", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What a user of other tools sees of a program."""

    times_ns: tuple[int, ...] = ()  # of calls in a row, each waited for
    # the optimised text of the program; `None` where there is none: plain Python around programs
    hlo: str | None = None
    # arguments, outputs and temporaries, aliased bytes once, as XLA's analysis adds them up
    memory_bytes: int | None = None
    failed: str = ""  # how the program failed, if it did; then there is nothing else


def _slower_mean(percent: int, before: Look, after: Look) -> bool:
    check: Any = PercentageRegressionCheck("mean", percent)  # type: ignore[no-untyped-call] # pytest-benchmark has no types
    return bool(check.fails({"mean": mean(after.times_ns)}, {"mean": mean(before.times_ns)}))


def _asv(before: Look, after: Look) -> bool:
    slower = median(after.times_ns) > ASV_FACTOR * median(before.times_ns)
    return slower and float(mannwhitneyu(after.times_ns, before.times_ns).pvalue) < ASV_P


def _benchstat(before: Look, after: Look) -> bool:
    slower = median(after.times_ns) > median(before.times_ns)
    return slower and float(mannwhitneyu(after.times_ns, before.times_ns).pvalue) < BENCHSTAT_P


def _golden_text(before: Look, after: Look) -> bool:
    return None not in (before.hlo, after.hlo) and _bare(before.hlo or "") != _bare(after.hlo or "")


def _memory(before: Look, after: Look) -> bool:
    return bool(before.memory_bytes and after.memory_bytes and after.memory_bytes > MEMORY * before.memory_bytes)


def _bare(hlo: str) -> str:
    """The text without the places in the source, which move with every line."""
    return _METADATA.sub("", _TABLES.sub("", hlo))


RULES: Mapping[str, Callable[[Look, Look], bool]] = {
    "pytest-benchmark, `--benchmark-compare-fail=mean:5%`": partial(_slower_mean, 5),
    "pytest-benchmark, `--benchmark-compare-fail=mean:10%`": partial(_slower_mean, 10),
    "asv, factor 1.1 and Mann–Whitney at 0.002": _asv,
    "benchstat, Mann–Whitney at 0.05": _benchstat,
    "golden text of optimised HLO, without places": _golden_text,
    "`memory_analysis()`, 10 %": _memory,
}


def alarms(before: Look, after: Look, *, harmless: bool = False) -> dict[str, bool]:
    """What each rule says of a change; a program that fails fails with every tool.

    Raises:
        ValueError: If the program did not run before the change, or not after a harmless one: then nothing was compared.
    """
    if before.failed or (harmless and after.failed):
        when = "before the change" if before.failed else "after a harmless change"
        raise ValueError(f"expected a program that runs {when}, found {before.failed or after.failed}")
    return {name: bool(after.failed) or rule(before, after) for name, rule in RULES.items()}
