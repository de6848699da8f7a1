"""Claims: what must hold for a case on any hardware, with or without a baseline.

A claim about run time holds the subject against a multiple of its reference, by a duel of the two here and now. It is
judged like a slow-down: the same looks, bounds and margin, after the subject's times were divided by the claim's
factor. A lower limit is the same question with the sides exchanged: that the reference's time is at most the inverse
factor times the subject's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import log

from jaxgate.judge.timing.duel import FLOOR_NS, LOOKS, MIN_MARGIN, decide, scaled
from jaxgate.model.claim import ALTERNATIVES, USES, Claim, KnownBreak, claim
from jaxgate.model.decision import Decision, Status
from jaxgate.model.duel import Duel, ReferenceDuel
from jaxgate.model.measurement import Measurement, ReferenceFacts
from jaxgate.model.numbers import STEADY_FACTS
from jaxgate.model.verdict import Finding
from jaxgate.model.workload import Tolerance

COUNT_TOLERANCE = 1e-9

VMEM_BYTES = 128 * 1024 * 1024
"""What the fast memory of a TPU v5e or v6e holds; its compiler puts arrays there that fit. Seen 2026-11-23: on a v5e 29 and
39 of 229 small cases had a broken claim of memory (libtpu 0.0.42 and 0.0.50), all of arrays below 5 MB."""
_SCRATCH = frozenset({"temp_bytes", "peak_bytes"})
_LAID_OUT = _SCRATCH | {"argument_bytes", "output_bytes", "aliased_bytes", "state_bytes"}
SMALL_ON_TPU = KnownBreak(jax=">=0.10", platform="tpu", since="2026-11-23", why="of so little, tiles and VMEM decide")
"""Why a claim of memory is not decided where a TPU's layout decides it, not the program; the facts still gate."""

_MIRRORED = {Status.SLOWER: Status.FASTER, Status.FASTER: Status.SLOWER}


_STEADY = tuple(
    claim(f"{fact} == 0", f"the steady state must not {what}")
    for fact, what in zip(STEADY_FACTS, ("trace", "compile"), strict=True)
)


def universal_claims(measurement: Measurement, tolerances: Iterable[Tolerance] = ()) -> tuple[Claim, ...]:
    """What holds for every case: one trace over the threaded steps, silence after it, and donation that works.

    Of a case that is never called only the last is known.
    """
    traces = measurement.expected_traces
    calls = (
        ()
        if measurement.compiled_only
        else (
            claim(f"traces == {traces}", "state threaded through real steps must not retrace"),
            claim(f"lowerings == {traces}", "nor be lowered again"),
            claim(f"compiles == {traces}", "nor recompile"),
            *(() if measurement.traces_each_call else _STEADY),
        )
    )
    if measurement.eager or not measurement.facts.donated_bytes:  # what inner functions lose is not seen from outside
        return calls
    lost = next((tolerance.absolute for tolerance in tolerances if tolerance.fact == "lost_bytes"), 0)
    return (*calls, claim(f"lost_bytes <= {lost}", "what is donated is reused"))


NO_DUEL = ReferenceDuel()


def check_claims(
    claims: Iterable[Claim], now: Measurement, timed: ReferenceDuel = NO_DUEL, *, tolerances: Iterable[Tolerance] = ()
) -> Iterator[Finding]:
    """Check every claim; one whose numbers are unknown is INVALID, never passed over.

    The claims of every case are added to ``claims``. ``timed`` is the duel of subject and reference.
    """
    for one in (*universal_claims(now, tolerances), *claims):
        yield check_run_claim(one, now, timed) if one.needs_duel else _check(one, now)


