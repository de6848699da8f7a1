"""What is said of a jax that is newer than the newest one that jaxgate was tested with: it is tried, not refused."""

from __future__ import annotations

from packaging.version import Version

TESTED = "0.12"
"""The newest minor release that all tests were run with."""


def untested(found: str) -> str:
    """One line about a newer jax; empty for one that was tested.

    Args:
        found: The version that is installed.
    """
    if Version(found).release[:2] <= Version(TESTED).release:
        return ""
    return (
        f"jax {found} is newer than what jaxgate was tested with ({TESTED}): it is tried as it is, and what cannot be read "
        "of it is unknown, with its reason; a newer jaxgate may know it"
    )
