"""Pure functions from measurements and baselines to verdicts. No JAX, no files, no clock."""

from jaxgate.judge.verdict import judge, judge_invalid

__all__ = ["judge", "judge_invalid"]
