"""A duel in other processes than this one: run again in a fresh one, or with a process for each side; and its time budget."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from jaxgate.judge.claims import decide_claim
from jaxgate.judge.timing.duel import CONFIRM_COUNT, LOOKS, decide
from jaxgate.keep.duel_handoff import Job, read_duels, write_job
from jaxgate.model.claim import Claim
from jaxgate.model.decision import Decision
from jaxgate.model.duel import Duel, RepeatOutcome
from jaxgate.model.numbers import Contract
from jaxgate.model.program import Match
from jaxgate.observe.duel.duel import Side, run_duel
from jaxgate.observe.duel.sides import to_files
from jaxgate.observe.errors import describe
from jaxgate.observe.machine.jax_settings import known_defaults, settings
from jaxgate.observe.machine.recreated_environment import NotRecreatedError, variables_of
from jaxgate.processes.child import Finished
from jaxgate.processes.duel_worker import DUEL_TIMEOUT_S, ready, run_fresh_duel, start_side
from jaxgate.processes.live_worker import WorkerError


@dataclass(frozen=True, slots=True, kw_only=True)
class Environments:
    """What each side of a duel is compiled and run under, where that is not the same."""

    now: Mapping[str, str]  # Today's environment
    baseline: Mapping[str, str]  # the baseline's environment
    variables: Mapping[str, str]  # variables of a process that has neither, before anything was set


@dataclass(frozen=True, slots=True)
class FreshDuel:
    """What a fresh process needs to run a duel again."""

    # its programs in pairs, with their arguments: today's, and the baseline's or the reference
    matches: Sequence[Match]
    platform: str  # where they run
    contract: Contract = "throughput"  # what the time of a call means
    # what the duel with the reference decides; `None` for a duel with the baseline's program
    claim: Claim | None = None
    own_margin: float | None = None  # the case's own margin in a duel with the baseline's program
    environments: Environments | None = None  # of the two sides, if each is to have a process of its own


@contextmanager
def open_sides(duel: FreshDuel) -> Iterator[tuple[Side, Side]]:
    """Today's program and the baseline's, each in a process that has its environment; both end with the block.

    Raises:
        WorkerError: If one of them cannot be had.
        OSError: If no process could be started.
    """
    given = duel.environments
    assert given is not None
    with tempfile.TemporaryDirectory(prefix="jaxgate-") as name:
        folder = Path(name)
        try:
            variables = [
                variables_of(environment, given.variables, duel.platform) for environment in (given.now, given.baseline)
            ]
        except NotRecreatedError as error:
            raise WorkerError(str(error)) from None
        _write(duel, folder)
        with start_side(folder, "now", variables[0]) as now, start_side(folder, "baseline", variables[1]) as baseline:
            yield ready(now), ready(baseline)


def repeat_duel(
    duel: FreshDuel,
    *,
    open_sides: Callable[[FreshDuel], AbstractContextManager[tuple[Side, Side]]] = open_sides,
    run_duel: Callable[..., Duel] = run_duel,
    run_fresh: Callable[[Path], Finished] = run_fresh_duel,
) -> RepeatOutcome:
    """Run a duel again in a fresh process, one at a time; or in two, if each side has its own environment."""
    if duel.environments is None:
        return _repeat_together(duel, run_fresh)
    return _repeat_apart(duel, duel.environments, open_sides, run_duel)


def _repeat_apart(
    duel: FreshDuel,
    given: Environments,
    open_sides: Callable[[FreshDuel], AbstractContextManager[tuple[Side, Side]]],
    run_duel: Callable[..., Duel],
) -> RepeatOutcome:
    """The duel, and as its control the baseline's program against itself, with two new processes each."""
    matches = [replace(one, now=one.baseline, calls=(one.calls[1], one.calls[1])) for one in duel.matches]
    itself = replace(duel, matches=matches, environments=replace(given, now=given.baseline))
    decisions = []
    try:
        for sides in (duel, itself):
            with open_sides(sides) as both:
                found = run_duel(*both, settled=lambda _: False, max_pairs=max(LOOKS), platform=duel.platform)
            decisions.append(_decide(duel, found))
    except WorkerError as error:
        return RepeatOutcome(problem=f"two fresh processes failed: {error}")
    except Exception as error:  # noqa: BLE001 - deleted arrays, a full disk, a duel that means nothing
        return RepeatOutcome(problem=f"two fresh processes gave nothing usable: {describe(error)}")
    case, control = decisions
    return RepeatOutcome(case, control)


def _repeat_together(duel: FreshDuel, run_fresh: Callable[[Path], Finished]) -> RepeatOutcome:
    with tempfile.TemporaryDirectory(prefix="jaxgate-") as name:
        folder = Path(name)
        try:
            _write(duel, folder)
        except Exception as error:  # noqa: BLE001 - deleted arrays, a full disk: the other cases are repeated
            return RepeatOutcome(problem=f"it could not be handed to a fresh process: {describe(error)}")
        try:
            done = run_fresh(folder)
        except TimeoutError:
            return RepeatOutcome(problem=f"a fresh process took more than {DUEL_TIMEOUT_S} s")
        except OSError as error:
            return RepeatOutcome(problem=f"a fresh process could not be started: {error}")
        try:
            duels = read_duels(folder)
            case = _decide(duel, duels["case"])
            control = decide(duels["control"], count=CONFIRM_COUNT, own_margin=duel.own_margin)
        except FileNotFoundError:
            return RepeatOutcome(problem=f"a fresh process failed: {done.last_words}")
        except (KeyError, ValueError) as error:  # damaged, incomplete, or a duel that means nothing
            return RepeatOutcome(problem=f"a fresh process gave nothing usable: {str(error).splitlines()[0]}")
    return RepeatOutcome(case, control)


def _write(duel: FreshDuel, folder: Path) -> None:
    files = [to_files(one.leaves) for one in duel.matches]
    about = {
        "kinds": [kinds for _, kinds in files],
        "platform": duel.platform,
        "contract": duel.contract,
        "seed": secrets.randbits(32),
        "settings": settings(),
    }
    if duel.environments is not None:
        defaults = known_defaults()
        about["environments"] = {"now": dict(duel.environments.now), "baseline": dict(duel.environments.baseline)}
        about["defaults"] = None if defaults is None else asdict(defaults)
    matches = [replace(one, leaves=leaves) for one, (leaves, _) in zip(duel.matches, files, strict=True)]
    write_job(folder, Job(matches=matches, about=about))


def _decide(duel: FreshDuel, found: Duel) -> Decision:
    if duel.claim is not None:
        return decide_claim(duel.claim, found, count=CONFIRM_COUNT)
    return decide(found, count=CONFIRM_COUNT, own_margin=duel.own_margin)


class DuelBudget:
    """Counts what duels take of the seconds that all of them may take together; ``None`` for no limit."""

    def __init__(self, budget_s: float | None) -> None:
        self._budget_ns = None if budget_s is None else budget_s * 1e9
        self._spent_ns = 0

    @property
    def is_left(self) -> bool:
        """Whether another duel may begin."""
        return self._budget_ns is None or self._spent_ns < self._budget_ns

    @contextmanager
    def charged(self, clock: Callable[[], int]) -> Iterator[None]:
        """Count what the block takes, by a clock of nanoseconds."""
        begin = clock()
        try:
            yield
        finally:
            self._spent_ns += clock() - begin
