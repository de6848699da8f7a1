"""The gate's error rates, measured: each selected case duels with itself, many times."""

from __future__ import annotations

import time
from collections.abc import Callable

from jaxgate.judge.calibration import calibrate_case
from jaxgate.judge.duel import LOOKS, decide_at_looks
from jaxgate.model import Duel, InvalidCaseError, Status
from jaxgate.model.calibration import CaseCalibration
from jaxgate.observe.duelling import prepare, run_duel
from jaxgate.observe.exporting import NotReplayableError
from jaxgate.observe.measure import Observed
from jaxgate.plugin.confirm import PROCESSES, launch
from jaxgate.plugin.timing import Rematch


def calibrate(case: str, observed: Observed, *, duels: int, progress: Callable[[str], None]) -> CaseCalibration:
    """Run duels of a program with itself, and repeat each false alarm in fresh processes.

    Raises:
        InvalidCaseError: If the program cannot be run again.
    """
    program = observed.export()
    platform = observed.measurement.hardware.platform
    found: list[Duel] = []
    took_s: list[float] = []
    confirmed = 0
    try:
        leaves = observed.leaves()
        now, baseline = (prepare(program, leaves, observed.contract) for _ in range(2))
        for number in range(1, duels + 1):
            progress("sampling")  # stop whatever tells of the last stage
            begin = time.perf_counter()
            duel = run_duel(
                now,
                baseline,
                settled=lambda _: False,
                max_pairs=max(LOOKS),
                platform=platform,
            )
            took_s.append(time.perf_counter() - begin)
            found.append(duel)
            if decide_at_looks(duel).status is Status.SLOWER:
                progress(f"repeating the false alarm of duel {number} in fresh processes")
                confirmed += _comes_again(Rematch(program, program, leaves, platform, observed.contract))
    except NotReplayableError as error:
        raise InvalidCaseError("calibrating", str(error)) from error
    return calibrate_case(case, found, confirmed=confirmed, duel_s=took_s)


def _comes_again(rematch: Rematch) -> bool:
    for _ in range(PROCESSES):
        outcome = launch(rematch)
        if outcome.case is not None and outcome.case.status is not Status.SLOWER:
            return False
    return True  # a process that failed counts as one that agreed: the rate is never understated
