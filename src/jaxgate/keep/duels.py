"""Duels of subject and reference, remembered between runs. They may be forgotten at any time: that costs time only."""

from __future__ import annotations

import json

from jaxgate.keep.references import ReferenceCache
from jaxgate.keep.strict import adapter_of
from jaxgate.model import Duel


class DuelCache:
    """Raw times by the hash of everything that they depend on, beside what is remembered of references.

    Args:
        entries: Where references are remembered, or nowhere.
    """

    def __init__(self, entries: ReferenceCache) -> None:
        self._entries = entries

    def load(self, key: str) -> Duel | None:
        """Give back what was saved under a key; ``None`` if there is nothing or it cannot be read."""
        found = self._entries.load(key)
        if found is None:
            return None
        try:
            return adapter_of(Duel).validate_json(json.dumps(found[0]))
        except ValueError:
            return None

    def save(self, key: str, duel: Duel) -> None:
        """Keep a duel under a key."""
        self._entries.save(key, adapter_of(Duel).dump_python(duel, mode="json"), [])
