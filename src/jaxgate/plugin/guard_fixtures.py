"""Fixtures for tests without a baseline: ``def test_step(no_retrace): with no_retrace(step): …``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from jaxgate.observe import guards


@pytest.fixture
def no_retrace() -> type[guards.no_retrace]:
    """``jaxgate.no_retrace``: a block that must neither trace nor compile."""
    from jaxgate.observe import guards  # noqa: PLC0415 - imports JAX

    return guards.no_retrace


@pytest.fixture
def no_transfer() -> type[guards.no_transfer]:
    """``jaxgate.no_transfer``: a block that must not move anything implicitly."""
    from jaxgate.observe import guards  # noqa: PLC0415 - imports JAX

    return guards.no_transfer


@pytest.fixture
def at_most_bytes() -> type[guards.at_most_bytes]:
    """``jaxgate.at_most_bytes``: a block that may leave so many bytes of arrays behind."""
    from jaxgate.observe import guards  # noqa: PLC0415 - imports JAX

    return guards.at_most_bytes
