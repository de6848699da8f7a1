"""One contrast, from its builders to a table: first whether the sides do the same, then how long their steps take."""

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing import get_context
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import jax
import numpy as np

from jaxgate.judge.claims import are_settled
from jaxgate.judge.timing.duel import LOOKS, decide
from jaxgate.model.decision import Decision, Status
from jaxgate.model.duel import Duel
from jaxgate.observe.duel.duel import run_duel
from jaxgate.observe.machine.load import memory_bytes
from jaxgate.observe.trace.clocks import Clock, uncollected
from jaxgate.report.units import show
from workloads.contrast.contrast import Alone, Contrast, Difference, Training, Traits
from workloads.contrast.judge import claim_of, decide_speed, disagreements, disturbances, needs_another, table, unlike
from workloads.contrast.runners import Opponent, Runner, loading_of, runner_of

WARM_STEPS, BURSTS, BURST_S = 3, 15, 0.1
"""Of a side alone: steps before any counts, how often it is timed, and seconds of steps in a row at least."""


@dataclass(slots=True, kw_only=True)
class Comparison:
    """What a contrast shows."""

    problems: list[str] = field(default_factory=list)  # why it fails: the sides do something else, or a claim is broken
    lines: list[str] = field(
        default_factory=list
    )  # for people: what the sides agree on, their table, what to know of it
    figures: dict[str, Any] = field(default_factory=dict)  # for machines, by side; times in nanoseconds


def compare(
    contrast: Contrast, *, alone: Callable[[str], Alone] | None, duel: Callable[..., Duel] = run_duel
) -> Comparison:
    """Compare the sides, and time them where they do the same.

    Args:
        contrast: The sides.
        alone: Runs a side of this name in a process of its own; ``None`` where nothing is timed.
        duel: Times two sides in turn.

    Raises:
        Exception: Whatever a side raises, and ``BrokenDuelError`` where its times mean nothing.
    """
    runners: dict[str, Runner] = {}
    traits: dict[str, Traits] = {}
    apart: list[Difference] = []
    first: Seen | None = None
    for name, build in contrast.sides.items():
        training = build()
        runner = runners[name] = runner_of(training)
        traits[name] = replace(runner.traits(), loading=loading_of(training.load))
        seen = look_at(runner, contrast.steps, first)
        apart += [] if first is None else differences(name, seen, first)
        first = first or seen
    found = Comparison(problems=[*disagreements(apart, contrast.rtol), *unlike(traits)])
    if found.problems:
        return found
    one = next(iter(traits.values()))
    kinds, work = ", ".join(sorted(one.products)), show("matmul_flops", one.matmul_flops)
    furthest = max(difference.error for difference in apart)
    found.lines.append(
        f"{kinds}, {work} of products a step; results of {contrast.steps} steps at most {furthest:.1g} apart"
    )
    if alone is None:
        found.lines.append("  nothing was timed (--benchmark-disable)")
        return found
    _time(contrast, runners, {name: alone(name) for name in contrast.sides}, duel, found)
    return found


def _time(
    contrast: Contrast,
    runners: Mapping[str, Runner],
    launched: Mapping[str, Alone],
    run: Callable[..., Duel],
    found: Comparison,
) -> None:
    """Let each pair that is asked for duel, and add what that shows."""
    first, *others = contrast.sides
    wanted = dict.fromkeys([*((name, first) for name in others), *((one.side, one.other) for one in contrast.claims)])

    def duel(side: str, other: str) -> Duel:
        claims = [claim_of(one) for one in contrast.claims if (one.side, one.other) == (side, other)]
        return run(
            Opponent(runners[side]),
            Opponent(runners[other]),
            settled=partial(are_settled, claims),
            max_pairs=max(LOOKS),
            platform=jax.default_backend(),
        )

    duels = {pair: [duel(*pair)] for pair in wanted}
    for speed in contrast.claims:
        pair = speed.side, speed.other
        while needs_another(speed, duels[pair]):
            duels[pair].append(duel(*pair))
        status, why = decide_speed(speed, duels[pair], launched[speed.side].ratio(launched[speed.other]))
        if status is Status.REGRESSED:
            found.problems.append(f"claim: {speed} is broken: {why}")
        elif status is Status.UNDECIDED:
            found.lines.append(f"  undecided: {speed}: {why}")
    ratios = {name: decide(duels[name, first][0]) for name in others}
    found.lines[1:1] = table(contrast.amount, launched, ratios)
    found.lines += [f"  {note}" for note in disturbances(launched, ratios)]
    found.figures = {name: _figures(side, ratios.get(name)) for name, side in launched.items()}


