"""The ``gate`` fixture's object: measure one case, judge it, show it, fail the test if it must."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import pytest

from jaxgate.judge import judge_invalid
from jaxgate.model import (
    Batch,
    Case,
    Claim,
    Computation,
    InvalidCaseError,
    Measurement,
    Record,
    Status,
    TimeVerdict,
    Tolerance,
    Verdict,
    utilisation,
)
from jaxgate.model.cost import Cost
from jaxgate.observe.failures import describe
from jaxgate.observe.measure import observe
from jaxgate.observe.observed import Observed
from jaxgate.observe.placing import all_settings, settings_of
from jaxgate.plugin.calibrate import calibrate
from jaxgate.plugin.confirm import Capturing
from jaxgate.plugin.fitted import fit, refuse_platform
from jaxgate.plugin.functions import Names, case_name, function_case
from jaxgate.plugin.keywords import split_claims
from jaxgate.plugin.peaking import leave_peak
from jaxgate.plugin.replay import replay
from jaxgate.plugin.run import Run
from jaxgate.report.properties import properties
from jaxgate.report.sections import sections
from jaxgate.report.text import explain, in_short

_UNMEASURED = frozenset({Status.INVALID, Status.RESOURCE_EXHAUSTED})


class Gate:
    """Call it once in a test, with one of the suite's cases or with any function and its arguments."""

    def __init__(self, item: pytest.Item, benchmark: Any, run: Run) -> None:
        self._item = item
        self._benchmark = benchmark
        self._run = run
        self.used = False
        self._in_catalogue = False
        self.verdict: Verdict | None = None

    def __call__(
        self,
        subject: Case | Callable[..., Any],
        *args: Any,
        kwargs: Mapping[str, Any] | None = None,
        donate: Names | None = None,
        carry: Names | None = None,
        reference: Callable[..., Any] | None = None,
        claims: Sequence[Claim] = (),
        tolerances: Sequence[Tolerance] = (),
        batch: Batch | None = None,
        name: str | None = None,
        **options: Any,
    ) -> Verdict:
        """Gate a case, or a function called with these arguments.

        Args:
            subject: A ``Case`` of a catalogue, or a function: jitted, or one that ``jax.jit`` can trace, or any with
                ``host=True``.
            args: Positional arguments of the function. The caller's arrays are never consumed.
            kwargs: Keyword arguments of the function.
            donate: Arguments of a plain function to donate, by name or position; threaded from the result
                where it holds something of their shape, else copied outside the clock.
            carry: Arguments that the next step takes from the result.
            reference: The naive way to compute the same; called with the same arguments.
            claims: What must hold between the two on any hardware.
            batch: Which argument carries the samples; checked to be processed in full.
            name: Name of the case instead of the test's: ``sentence`` or ``family/sentence``.
            tolerances: Facts that may move further, or less far, than ``docs/policy.md`` says, each with its reason.
            options: Claims as keywords: ``max_temp_bytes=2_000_000``, ``exact_collectives=1``, ``min_aliased_bytes=…``;
                and further fields of ``Computation``: ``expected_traces``, ``analytic_flops``, ``next_args``,
                ``contract``, ``rtol``, ``atol``; ``host=True`` for plain Python around jitted calls, called as it is.

        Returns:
            The verdict, if the test goes on. One that only the clock makes red waits for the end of the session,
            where fresh processes confirm it or not.

        Raises:
            pytest.fail.Exception: If the verdict fails the test; its text says why.
            TypeError: If the arguments do not fit together.
        """
        if self.used:
            raise TypeError("expected one call of gate in a test, found a second; write a test for each function")
        self.used = True
        self._in_catalogue = isinstance(subject, Case)
        if isinstance(subject, Case):
            extra = [args, kwargs, donate, carry, reference, claims, tolerances, batch, name, options]
            if any(extra):
                raise TypeError("a case brings its own arguments and claims; expected gate(case) alone")
            names, case = subject.names, fit(subject, self._run.settings.size)
        else:
            stated, options = split_claims(options)
            case = function_case(
                subject,
                args,
                name=case_name(self._item.nodeid, name),
                kwargs=kwargs or {},
                donate=donate,
                carry=carry,
                reference=reference,
                claims=(*claims, *stated),
                tolerances=tolerances,
                batch=batch,
                options=_known(options),
            )
            names = case.names
        for each in names:
            self._run.claim_name(each, self._item.nodeid)
        if self._run.settings.peak_into is not None:
            leave_peak(case, self._run.settings.peak_into)
        if self._run.settings.calibrate:
            return self._calibrate(case)
        return self._end(case, *self._judge(case))

    def _end(self, case: Case, verdict: Verdict, observed: Observed | None) -> Verdict:
        """Explain a verdict that is not green, and let it fail the test, or wait for confirmation.

        Raises:
            pytest.fail.Exception: If the verdict fails the test; its text says why.
        """
        capture = self._capture_of(verdict, observed, self._run.records.pop(case.name, None))
        del observed
        suspect = self._run.suspect(verdict, self._benchmark.extra_info)
        if suspect is None:
            try:
                with self._run.progress(case.name) as progress:
                    verdict = capture(verdict, progress)
            except BaseException:  # Ctrl-C: the verdict is final all the same
                self._run.verdicts.append(verdict)
                raise
            del capture  # a test that fails keeps this frame, and the next case has the memory to itself
        self._run.stopwatch.opponent = None
        for title, text in sections(verdict) if verdict.fails else ():
            self._item.add_report_section("call", title, text)
        if suspect is not None:
            self._run.suspects[self._item.nodeid] = replace(suspect, capture=capture)
            return verdict
        self._run.verdicts.append(verdict)
        self._item.user_properties += properties(verdict)
        self.verdict = verdict
        if verdict.fails:
            pytest.fail(self._explain(verdict), pytrace=False)
        return verdict

    def _explain(self, verdict: Verdict) -> str:
        if not verdict.fails:
            return f"{verdict.status}  {verdict.case}  {in_short(verdict)}"
        return explain(verdict, test=self._item.nodeid, elsewhere=self._run.settings.elsewhere)

    def _capture_of(self, verdict: Verdict, observed: Observed | None, record: Record | None) -> Capturing:
        """What profiles a case once its verdict is final, under the JAX settings of its test.

        It holds the case's arrays only where it is going to: a suspect waits while all later cases are measured.
        """
        now, captures = None if observed is None else observed.measurement, self._run.captures
        may = captures.wants(replace(verdict, fails=True)) and not captures.why_not_profiled(
            replace(verdict, fails=True)
        )
        held, there = observed if may else None, all_settings()

        def capture(final: Verdict, progress: Callable[[str], None]) -> Verdict:
            with settings_of(there):
                return captures.take(final, held, record, explain=self._explain, now=now, progress=progress)

        return capture

    def _calibrate(self, case: Case) -> Verdict:
        """Measure the gate instead of the case; the verdict is that nothing was decided."""
        calibrated = self._run.calibrated
        try:
            with self._run.progress(case.name) as progress:
                observed = observe(case.build, store=self._run.references, progress=progress, sampling=False)
                row = calibrate(case.name, observed, duels=self._run.settings.calibrate, progress=progress)
        except InvalidCaseError as error:
            calibrated.failed[case.name] = str(error)
            pytest.fail(f"{case.name} could not be calibrated: {error}", pytrace=False)
        except Exception as error:
            calibrated.failed[case.name] = describe(error)
            raise
        calibrated.add(row, observed.measurement.environment)
        time_verdict = TimeVerdict(status=Status.UNDECIDED, reason="calibrating")
        return Verdict(
            case=case.name,
            hardware=observed.measurement.hardware,
            status=Status.UNDECIDED,
            fails=False,
            findings=(),
            time=time_verdict,
        )

    def _judge(self, case: Case) -> tuple[Verdict, Observed | None]:
        begin = time.perf_counter_ns()
        try:
            with self._run.progress(case.name) as progress:
                observed = self._observe(case, progress)
                measurement = observed.measurement
                if self._in_catalogue:  # a function of the user's may be meant for the CPU of any machine
                    refuse_platform(measurement.hardware)
                engine_ns = time.perf_counter_ns() - begin - _jax_ns(measurement)
                before_ns = self._run.stopwatch.on_baselines_ns
                verdict = self._run.judge(case, observed, test=self._item.nodeid, progress=progress)
                duel_ns = self._run.stopwatch.on_baselines_ns - before_ns
        except InvalidCaseError as error:
            if error.__cause__ is not None:
                text = "".join(traceback.format_exception(error.__cause__))
                self._item.add_report_section("call", "jaxgate: where it was raised", text)
            return judge_invalid(case.name, error), None
        self._fill_row(case, measurement, verdict, engine_ns)
        judged = verdict.status not in _UNMEASURED and not verdict.recorded and not self._run.settings.elsewhere
        if measurement.samples is not None and judged:
            self._run.costs[self._item.nodeid] = Cost(
                unchanged_s=(time.perf_counter_ns() - begin - duel_ns) / 1e9,
                duel_s=duel_ns / 1e9 if verdict.time.decision is not None else None,
            )
        return verdict, observed

    def _observe(self, case: Case, progress: Callable[[str], None]) -> Observed:
        return observe(case.build, store=self._run.references, progress=progress, sampling=self._benchmark.enabled)

    def _fill_row(self, case: Case, measurement: Measurement, verdict: Verdict, engine_ns: int) -> None:
        if self._benchmark.group is None:
            self._benchmark.group = case.family
        self._benchmark.extra_info.update(
            case=case.name,
            verdict=str(verdict.status),
            hardware=measurement.hardware.slug,
            program=measurement.fingerprints.program,
            engine_ns=engine_ns,
            analytic_flops=measurement.analytic_flops,
            **_singles(measurement),
            **_rate(measurement),
            mfu=utilisation(measurement),
            **asdict(measurement.facts),
            **asdict(measurement.phases),
        )
        samples = measurement.samples
        self._run.captures.note(case.name, self._benchmark.extra_info, None if samples is None else samples.run_ns)
        replay(self._item, self._benchmark, samples)


