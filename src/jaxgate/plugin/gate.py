"""The ``gate`` fixture's object: measure one case as this machine runs it, judge it, show it, fail the test if it must."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn

import pytest

from jaxgate.engine.judge_case import JudgedCase, judge_case
from jaxgate.engine.run.session import GateSession
from jaxgate.ext.targets.gate import compiler_of, leave_out, parse_targets
from jaxgate.ext.targets.model import Target
from jaxgate.judge.order import severest
from jaxgate.judge.verdict import judge_invalid
from jaxgate.keep.strict import CorruptBaselineError
from jaxgate.model.baseline import Baseline
from jaxgate.model.claim import Claim, split_claims
from jaxgate.model.computation import Batch
from jaxgate.model.decision import UNMEASURED
from jaxgate.model.machine import HardwareKey
from jaxgate.model.measurement import InvalidCaseError, Measurement
from jaxgate.model.numbers import Samples
from jaxgate.model.verdict import Verdict
from jaxgate.model.workload import Case, Cost, Tolerance
from jaxgate.observe.arguments.carry import Names
from jaxgate.observe.arguments.function_case import case_of_function
from jaxgate.observe.errors import NotOnTargetError
from jaxgate.observe.machine.jax_settings import all_settings, settings_of
from jaxgate.observe.machine.virtual_devices import devices_here, usual_size
from jaxgate.observe.measure import observe
from jaxgate.observe.observation import Observation
from jaxgate.observe.tools import Tools
from jaxgate.plugin.benchmark_rows import another_row, replay, row_of
from jaxgate.plugin.gate_arguments import known_options, refuse_other_kinds, usage_errors
from jaxgate.plugin.reports import Capturing, GatedTest, hold
from jaxgate.report.case_page import report_sections
from jaxgate.report.results import verdict_properties
from jaxgate.report.text import in_short
from jaxgate.settings import CPU_DEVICES, Size


def fit(case: Case, size: Size | None, target: Target | None = None) -> Case:
    """The case as this machine runs it, or compiles it: in the size asked for, or the usual one of its hardware.

    Raises:
        NotOnTargetError: If it needs more devices than the target has, or its size says nothing of a target.
        pytest.skip.Exception: If it needs more than this accelerator machine has.
        pytest.fail.Exception: If it needs more than there are on CPU, where any number can be had.
    """
    platform, count = devices_here()
    if target is not None and case.devices > target.devices:
        raise NotOnTargetError(f"it needs {case.devices} devices, {target} has {target.devices}")
    if case.devices > count:
        text = f"`{case.name}` needs {case.devices} devices, found {count} ({platform})"
        if platform != "cpu":
            pytest.skip(text)
        pytest.fail(
            f"{text}\nexpected perf_cpu_devices = {case.devices} or more in pytest's configuration ({CPU_DEVICES}), "
            "which divides the CPU into virtual devices",
            pytrace=False,
        )
    usual = usual_size()
    chosen = size or usual
    if target is not None and case.target_sizes and chosen not in case.target_sizes:
        others = " or ".join(f"--perf-size={one}" for one in case.target_sizes)
        raise NotOnTargetError(f"in size {chosen} it says nothing of hardware that is not there; {others} does")
    return case.sized(chosen, usual=usual)


def _refuse_platform(hardware: HardwareKey) -> None:
    """Refuse a case that ran elsewhere than on the platform that JAX uses here: baselines of the other one would pass it."""
    wanted, _ = devices_here()
    if hardware.platform != wanted:
        raise InvalidCaseError(
            "looking at the devices",
            f"expected the case to run on {wanted}, which JAX uses here, found {hardware.platform}: an argument is "
            "committed to a device there, or a default device is set",
        )


class Gate:
    """Call it in a test, with one of the suite's cases or with any function and its arguments; several times with names.

    Attributes:
        test: What came of its calls.
    """

    def __init__(self, item: pytest.Item, benchmark: Any, session: GateSession) -> None:
        self._item = item
        self._benchmark = benchmark
        self._session = session
        self.test = GatedTest(item)
        self._compiler = session.compiler
        self._in_catalogue = False
        self._cost = Cost(unchanged_s=0.0, duel_s=None)

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
        targets: Sequence[str] = (),
        **options: Any,
    ) -> Verdict:
        """Gate a case, or a function called with these arguments.

        Args:
            subject: A ``Case`` of a catalogue, or a function: jitted, or one that ``jax.jit`` can trace, or any with
                ``eager=True``.
            args: Positional arguments of the function. The caller's arrays are never consumed; where
                ``jax.ShapeDtypeStruct`` stands for one, the function is compiled and never called.
            kwargs: Keyword arguments of the function.
            donate: Arguments of a plain function to donate, by name or position; threaded from the result
                where it holds something of their shape, else copied outside the clock.
            carry: Arguments that the next step takes from the result.
            reference: The naive way to compute the same; called with the same arguments.
            claims: What must hold between the two on any hardware.
            batch: Which argument carries the samples; checked to be processed in full.
            name: Name of the case instead of the test's: ``sentence`` or ``family/sentence``. With names a test may have
                several gates: one that is red lets the others be judged, and the test fails at its end.
            tolerances: Facts that may move further, or less far, than ``docs/policy.md`` says, each with its reason.
            targets: Hardware that is not there, ``tpu:v5e:2x4``. The function is compiled for each and never called, by a
                case with the target in its name; on the hardware of the run it is not gated.
            options: Claims as keywords: ``max_temp_bytes=2_000_000``, ``exact_collectives=1``, ``min_aliased_bytes=…``,
                ``uses="cudnn"`` for a library routine that the program must call;
                and further fields of ``Computation``: ``expected_traces``, ``analytic_flops``, ``next_args``,
                ``contract``, ``rtol``, ``atol``; with ``eager=True`` ``requests``, the arguments of calls that follow, none of
                which may compile; ``grow=Growth(at, layers=[2, 4, 8])`` for laws of growth; ``eager=True`` for plain Python around jitted calls, called as it is.

        Returns:
            The verdict, if the test goes on. One that only the clock makes red waits for the end of the session,
            where fresh processes confirm it or not.

        Raises:
            pytest.fail.Exception: If the verdict fails the test and the gate has no name, or the arguments do not fit
                together; its text says why.
        """
        if isinstance(subject, Case):
            with usage_errors():
                extra = [args, kwargs, donate, carry, reference, claims, tolerances, batch, name, targets, options]
                if any(extra):
                    raise TypeError("a case brings its own arguments and claims; expected gate(case) alone")
                self._begin(None)
            self._in_catalogue = True
            return self._gate(self._fitted(subject), subject.names)
        with usage_errors():
            chosen = parse_targets(targets)
            refuse_other_kinds(
                subject=subject,
                kwargs=kwargs,
                reference=reference,
                claims=claims,
                tolerances=tolerances,
                batch=batch,
                name=name,
            )
            stated, options = split_claims(options)
            case = case_of_function(
                subject,
                args,
                name=self._session.names.of(self._item.nodeid, name),
                kwargs=kwargs or {},
                donate=donate,
                carry=carry,
                reference=reference,
                claims=(*claims, *stated),
                tolerances=tolerances,
                batch=batch,
                options=known_options(options),
            )
        self._in_catalogue = False
        if chosen:
            return self._on_targets(case, chosen, name)
        with usage_errors():
            self._begin(name)
        return self._gate(case, case.names)

    def _on_targets(self, case: Case, targets: Sequence[Target], name: str | None) -> Verdict:
        """Gate a case for each of these targets; gives the severest verdict. Of several a red one lets the others be judged."""
        verdicts = []
        for target in targets:
            self._compiler = compiler_of(self._session, target, self._item.nodeid)
            one = case.on(self._compiler.target)
            with usage_errors():
                self._begin(name if len(targets) == 1 else one.sentence)
            verdicts.append(self._gate(one, one.names))
        self._compiler = self._session.compiler
        worst = severest(verdict.status for verdict in verdicts)
        return next(verdict for verdict in verdicts if verdict.status is worst)

    def _begin(self, name: str | None) -> None:
        if self.test.used:
            self._benchmark = another_row(self._benchmark, str(name))
        self.test.begin(name)

    def _gate(self, case: Case, names: Sequence[str]) -> Verdict:
        """Gate one case, which has these names on other hardware or in other sizes."""
        self._take_names(case.name, names)
        return self._end(*self._judge(case))

    def _take_names(self, case: str, names: Sequence[str]) -> None:
        with usage_errors():
            self.test.take_name(case)
        for each in names:
            problem = self._session.result.add_name(each, self._item.nodeid)
            if problem:
                pytest.fail(problem, pytrace=False)

    def judge_by(
        self,
        name: str | None,
        judge: Callable[[GateSession, str, Callable[[str], None]], tuple[Verdict, Samples | None]],
    ) -> Verdict:
        """Gate a training loop or the start of a job: the verdict is recorded, shown, and fails the test as a case's does.

        ``judge`` gives the verdict of the case with this name, and times for its row, if there are any.
        """
        with usage_errors():
            self._begin(name)
            case = "/".join(self._session.names.of(self._item.nodeid, name))
        self._take_names(case, (case,))
        try:
            with self._session.progress(case) as progress:
                verdict, samples = judge(self._session, case, progress)
        except InvalidCaseError as error:
            return self._end(self._invalid(case, error), None)
        if self._benchmark.group is None:
            self._benchmark.group = case.partition("/")[0]
        replay(self._item, self._benchmark, samples)
        return self._end(JudgedCase(verdict=verdict, is_final=True), None)

    def _invalid(self, case: str, error: InvalidCaseError) -> JudgedCase:
        if error.__cause__ is not None:
            text = "".join(traceback.format_exception(error.__cause__))
            self._item.add_report_section("call", "jaxgate: where it was raised", text)
        return JudgedCase(verdict=judge_invalid(case, error), is_final=True)

    def end_test(self, error: BaseException | None) -> None:
        """Fail the test at its end for what its named gates found; note one that may have more cases than it came to.

        ``error`` is what ended the test's function, if anything did.

        Raises:
            pytest.fail.Exception: If one of them is red; the text has all that are.
        """
        if error is not None and self.test.named:
            self._session.result.unfinished.append(self._item.nodeid)
        self.test.end(error)

    def _end(self, judged: JudgedCase, observed: Observation | None) -> Verdict:
        """Record a verdict, so that it is printed; if it is not green, let it fail the test or wait for confirmation.

        Raises:
            pytest.fail.Exception: If the verdict fails the test; its text says why.
        """
        verdict, result = judged.verdict, self._session.result
        capture = self._capture_of(judged, observed)
        provisional = judged.provisional(strict=self._session.strict)
        del judged, observed
        if provisional is None:
            try:
                with self._session.progress(verdict.case) as progress:
                    verdict = capture(verdict, progress)
            except BaseException:  # Ctrl-C: the verdict is final all the same
                result.verdicts.append(verdict)
                raise
            del capture  # a test that fails keeps this frame, and the next case has the memory to itself
        for title, text in report_sections(verdict) if verdict.fails else ():
            self._item.add_report_section("call", title, text)
        if provisional is not None:
            result.provisional[verdict.case] = provisional
            hold(self.test, verdict.case, capture, self._benchmark.extra_info)
            return verdict
        result.verdicts.append(verdict)
        self._item.user_properties += verdict_properties(verdict)
        self.test.verdicts.append(verdict)
        if verdict.fails:
            self.test.fail(verdict.case, self._explain(verdict))
        return verdict

    def _explain(self, verdict: Verdict) -> str:
        if verdict.fails:
            return self._session.explain(verdict, self._item.nodeid)
        return f"{verdict.status}  {verdict.case}  {in_short(verdict)}"

    def _capture_of(self, judged: JudgedCase, observed: Observation | None) -> Capturing:
        """What profiles a case once its verdict is final, under the JAX settings of its test.

        It holds arrays only of a case that it will profile: one that waits does so while all later cases are measured.
        """
        now, evidence = None if observed is None else observed.measurement, self._session.evidence
        red = replace(judged.verdict, fails=True)
        may = evidence.wants(red) and not evidence.why_not_profiled(red)
        held, opponent = (observed, judged.opponent) if may else (None, None)
        record, there = judged.stored_here, all_settings()

        def capture(final: Verdict, progress: Callable[[str], None]) -> Verdict:
            with settings_of(there):
                return evidence.take(
                    final, held, record, explain=self._explain, opponent=opponent, now=now, progress=progress
                )

        return capture

    def _judge(self, case: Case) -> tuple[JudgedCase, Observation | None]:
        begin = time.perf_counter_ns()
        try:
            with self._session.progress(case.name) as progress:
                observed = self._observe(case, progress)
                measurement = observed.measurement
                self._session.result.bring(case, measurement.unknown)
                # a function of the user's may be meant for the CPU of any machine
                if self._in_catalogue and not measurement.hardware.target:
                    _refuse_platform(measurement.hardware)
                judged = judge_case(self._session, case, observed, test=self._item.nodeid, progress=progress)
        except InvalidCaseError as error:
            return self._invalid(case.name, error), None
        verdict, duel_ns = judged.verdict, judged.on_baseline_ns
        self._fill_row(case, measurement, verdict)
        settled = (
            verdict.status not in UNMEASURED and not verdict.baseline.recorded and not self._session.settings.elsewhere
        )
        if measurement.samples is not None and settled:
            opinion_s = 0.0 if verdict.opinion is None else verdict.opinion.seconds  # an unchanged case pays for none
            self._cost += Cost(
                unchanged_s=(time.perf_counter_ns() - begin - duel_ns) / 1e9 - opinion_s,
                duel_s=duel_ns / 1e9 if verdict.time.decision is not None else None,
            )
            self._session.result.costs[self._item.nodeid] = self._cost
        return judged, observed

    def _observe(self, case: Case, progress: Callable[[str], None]) -> Observation:
        try:
            return observe(
                case.build,
                Tools(
                    store=self._session.references,
                    progress=progress,
                    sampling=self._benchmark.enabled,
                    accepted=partial(self._accepted, case.name),
                    recording=self._session.settings.records_anew,
                    target=self._compiler,
                    meters=self._session.meters,
                ),
            )
        except NotOnTargetError as error:
            self._leave_out(case, error)

    def _accepted(self, name: str, hardware: HardwareKey) -> Baseline | None:
        """The baseline of a case; ``None`` if it cannot be read, which is reported where the case is judged."""
        try:
            stored = self._session.store.load(hardware, name)
        except CorruptBaselineError:
            return None
        return None if stored is None else stored.baseline

    def _fitted(self, case: Case) -> Case:
        try:
            return fit(case, self._session.settings.size, self._session.target)
        except NotOnTargetError as error:
            self._leave_out(case, error)

    def _leave_out(self, case: Case, why: NotOnTargetError) -> NoReturn:
        assert self._compiler is not None, why  # nothing else raises it
        leave_out(self._session, self._compiler, case.name, self._item.nodeid, why)

    def _fill_row(self, case: Case, measurement: Measurement, verdict: Verdict) -> None:
        if self._benchmark.group is None:
            self._benchmark.group = case.family
        self._benchmark.extra_info.update(row_of(verdict, measurement))
        samples = measurement.samples
        self._session.evidence.note(case.name, self._benchmark.extra_info, None if samples is None else samples.run_ns)
        replay(self._item, self._benchmark, samples)
