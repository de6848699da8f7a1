"""Four rules for "is it slower?", side by side on the same samples.

Usage: python ci/rules.py [DUELS]   (default 30 for each case; about 2 s a duel on a 2-core CPU)

Runs duels of identical programs on the suite's own cases and asks each rule whether one side is slower: as it
is (a false alarm), and with today's times multiplied by 1.05, 1.10 and 1.20 (power). Every rule sees the same
60 + 60 times. "stored" holds today's side against the other side of the run before, "together" against the
other side of the same run. Prints a Markdown table. Exit status 0; it judges rules, not programs.

The rules: pytest-benchmark's ``--benchmark-compare-fail=median:5%``; Mann-Whitney at p < 0.05, as benchstat and
google/benchmark use it; asv's p < 0.002 and a factor of 1.1; jaxgate's duel (``judge/timing/duel.py``).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median

from scipy.stats import mannwhitneyu

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from jaxgate.judge.timing.duel import LOOKS, decide_at_looks, scaled
from jaxgate.keep.cache import ReferenceCache
from jaxgate.model.decision import Status
from jaxgate.model.duel import Duel
from jaxgate.model.workload import Case
from jaxgate.observe.duel.duel import prepare, run_duel
from jaxgate.observe.measure import observe
from workloads import donation
from workloads.scan import rnn

PLANTS = (1.0, 1.05, 1.10, 1.20)
Rule = Callable[[Sequence[float], Sequence[float]], bool]


def compare_fail(now: Sequence[float], other: Sequence[float]) -> bool:
    """pytest-benchmark: the median is more than 5 % above the other one."""
    return median(now) > 1.05 * median(other)


def mann_whitney(now: Sequence[float], other: Sequence[float]) -> bool:
    """benchstat: the two samples differ at p < 0.05, and the median went up."""
    return median(now) > median(other) and mannwhitneyu(now, other).pvalue < 0.05  # noqa: PLR2004 - its published level


def asv(now: Sequence[float], other: Sequence[float]) -> bool:
    """asv: p < 0.002, and a factor of 1.1."""
    return median(now) > 1.1 * median(other) and mannwhitneyu(now, other).pvalue < 0.002  # noqa: PLR2004 - likewise


RULES: dict[str, Rule] = {"median more than 5 % up": compare_fail, "Mann-Whitney p < 0.05": mann_whitney, "asv": asv}


def run_duels(case: Case, count: int) -> list[Duel]:
    """Duels of a case's program with itself, all pairs."""
    observed = observe(case.build, store=ReferenceCache(None), sampling=False)
    program, leaves = observed.export(), observed.leaves()
    sides = [prepare(program, leaves) for _ in range(2)]
    return [
        run_duel(
            *sides,
            settled=lambda _: False,
            max_pairs=max(LOOKS),
            platform=observed.measurement.hardware.platform,
        )
        for _ in range(count)
    ]


def halves(side: Sequence[Sequence[int]]) -> list[float]:
    """One time for each half-round: the least of its bursts."""
    return [float(min(bursts)) for bursts in side]


def shares(runs: Sequence[Sequence[Duel]]) -> dict[str, list[float]]:
    """For each rule, the share of duels that it calls slower, by planted factor."""
    found: dict[str, list[float]] = {}
    for plant in PLANTS:
        for name, rule in RULES.items():
            stored, together = [], []
            for duels in runs:
                for before, duel in pairwise(duels):
                    now = halves(scaled(duel, plant).now_ns)
                    stored.append(rule(now, halves(before.baseline_ns)))
                    together.append(rule(now, halves(duel.baseline_ns)))
            found.setdefault(f"{name}, stored", []).append(sum(stored) / len(stored))
            found.setdefault(f"{name}, together", []).append(sum(together) / len(together))
        ours = [decide_at_looks(scaled(duel, plant)).status is Status.SLOWER for duels in runs for duel in duels[1:]]
        found.setdefault("jaxgate, first stage", []).append(sum(ours) / len(ours))
    return found


def main(count: int) -> None:
    """Run the duels and print the table."""
    chosen = [case for case in (*donation.CASES, *rnn.CASES) if "256" not in case.sentence]
    runs = []
    for case in chosen:
        print(f"{case.name}: {count} duels", file=sys.stderr)
        runs.append(run_duels(case, count + 1))
    print("| rule | false alarms | sees +5 % | sees +10 % | sees +20 % |\n|---|---|---|---|---|")
    for name, values in shares(runs).items():
        print(f"| {name} | " + " | ".join(f"{value:.0%}" for value in values) + " |")
    print(f"\n{len(chosen)} cases, {count} duels of identical programs each.")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 30)
