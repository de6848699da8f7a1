"""``jax.checkpoint`` that is lost, keeps more than before, or is not held back: memory instead of recomputation."""

from __future__ import annotations

from collections.abc import Iterator

from jaxgate.judge.causes.growth import count_of, shrunk
from jaxgate.judge.causes.quantities import BUFFERS
from jaxgate.model import EACH_TURN, Baseline, Cause, Measurement

_BARRIER = "stablehlo.optimization_barrier"
_STORE = "stablehlo.dynamic_update_slice"
_READ = "stablehlo.dynamic_slice"
_DEAR = frozenset(
    {
        "stablehlo.cosine", "stablehlo.sine", "stablehlo.tanh", "stablehlo.exponential", "stablehlo.log", "stablehlo.logistic",
        "stablehlo.exponential_minus_one", "stablehlo.log_plus_one", "stablehlo.power", "stablehlo.sqrt", "stablehlo.rsqrt",
        "stablehlo.cbrt", "stablehlo.tan", "stablehlo.atan2", "chlo.erf", "stablehlo.sort", "stablehlo.fft",
        "stablehlo.reduce_window",
    }
)  # fmt: skip
"""What remat is used to compute twice, besides products. Cheap operations come and go with what is kept."""


def keeps_more(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    """Less is computed than before: what remat recomputed is kept now.

    Fewer matrix products show it, if each product of the baseline is still made. Where they are as many, fewer dear operations
    show it, if the baseline held something back by a barrier or today's loops keep more arrays for later.

    Whether memory grew is not asked here: a cause is shown only where a quantity that it explains is red.
    """
    if baseline is None or None in (now.facts.matmul_flops, baseline.facts.matmul_flops):
        return
    turns = [any(label.endswith(EACH_TURN) for label in side.matmuls) for side in (now, baseline)]
    before, after = (count_of(side.operations, _BARRIER) for side in (baseline, now))
    fewer = ""
    if turns[0] == turns[1] and (now.facts.matmul_flops or 0) < (baseline.facts.matmul_flops or 0):
        fewer = shrunk(now.matmuls, baseline.matmuls) if _still_computes(now, baseline) else ""
    elif now.facts.matmul_flops == baseline.facts.matmul_flops and (before or _carries_more(now, baseline)):
        kinds = [{name: count_of(side.operations, name) for name in sorted(_DEAR)} for side in (now, baseline)]
        fewer = shrunk(*kinds) if all(kinds[0][name] <= kinds[1][name] for name in _DEAR) else ""
    if fewer:
        seen = f" (optimization_barrier {before} → {after})" if before > after else ""
        text = f"less is recomputed, so more is kept: remat is lost or keeps more{seen}; {fewer}"
        # the cost model counts what a loop keeps
        yield Cause(text=text, explains=BUFFERS | {"xla_flops", "output_bytes"}, root=True)


def held_back_no_more(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    """The same products and fewer barriers: nothing keeps a recomputation from being merged, or done at once."""
    if baseline is None or now.facts.matmul_flops != baseline.facts.matmul_flops:
        return
    before, after = (count_of(side.operations, _BARRIER) for side in (baseline, now))
    if before > after:
        text = f"a recomputation is not held back until it is needed: optimization_barrier {before} → {after}"
        yield Cause(text=text, explains=BUFFERS | {"largest_batch"}, root=True)


def _carries_more(now: Measurement, baseline: Baseline) -> bool:
    """Whether loops store more, and as much more is read again: by the loop that goes back."""
    stored, read = (count_of(now.operations, name) - count_of(baseline.operations, name) for name in (_STORE, _READ))
    return 0 < stored <= read


def _still_computes(now: Measurement, baseline: Baseline) -> bool:
    """Whether each product that is made less often is still made: what is gone altogether is computed in another way."""
    return all(now.matmuls.get(label) for label in baseline.matmuls)
