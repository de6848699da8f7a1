"""A plugin of pytest that breaks the judge on purpose: both sides of a duel are exchanged. ``broken.py`` loads it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from jaxgate.judge.timing import duel
from jaxgate.model.decision import Decision
from jaxgate.model.duel import Duel

_decide = duel.decide


def _reversed(found: Duel, *arguments: Any, **options: Any) -> Decision:
    return _decide(replace(found, now_ns=found.baseline_ns, baseline_ns=found.now_ns), *arguments, **options)


setattr(duel, "decide", _reversed)  # noqa: B010 - a module's function, which no type checker lets be another
