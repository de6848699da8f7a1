"""A duel that a fresh process does over again."""

from __future__ import annotations

import secrets
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxgate.judge import CONFIRM_COUNT, decide, decide_claim
from jaxgate.keep import Job, read_duels, write_job
from jaxgate.model import Claim, Contract, Decision, Duel, RepeatOutcome, StoredProgram
from jaxgate.observe.duel import to_files
from jaxgate.observe.errors import describe
from jaxgate.observe.machine import settings
from jaxgate.processes.duel_worker import DUEL_TIMEOUT_S, run_fresh_duel


@dataclass(frozen=True, slots=True)
class FreshDuel:
    """What a fresh process needs to run a duel again.

    Attributes:
        now: Today's program.
        baseline: The other: the baseline's program, or the reference.
        leaves: The arguments of both.
        platform: Where they run.
        contract: What the time of a call means.
        claim: What the duel with the reference decides; ``None`` for a duel with the baseline's program.
        own_margin: The case's own margin in a duel with the baseline's program.
    """

    now: StoredProgram
    baseline: StoredProgram
    leaves: list[Any]
    platform: str
    contract: Contract = "pipelined"
    claim: Claim | None = None
    own_margin: float | None = None


def repeat_duel(duel: FreshDuel) -> RepeatOutcome:
    """Run a duel again in a fresh process, one at a time."""
    with tempfile.TemporaryDirectory(prefix="jaxgate-") as name:
        folder = Path(name)
        try:
            _write(duel, folder)
        except Exception as error:  # noqa: BLE001 - deleted arrays, a full disk: the other cases are repeated
            return RepeatOutcome(problem=f"it could not be handed to a fresh process: {describe(error)}")
        try:
            done = run_fresh_duel(folder)
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
    leaves, kinds = to_files(duel.leaves)
    about = {
        "kinds": kinds,
        "platform": duel.platform,
        "contract": duel.contract,
        "seed": secrets.randbits(32),
        "settings": settings(),
    }
    write_job(folder, Job(now=duel.now, baseline=duel.baseline, leaves=leaves, about=about))


def _decide(duel: FreshDuel, found: Duel) -> Decision:
    if duel.claim is not None:
        return decide_claim(duel.claim, found, count=CONFIRM_COUNT)
    return decide(found, count=CONFIRM_COUNT, own_margin=duel.own_margin)
