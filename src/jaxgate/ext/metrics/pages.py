"""The numbers of a run, for a monitoring system."""

from __future__ import annotations

from jaxgate.ext.metrics.text import openmetrics

PAGES = {"metrics.txt": openmetrics}
"""What is written beside ``results.json``, made of what that says."""
