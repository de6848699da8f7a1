"""The only room that touches disk: baselines, their log, and what is remembered between runs."""
