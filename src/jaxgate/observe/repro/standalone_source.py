"""The text of the part of a reproduction file that is the same in all of them."""

from __future__ import annotations

import inspect

from jaxgate.observe.repro import standalone

_BEGIN = "# -- from here on: the file --\n"


def standalone_source() -> str:
    """Imports and functions, in as few lines as they have, without what only our own tools read."""
    return inspect.getsource(standalone).partition(_BEGIN)[2].strip().replace("\n\n\n", "\n\n") + "\n"
