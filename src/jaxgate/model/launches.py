"""One case in two environments: what several fresh processes of each recorded."""

from __future__ import annotations

from dataclasses import dataclass

from jaxgate.model.baseline import Baseline


@dataclass(frozen=True, slots=True, kw_only=True)
class Launches:
    """The recordings of one case, a launch each.

    Attributes:
        here: By this environment, in the order taken.
        there: By the other one.
        why_not: Why there are none, where there are none.
    """

    here: tuple[Baseline, ...]
    there: tuple[Baseline, ...]
    why_not: str
