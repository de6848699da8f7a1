"""Who is asked for a second opinion on a result: cases without a reference, where the compiler may have made something new."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from jaxgate.engine.instruments import Instruments
from jaxgate.ext.opinion.ask import Question
from jaxgate.ext.opinion.model import SWITCHED_OFF, Opinion, WrongResultError
from jaxgate.judge.difference import Difference
from jaxgate.observe.observation import Observation
from jaxgate.settings import Settings, Update


def is_compiled_anew(difference: Difference) -> bool:
    """Whether today's executable may differ from the one of the baseline: then its results are worth a second opinion."""
    ours, theirs = difference.now.fingerprints, difference.baseline.fingerprints
    if ours.executable is not None and ours.executable == theirs.executable and ours.options == theirs.options:
        return False
    same = (
        difference.same_program,
        ours.options == theirs.options,
        difference.same_hardware,
        difference.same_devices,
        difference.executable_is_explained,
        not difference.changed_environment,
    )
    return not all(same)


class SecondOpinions:
    """Asks for second opinions in one run."""

    def __init__(self, settings: Settings, instruments: Instruments) -> None:
        self._limit_s = settings.opinion_s
        self._for_another = bool(settings.other_side or settings.as_measured)
        self._reviews = settings.update is Update.REVIEW
        self._instruments = instruments
        self._interpreter = instruments.open_interpreter()

    def ask(
        self,
        observed: Observation,
        difference: Difference | None,
        *,
        recording: bool,
        same_executable: bool,
        progress: Callable[[str], None],
    ) -> Opinion | None:
        """Ask about the result of a case that is recorded, or was compiled to something new.

        Returns:
            What came of it; ``None`` where nobody is to be asked: it is the baseline's program, or its reference agrees.

        Raises:
            WrongResultError: If the two differ by more than float error.
        """
        if self._for_another or observed.measurement.reference is not None:
            return None
        new = difference is None and self._reviews
        anew = difference is not None and not same_executable and is_compiled_anew(difference)
        if not (recording or new or anew):
            return None
        why_not = self._why_not(observed)
        if why_not:
            return Opinion(why_not=why_not)
        progress("checking the result")
        begin = self._instruments.clock()
        found = self._instruments.second_opinion(
            _question(observed), self._interpreter.interpret, limit_s=self._limit_s
        )
        found = replace(found, seconds=(self._instruments.clock() - begin) / 1e9)
        if found.wrong:
            raise WrongResultError(found)
        return found

    def close(self) -> None:
        """End the interpreter's process."""
        self._interpreter.close()

    def _why_not(self, observed: Observation) -> str:
        """Why nobody can be asked about a case; empty if somebody can."""
        now = observed.measurement
        if not self._limit_s:
            return SWITCHED_OFF
        if now.why_not_called:
            return now.why_not_called
        if observed.lowered is None:
            return "plain Python around jitted calls is not one program"
        if now.processes > 1:
            return "it runs on several processes"
        if now.facts.host_callbacks and not now.only_raises:
            return "its program calls Python, and would do so once more"
        return ""


def _question(observed: Observation) -> Question:
    assert observed.lowered is not None
    return Question(
        lowered=observed.lowered,
        call=observed.call,
        result=observed.result,
        executable=observed.executable or observed.lowered.stage.compile(),
        compile_ns=observed.measurement.phases.compile_ns,
        platform=observed.measurement.hardware.platform,
    )
