"""One process for all faults that a worker plants: what has no mistake in it is observed once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults.runner import Workers


@pytest.fixture(scope="session")
def bench(tmp_path_factory) -> Iterator[Workers]:
    """Where faults are planted."""
    workers = Workers(tmp_path_factory.mktemp("faults"))
    with workers.pool:
        yield workers
