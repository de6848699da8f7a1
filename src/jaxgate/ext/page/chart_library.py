"""The JavaScript that draws the charts of a page: made by vl-convert, which takes seconds, and kept for the next page.

It lies in the user's cache and not in pytest's: that is part of a checkout, and a page must not run what a pull request
has put there.
"""

from __future__ import annotations

from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from jaxgate.keep.files import read_text, write_atomic
from jaxgate.keep.machine import cache_folder

_DISTRIBUTION = "vl-convert-python"


def chart_library(cache: Path | None = None) -> str:
    """The program, for the page itself.

    Args:
        cache: Where it is kept; the user's cache by default.

    Returns:
        JavaScript; empty where vl-convert is not installed, or does not work here.
    """
    try:
        file = (cache_folder() if cache is None else cache) / "charts" / f"{version(_DISTRIBUTION)}.js"
    except PackageNotFoundError:
        return ""
    with suppress(OSError, ValueError):
        return read_text(file)
    try:
        import vl_convert  # noqa: PLC0415 - 84 MB, wanted once

        program = str(vl_convert.javascript_bundle())  # type: ignore[call-arg] # its stub forgets the default
    except Exception:  # noqa: BLE001 - native code of others: a page without charts is better than none
        return ""
    with suppress(OSError):  # it is made anew the next time
        write_atomic(file, program.encode())
    return program