def _check(claim: Claim, now: Measurement) -> Finding:
    left, (right, alternative) = quantity(claim.quantity, now), _other(claim, now)
    if left is None or right is None:
        detail = f"cannot be checked: {_missing(claim, now, left)}"
        return Finding(kind="claim", name=str(claim), status=Status.INVALID, now=left, detail=detail)
    allowed = claim.factor * right
    held = _holds(claim, left, allowed)
    known, jax, platform = claim.known_break, now.environment.get("jax"), now.hardware.platform
    if known is not None and (jax is None or not known.covers(jax, platform)):
        known = None
    if known is None and not held and platform == SMALL_ON_TPU.platform and _compares_little(claim, left, right):
        known = SMALL_ON_TPU
    return Finding(
        kind="claim",
        name=str(claim),
        status=Status.SAME if held else Status.EXPECTED if known is not None else Status.REGRESSED,
        now=left,
        against=right if claim.other != "one" else allowed,
        allowed=allowed,
        detail="; ".join(part for part in (claim.why, alternative) if part),
        known_break=known,
    )


def _compares_little(claim: Claim, left: float, right: float) -> bool:
    """Whether a claim holds two layouts or programs against each other that both fit into the fast memory of a TPU."""
    layouts = claim.quantity in _LAID_OUT and claim.other in ("reference", ALTERNATIVES)
    return (layouts or claim.quantity in _SCRATCH) and claim.other != "one" and max(left, right) < VMEM_BYTES


def _missing(claim: Claim, now: Measurement, left: float | None) -> str:
    """Why a claim has no numbers."""
    if left is not None and claim.other == "reference" and now.reference is None:
        return "the case has no reference"
    if left is not None and claim.other == ALTERNATIVES and not now.alternatives:
        return "the case has no alternatives"
    if left is None and claim.quantity in now.unknown:
        return f"{claim.quantity} is unknown: {now.unknown[claim.quantity]}"
    return (
        f"{claim.quantity if left is None or claim.other == ALTERNATIVES else claim.other} is unknown on this backend"
    )


def quantity(name: str, of: Measurement | ReferenceFacts) -> float | None:
    """Look up a fact, a phase or a derived number."""
    if name.startswith(USES):
        called = {**of.operations, **of.kernels} if isinstance(of, Measurement) else {}
        return (
            float(sum(count for label, count in called.items() if name.removeprefix(USES) in label)) if called else None
        )
    for numbers in (of.facts, of.phases):
        if hasattr(numbers, name):
            value = getattr(numbers, name)
            return None if value is None else float(value)
    raise KeyError(name)  # Claim refuses unknown names when it is made


def _other(claim: Claim, now: Measurement) -> tuple[float | None, str]:
    """The right side's number, and which alternative it is of."""
    if claim.other == "one":
        return 1.0, ""
    if claim.other == "reference":
        return None if now.reference is None else quantity(claim.quantity, now.reference), ""
    if claim.other == ALTERNATIVES:
        return _alternative(claim, now)
    if claim.other == "analytic_flops":
        return None if now.analytic_flops is None else float(now.analytic_flops), ""
    return quantity(claim.other, now), ""


def _alternative(claim: Claim, now: Measurement) -> tuple[float | None, str]:
    """The alternative that is hardest to match: the best one, or of an equality the one that is farthest away."""
    left = quantity(claim.quantity, now)
    found = {name: quantity(claim.quantity, alternative) for name, alternative in now.alternatives.items()}
    known = {name: value for name, value in found.items() if value is not None}
    if left is None or not known or len(known) < len(found):
        return None, ""
    hardest = {
        "<=": lambda name: -known[name],
        ">=": lambda name: known[name],
        "==": lambda name: abs(known[name] - left),
    }[claim.relation]
    name = max(sorted(known), key=hardest)
    return known[name], f"{name} has it"


def _holds(claim: Claim, left: float, allowed: float) -> bool:
    slack = 0.0 if float(claim.factor).is_integer() else COUNT_TOLERANCE * abs(allowed)
    if claim.relation == "<=":
        return left <= allowed + slack
    if claim.relation == ">=":
        return left >= allowed - slack
    return abs(left - allowed) <= slack


def breaks(claim: Claim) -> Status:
    """The status of a decision that breaks the claim: slower than an upper limit, faster than a lower one."""
    return Status.SLOWER if claim.relation == "<=" else Status.FASTER


