"""pytest-benchmark's rows: filled with our samples; under pytest-xdist in the workers, and shown by the controller.

``pedantic`` fixes its rounds in advance and cannot drive a measurement of ours; so the measurement is done
first and its times are replayed through the timer that the ``benchmark`` marker accepts.

Under pytest-xdist pytest-benchmark switches itself off, because plain benchmarks would disturb each other. The times of
a gate were taken with the machine to themselves, so its rows are right. Rows of workers, and of a second gate of a test
(the fixture fills one row), need names without a public interface; ``tests/plugin/test_benchmark_rows.py`` fails when
they move.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator
from dataclasses import asdict
from decimal import Decimal
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from jaxgate.model.measurement import Measurement
    from jaxgate.model.numbers import Samples
    from jaxgate.model.verdict import Verdict


class ReplayTimer:
    """A timer for one test that returns recorded times, in seconds, start and end in turn."""

    __name__ = "jaxgate.replay"  # pytest-benchmark prints it

    def __init__(self) -> None:
        self._ticks: Iterator[float] = iter(())

    def load(self, samples: Samples) -> None:
        """Replay these bursts from now on."""
        self._ticks = iter([tick for burst_ns in samples.bursts_ns for tick in (0.0, burst_ns / 1e9)])

    def __call__(self) -> float:
        """Return the next tick.

        Raises:
            RuntimeError: If asked for more than was recorded.
        """
        try:
            return next(self._ticks)
        except StopIteration:
            raise RuntimeError("pytest-benchmark asked for more samples than were recorded") from None


_TIMER = pytest.StashKey[ReplayTimer]()


def why_not_here(config: pytest.Config) -> str:
    """Why no gate can have a row; empty if it can."""
    if hasattr(config, "_benchmarksession"):
        return ""
    return (
        "expected the plugin pytest-benchmark, whose fixture `benchmark` a gate fills, found it switched off; leave out "
        "`-p no:benchmark`, or the gates: -m 'not perf'"
    )


def install(item: pytest.Item) -> None:
    """Give a test that gates its replaying timer, keeping whatever else its ``benchmark`` marker says."""
    if _TIMER in item.stash or why_not_here(item.config):
        return
    names: list[str] = item.fixturenames  # type: ignore[attr-defined]  # of all items that have fixtures
    if "benchmark" not in names:  # what --benchmark-skip and --benchmark-only look for
        names.append("benchmark")
    timer = ReplayTimer()
    item.stash[_TIMER] = timer
    marker = item.get_closest_marker("benchmark")
    options = dict(marker.kwargs) if marker else {}
    item.add_marker(pytest.mark.benchmark(**{**options, "timer": timer}), append=False)
    # A case that fails before it is sampled leaves its row empty; the verdict says why, a warning adds nothing.
    item.add_marker(pytest.mark.filterwarnings("ignore:Benchmark fixture was not used at all"))


def another_row(benchmark: Any, name: str) -> Any:
    """The row of a further gate in a test, whose fixture fills one only."""
    other = copy.copy(benchmark)
    other.name, other.fullname = f"{benchmark.name}::{name}", f"{benchmark.fullname}::{name}"
    other.group, other.extra_info, other.stats, other._mode = None, {}, None, None  # noqa: SLF001 - the module says why
    return other


def replay(item: pytest.Item, benchmark: Any, samples: Samples | None) -> None:
    """Fill the row of a test. Without samples (``--benchmark-disable``) the fixture is only marked as used."""
    rounds = iterations = 1
    if samples is not None:
        item.stash[_TIMER].load(samples)
        rounds, iterations = len(samples.bursts_ns), samples.calls_per_burst
    if samples is None and benchmark.enabled:
        return
    benchmark.pedantic(_nothing, rounds=rounds, iterations=iterations)


def _nothing() -> None:
    """What pytest-benchmark calls while the timer replays."""


def row_of(verdict: Verdict, measurement: Measurement) -> dict[str, Any]:
    """What a row says of a case: its verdict so far, with all facts and phases, throughput and energy where they are known."""
    from jaxgate.ext.energy.model import Energy  # noqa: PLC0415 - what only gates need
    from jaxgate.model.chips import utilisation  # noqa: PLC0415 - likewise

    samples, amount, energy = measurement.samples, measurement.amount, verdict.cost.energy
    row: dict[str, Any] = {
        "case": verdict.case,
        "verdict": str(verdict.status),
        "hardware": measurement.hardware.slug,
        "program": measurement.fingerprints.program,
        "analytic_flops": measurement.analytic_flops,
    }
    if samples is not None:
        row |= {"contract": samples.contract, "p50_ns": samples.percentile_ns(50), "p99_ns": samples.percentile_ns(99)}
    if samples is not None and amount is not None and samples.run_ns > 0:
        per_second = amount.count * 1e9 / samples.run_ns
        row |= {"unit": amount.unit, "per_second": per_second}
        if amount.bus_factor is not None:
            row["bus_per_second"] = per_second * amount.bus_factor
    if isinstance(energy, Energy):
        row |= {"call_uj": energy.call_uj, "energy_resolution": energy.resolution, "idle_watts": energy.idle_watts}
        if verdict.cost.amount is not None:
            row["per_joule"] = energy.per_joule(verdict.cost.amount)
    return {**row, "mfu": utilisation(measurement), **asdict(measurement.facts), **asdict(measurement.phases)}


_FEW = ["median", "iqr", "rounds"]
"""Columns of a table of gates: the usual ten take 120 characters beside the name."""


def keep_narrow(config: pytest.Config, gates: Collection[str]) -> None:
    """Show three columns where all rows are those of gates, but with `-v`, and where somebody chose others."""
    session: Any = getattr(config, "_benchmarksession", None)
    if session is None or config.option.verbose > 0 or config.getoption("benchmark_columns"):
        return
    if all(row.fullname in gates or row.fullname.rpartition("::")[0] in gates for row in session.benchmarks):
        session.columns = list(_FEW)


_PLAIN = (str, int, float, bool, type(None))


def switched_off(config: pytest.Config) -> bool:
    """Whether the user, and not pytest-xdist, switched the clock off."""
    return bool(config.getoption("benchmark_disable", False)) and not config.getoption("benchmark_enable", False)


def switch_on(benchmark: Any, config: pytest.Config) -> None:
    """Let the fixture of one test keep its row in a worker."""
    benchmark.disabled = switched_off(config)


def leave_to_controller(config: pytest.Config) -> None:
    """Save nothing from a worker, and warn only of plain benchmarks, which stay switched off."""
    session: Any = getattr(config, "_benchmarksession", SimpleNamespace())
    session.json = session.save = session.autosave = None


def warn_only_of(plain: bool, config: pytest.Config) -> None:  # noqa: FBT001 - a word for a setter
    """Say that benchmarks are switched off only where a test has a plain one; before 5.3 they say it in any case."""
    session: Any = getattr(config, "_benchmarksession", SimpleNamespace())
    session.xdist_benchmark_found = getattr(session, "xdist_benchmark_found", False) and plain


def rows_since(config: pytest.Config, mark: int) -> list[Any]:
    """The rows that this process filled after its first ``mark`` rows, fit to travel."""
    return [_portable(row) for row in config._benchmarksession.benchmarks[mark:]]  # type: ignore[attr-defined]  # noqa: SLF001 - see above


def add_rows(config: pytest.Config, rows: list[Any]) -> None:
    """Take rows that were filled elsewhere; the last one of a test counts."""
    kept: list[Any] = config._benchmarksession.benchmarks  # type: ignore[attr-defined]  # noqa: SLF001 - see above
    for row in rows:
        kept[:] = [other for other in kept if other.fullname != row.fullname]
        kept.append(row)


def _portable(row: Any) -> Any:
    """A row without what binds it to its process: the fixture, timers, and parameters that are no plain values."""
    other = copy.copy(row)
    other.fixture = SimpleNamespace(has_error=row.has_error)
    other.options = {
        name: value if isinstance(value, (*_PLAIN, Decimal)) else str(value) for name, value in row.options.items()
    }
    if row.params is not None:  # as its JSON shows them
        other.params = {
            name: value if isinstance(value, _PLAIN) else f"UNSERIALIZABLE[{value!r}]"
            for name, value in row.params.items()
        }
    return other
