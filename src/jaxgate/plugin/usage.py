"""What the user cannot have, in pytest's own words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from jaxgate.model import UsageError


@contextmanager
def usage_errors() -> Iterator[None]:
    """Let a request that cannot be carried out end the run as pytest ends it for a bad option: one line, exit code 4."""
    try:
        yield
    except UsageError as error:
        raise pytest.UsageError(str(error)) from error
