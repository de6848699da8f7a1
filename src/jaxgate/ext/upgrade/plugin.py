"""What pytest runs of an upgrade in each of its two environments."""

from __future__ import annotations

import pytest

from jaxgate.plugin.stash import SETTINGS


def configure(config: pytest.Config) -> None:
    """Take notes of what happens here, where an upgrade asks for them."""
    into = config.stash[SETTINGS].notes_into
    if into is not None:
        from jaxgate.ext.upgrade.child import NoteTaker  # noqa: PLC0415 - what one kind of process needs

        config.pluginmanager.register(NoteTaker(config, into), "jaxgate-notes")
