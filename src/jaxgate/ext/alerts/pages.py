"""The alerts of a run, also where nothing is red: an empty report takes old alerts away."""

from __future__ import annotations

from jaxgate.ext.alerts.text import code_quality, sarif

PAGES = {"results.sarif": sarif, "codequality.json": code_quality}
"""What is written beside ``results.json``, each made of what that says."""
