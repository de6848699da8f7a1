"""Ranks of one process."""

import pytest
from support.ranks import Ranks

from jaxgate.ext.ranks import barrier


@pytest.fixture
def ranks(monkeypatch):
    """Makes ranks, and ends them."""
    monkeypatch.setattr(barrier, "TICK_S", 0.02)
    made = []

    def make(count=2, **options):
        made.append(Ranks(count, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()
