"""The gate of a calibration: it duels its case with itself, and decides nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import pytest

from ci.calibrate.duels import calibrate
from ci.calibrate.plugin import Calibration
from jaxgate.ext.targets.model import Target
from jaxgate.model.decision import Status
from jaxgate.model.measurement import InvalidCaseError
from jaxgate.model.verdict import TimeVerdict, Verdict
from jaxgate.model.workload import Case
from jaxgate.observe.errors import describe
from jaxgate.observe.measure import observe
from jaxgate.observe.tools import Tools
from jaxgate.plugin.gate import Gate


class CalibratingGate(Gate):
    """A gate that lets each case duel with itself, and puts the outcome into ``found``."""

    def __init__(self, *given: Any, found: Calibration, duels: int) -> None:
        super().__init__(*given)
        self._found, self._duels = found, duels

    def _on_targets(self, case: Case, targets: Sequence[Target], name: str | None) -> NoReturn:
        del case, name
        pytest.skip(f"a calibration calls the cases, and this one is compiled for {targets[0]} alone")

    def _gate(self, case: Case, names: Sequence[str]) -> Verdict:
        """Duel a case with itself.

        Raises:
            pytest.fail.Exception: If it could not be, and that fails the test at once.
        """
        del names
        self.test.take_name(case.name)
        session, hardware = self._session, None
        try:
            with session.progress(case.name) as progress:
                observed = observe(case.build, Tools(store=session.references, progress=progress, sampling=False))
                hardware = observed.measurement.hardware
                row = calibrate(
                    case.name, observed, duels=self._duels, progress=progress, instruments=session.instruments
                )
        except InvalidCaseError as error:
            self._found.failed[case.name] = str(error)
            self.test.fail(case.name, f"{case.name} could not be calibrated: {error}")
        except Exception as error:
            self._found.failed[case.name] = describe(error)
            raise
        else:
            self._found.cases.append(row)
            self._found.environments[row.hardware] = observed.measurement.environment
        time = TimeVerdict(status=Status.UNDECIDED, reason="calibrating")
        return Verdict(case=case.name, hardware=hardware, status=Status.UNDECIDED, fails=False, findings=(), time=time)