def decide_claim(claim: Claim, duel: Duel, *, count: int | None = None) -> Decision:
    """Judge the pairs taken so far against a limit: in ``duel`` the subject has the place of today's program.

    Returns:
        SLOWER or FASTER than the limit, SAME as it, or UNDECIDED. The ratio and its bounds are those of
        subject / reference; margin and smallest visible effect are relative to the limit.

    Raises:
        BrokenDuelError: If the times mean nothing.
    """
    upper = claim.relation == "<="
    framed = scaled(duel, 1 / claim.factor) if upper else scaled(_exchanged(duel), claim.factor)
    values = framed.logratios
    found = decide(framed, own_margin=_own_margin(duel) if values else None, count=count)
    line = log(1 + found.margin)
    beyond, short_of = sum(value > line for value in values), sum(value < -line for value in values)
    bounds = found.low, found.ratio, found.high
    if upper:
        low, ratio, high = (bound * claim.factor for bound in bounds)
        status, slower, faster = found.status, beyond, short_of
    else:
        high, ratio, low = (claim.factor / bound for bound in bounds)
        status, slower, faster = _MIRRORED.get(found.status, found.status), short_of, beyond
    reasons = {
        Status.SLOWER: f"{slower} of {found.pairs} pairs were more than {found.margin:.1%} slower than that",
        Status.FASTER: f"{faster} of {found.pairs} pairs were more than {found.margin:.1%} faster than that",
        Status.SAME: f"within {found.margin:.1%} of that; detectable beyond it: {found.sees:.1%}",
        Status.UNDECIDED: f"{found.pairs} pairs give {low:.2f} to {high:.2f} ×: too close to decide, margin {found.margin:.1%}",
    }
    return replace(
        found,
        status=status,
        ratio=ratio,
        low=low,
        high=high,
        now_ns=duel.call_ns(duel.now_ns),
        baseline_ns=duel.call_ns(duel.baseline_ns),
        reason=reasons[status],
    )


def hold(claims: Iterable[Claim], duel: Duel) -> bool:
    """Whether a duel decides that every claim holds."""
    return all(decide_claim(claim, duel).status not in (breaks(claim), Status.UNDECIDED) for claim in claims)


def are_settled(claims: Sequence[Claim], duel: Duel) -> bool:
    """Whether a duel may stop: at a look that decides every claim, or at the last look."""
    pairs = len(duel.now_ns)
    if pairs >= max(LOOKS):
        return True
    return pairs in LOOKS and all(decide_claim(claim, duel).status is not Status.UNDECIDED for claim in claims)


def check_run_claim(claim: Claim, now: Measurement, timed: ReferenceDuel) -> Finding:
    """Check one claim about run time; where nothing was timed it is UNDECIDED, of what is never called INVALID."""
    finding = partial(Finding, kind="claim", name=str(claim))
    if now.reference is None:
        return finding(status=Status.INVALID, detail="cannot be checked: the case has no reference")
    if now.compiled_only:
        return finding(status=Status.INVALID, detail=f"cannot be checked: {now.why_not_called}")
    if timed.duel is None:
        return finding(status=Status.UNDECIDED, detail=timed.why_not)
    decision = decide_claim(claim, timed.duel)
    broken = Status.REGRESSED if decision.status is breaks(claim) else Status.SAME
    return finding(
        status=Status.UNDECIDED if decision.status is Status.UNDECIDED else broken,
        now=decision.now_ns,
        against=decision.baseline_ns,
        allowed=claim.factor * decision.baseline_ns,
        detail=claim.why,
        decision=decision,
        remembered=timed.remembered,
    )


def _exchanged(duel: Duel) -> Duel:
    return replace(duel, now_ns=duel.baseline_ns, baseline_ns=duel.now_ns)


def _own_margin(duel: Duel) -> float:
    """The least margin of a claim: 500 ns as a share of the quicker side, so that it is the same if the sides are exchanged."""
    quicker_ns = min(duel.call_ns(duel.now_ns), duel.call_ns(duel.baseline_ns))
    return max(MIN_MARGIN, FLOOR_NS / quicker_ns)