def _figures(side: Alone, ratio: Decision | None) -> dict[str, Any]:
    return {
        "alone_ns": side.run_ns,
        "first_step_ns": side.first_step_s * 1e9,
        "peak_bytes": side.peak_bytes,
        "peak_of_device": side.of_device,
        "ratio": ratio and ratio.ratio,
        "low": ratio and ratio.low,
        "high": ratio and ratio.high,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a side computes."""

    weights: Mapping[str, np.ndarray[Any, Any]]  # its parameters before the first step
    logits: np.ndarray[Any, Any]  # of the batch, before the first step
    loss_of_theirs: float  # the loss of the first side's logits
    losses: tuple[float, ...]  # one for each step
    trained: Mapping[str, np.ndarray[Any, Any]]  # its parameters after the last of them


def look_at(runner: Runner, steps: int, first: Seen | None = None) -> Seen:
    """Run a side from its first weights, and reset it; ``first`` is what the first side has computed."""
    weights, logits = runner.weights(), runner.logits()
    asked = logits if first is None else first.logits
    loss = runner.loss_of(asked) if asked.shape == logits.shape else math.nan
    losses = tuple(runner.wait(runner.step()) for _ in range(steps))
    trained = runner.weights()
    runner.reset()
    return Seen(weights=weights, logits=logits, loss_of_theirs=loss, losses=losses, trained=trained)


def differences(name: str, ours: Seen, theirs: Seen) -> Iterator[Difference]:
    """The largest difference of each stage, in the order in which one follows from the other."""
    steps = [(f"step {number}", *pair) for number, pair in enumerate(zip(ours.losses, theirs.losses, strict=True), 1)]
    moved = _moved(theirs)
    # What a step moves is small beside the weights: a decay that is forgotten would hide behind them.
    most = max((float(np.max(np.abs(array))) for array in moved.values() if array.size), default=0.0)
    stages: dict[str, tuple[Iterable[tuple[str, Any, Any]], float | None]] = {
        "weights": (_by_name(ours.weights, theirs.weights), None),
        "logits": ([("logits", ours.logits, theirs.logits)], None),
        "loss function": ([("the same logits", ours.loss_of_theirs, theirs.loss_of_theirs)], None),
        "loss": (steps, None),
        "weights after training": (_by_name(_moved(ours), moved), most),
    }
    for stage, (pairs, scale) in stages.items():
        compared = [
            _difference(Difference(side=name, stage=stage, place=place), np.asarray(a), np.asarray(b), scale)
            for place, a, b in pairs
        ]
        yield max(compared, key=lambda one: one.error)


def _by_name(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Arrays of one name; a name that one side lacks has an empty array there."""
    for name in sorted({*ours, *theirs}):
        yield name, ours.get(name, np.zeros(0)), theirs.get(name, np.zeros(0))


def _moved(seen: Seen) -> dict[str, np.ndarray[Any, Any]]:
    """By how much training has moved each array; one of another shape than before stays as it is."""
    return {
        name: array - seen.weights[name] if seen.weights[name].shape == array.shape else array
        for name, array in seen.trained.items()
    }


def _difference(
    one: Difference, ours: np.ndarray[Any, Any], theirs: np.ndarray[Any, Any], scale: float | None
) -> Difference:
    if ours.shape != theirs.shape or not ours.size:
        return replace(one, place=f"{one.place} {list(ours.shape)} against {list(theirs.shape)}")
    far = np.abs(ours - theirs)
    worst = int(np.argmax(far))  # the first NaN, where there is one
    scale = float(np.max(np.abs(theirs))) if scale is None else scale
    most = float(far.reshape(-1)[worst])
    error = 0.0 if most == 0 else most / scale if math.isfinite(most) and scale else math.inf
    return replace(one, error=error, ours=float(ours.reshape(-1)[worst]), theirs=float(theirs.reshape(-1)[worst]))


def in_a_process(build: Callable[[], Contrast], needs: Iterable[str], side: str) -> Alone:
    """Run one side in a process of its own, in which no compiler remembers anything: the first step is a first step.

    Raises:
        Exception: Whatever the side raises there.
    """
    with TemporaryDirectory(prefix="jaxgate-") as folder:
        fresh = {"TORCHINDUCTOR_CACHE_DIR": folder, "JAX_ENABLE_COMPILATION_CACHE": "false"}
        with mock.patch.dict(os.environ, fresh), ProcessPoolExecutor(1, get_context("spawn")) as pool:
            return pool.submit(run_alone, build, tuple(needs), side).result()


def run_alone(
    build: Callable[[], Contrast], needs: tuple[str, ...], side: str, clock: Clock = time.perf_counter_ns
) -> Alone:
    """Build a side and run it; the process must have done nothing of the kind before.

    Args:
        build: Builds the contrast.
        needs: Modules that are imported before the clock starts, the same for every side.
        side: Its name.
        clock: Monotonic nanoseconds.
    """
    if "torch" in needs:
        from workloads.contrast.torch_runner import import_compiler  # noqa: PLC0415 - imports PyTorch

        import_compiler()
    jax.devices()  # starts the backend
    make: Callable[[], Training] = build().sides[side]
    before = memory_bytes("VmHWM")
    begin = clock()
    runner = runner_of(make())
    runner.wait(runner.step())
    first_ns = clock() - begin
    for _ in range(WARM_STEPS):
        one = clock()
        runner.wait(runner.step())
        took_ns = max(1, clock() - one)
    of_process, of_device = memory_bytes("VmHWM") - before, runner.peak_bytes()  # resets of the bursts hold more
    calls = max(1, round(BURST_S * 1e9 / took_ns))
    with uncollected():
        step_ns = [Opponent(runner).burst(calls, clock) // calls for _ in range(BURSTS)]
    return Alone(
        first_step_s=first_ns / 1e9,
        step_ns=tuple(step_ns),
        peak_bytes=of_process if of_device is None else of_device,
        of_device=of_device is not None,
    )
