"""What a gate does under ``--perf-calibrate``: the gate itself is measured, and nothing is judged."""

from __future__ import annotations

from jaxgate.engine.calibration import calibrate
from jaxgate.engine.run.session import GateSession
from jaxgate.model import Case, InvalidCaseError, Verdict
from jaxgate.observe.errors import describe
from jaxgate.observe.measure import observe
from jaxgate.plugin.gated_test import GatedTest, nothing_decided


def calibrate_case(session: GateSession, case: Case, test: GatedTest) -> Verdict:
    """Duel a case with itself; the verdict is that nothing was decided.

    Raises:
        pytest.fail.Exception: If it could not be, and that fails the test at once.
    """
    calibrated, hardware = session.result.calibrated, None
    try:
        with session.progress(case.name) as progress:
            observed = observe(case.build, store=session.references, progress=progress, sampling=False)
            hardware = observed.measurement.hardware
            row = calibrate(
                case.name,
                observed,
                duels=session.settings.calibrate,
                progress=progress,
                instruments=session.instruments,
            )
    except InvalidCaseError as error:
        calibrated.failed[case.name] = str(error)
        test.fail(case.name, f"{case.name} could not be calibrated: {error}")
    except Exception as error:
        calibrated.failed[case.name] = describe(error)
        raise
    else:
        calibrated.add(row, observed.measurement.environment)
    return nothing_decided(case.name, hardware, "calibrating")
