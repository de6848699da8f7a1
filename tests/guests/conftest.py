"""What all projects of guests have in common: their programs are compiled quickly, as no fact speaks of machine code."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.corpora import compiled_quickly


@pytest.fixture(autouse=True)
def _compiled_quickly() -> Iterator[None]:
    with compiled_quickly():
        yield