def _singles(measurement: Measurement) -> dict[str, Any]:
    """What the row says of single calls, where there are any."""
    samples = measurement.samples
    if samples is None:
        return {}
    return {
        "contract": samples.contract,
        "p50_ns": samples.percentile_ns(50),
        "p99_ns": samples.percentile_ns(99),
    }


def _rate(measurement: Measurement) -> dict[str, Any]:
    """What the row says of throughput, where the case says what a call gets done."""
    amount, samples = measurement.amount, measurement.samples
    if amount is None or samples is None or samples.run_ns <= 0:
        return {}
    per_second = amount.count * 1e9 / samples.run_ns
    bus = {} if amount.bus_factor is None else {"bus_per_second": per_second * amount.bus_factor}
    return {"unit": amount.unit, "per_second": per_second, **bus}


def _jax_ns(measurement: Measurement) -> int:
    """What tracing, lowering and compiling once takes, of subject and reference; the rest is this engine's cost."""
    subject, reference = measurement.phases, measurement.reference
    parts = [subject.trace_ns, subject.lower_ns, subject.compile_ns]
    if reference is not None:
        parts += [reference.phases.trace_ns, reference.phases.lower_ns]
        parts += [] if reference.cached else [reference.phases.compile_ns]
    return sum(part or 0 for part in parts)


def _known(options: Mapping[str, Any]) -> Mapping[str, Any]:
    known = {"expected_traces", "analytic_flops", "next_args", "contract", "rtol", "atol", "host"}
    allowed = known & set(Computation.__dataclass_fields__)
    unknown = sorted(set(options) - allowed)
    if unknown:
        own = "the function's own keyword arguments go into kwargs={...}"
        raise TypeError(
            f"gate() has no option {', '.join(unknown)}; expected one of: {', '.join(sorted(allowed))}; {own}"
        )
    return options
