"""Claims against alternatives, and claims that a release is known to break: expected failures and unexpected passes."""

from dataclasses import asdict, replace

import pytest
from support.factories import measurement, record, reference

from jaxgate.judge.claims import check_claims
from jaxgate.judge.verdict import judge
from jaxgate.model.claim import KnownBreak, claim
from jaxgate.model.decision import Status
from jaxgate.model.machine import HardwareKey
from jaxgate.report.summary import summary
from jaxgate.report.waivers import expected_failures, unexpected_passes

OLD = KnownBreak(jax="<0.12", platform="cpu", since="2026-11-21", why="the compiler merges what is recomputed")


def now(*, jax="0.10.2", platform="cpu", **facts):
    """A measurement on a release and a platform; the reference takes 20,000 bytes."""
    hardware = HardwareKey(platform=platform, device_kind="AMD EPYC", devices=1)
    return measurement(facts=facts, environment={"jax": jax}, hardware=hardware, reference=reference())


def check(claim, measured):
    """The finding of one claim."""
    return list(check_claims((claim,), measured))[-1]


@pytest.mark.parametrize(
    ("jax", "platform", "temp_bytes", "status"),
    [
        ("0.10.2", "cpu", 20_000, Status.EXPECTED),
        ("0.10.2", "cpu", 10_000, Status.SAME),
        ("0.11.0rc1", "cpu", 20_000, Status.EXPECTED),
        ("0.12.0", "cpu", 20_000, Status.REGRESSED),
        ("0.12.0.1", "cpu", 20_000, Status.REGRESSED),
        ("0.10.2", "gpu", 20_000, Status.REGRESSED),
        ("0.10.2", "gpu", 10_000, Status.SAME),
        ("0.10.2", "cpu", None, Status.INVALID),  # it excuses numbers, not their absence
    ],
)
def test_a_known_break_covers_its_release_and_platform_only(jax, platform, temp_bytes, status):
    """Elsewhere, or on an unknown release, a broken claim is red; where it holds it is never expected to fail."""
    stated = claim("temp_bytes <= 0.7 * reference", known_break=OLD)  # of 20,000
    measured = now(jax=jax, platform=platform, temp_bytes=temp_bytes)
    assert check(stated, measured).status is status
    always = claim("temp_bytes <= 0.7 * reference", known_break=replace(OLD, jax="<1", platform=platform))
    unknown = check(always, replace(measured, environment={})).status
    assert unknown is (status if status in (Status.SAME, Status.INVALID) else Status.REGRESSED)


EXCUSED = claim("temp_bytes <= 0.7 * reference", known_break=OLD)
BROKEN = f"expected: temp_bytes ≤ 0.7 × reference is broken, 20 kB against 20 kB = 1.00 × ({OLD})"
HOLDS = f"holds unexpectedly: temp_bytes ≤ 0.7 × reference ({OLD}); remove its known_break"


@pytest.mark.parametrize(
    ("temp_bytes", "status", "broken", "holds"),
    [(20_000, Status.EXPECTED, [BROKEN], []), (10_000, Status.SAME, [], [HOLDS])],
    ids=["broken as expected", "an unexpected pass"],
)
def test_a_known_break_is_told_and_fails_nothing(temp_bytes, status, broken, holds):
    """Numbers, release, day and reason of what is broken; what holds asks for the known break to be removed."""
    measured = now(temp_bytes=temp_bytes)
    known = record(hardware=measured.hardware, environment=measured.environment, facts=asdict(measured.facts))
    verdict = judge("a/b", [EXCUSED], measured, known, strict=True)
    assert (verdict.status, verdict.fails) == (status, False)
    assert (expected_failures(verdict), unexpected_passes(verdict)) == (broken, holds)
    assert [*broken, *holds][0] in summary([verdict], width=None)[0][2]
    assert judge("a/b", [EXCUSED], measured, None, strict=False).status is Status.NO_BASELINE
    faulty = now(temp_bytes=temp_bytes, host_callbacks=1)
    assert judge("a/b", [EXCUSED, claim("host_callbacks == 0")], faulty, None, strict=False).status is Status.REGRESSED


@pytest.mark.parametrize(
    "wrong",
    [{"jax": "0.10"}, {"jax": ""}, {"platform": ""}, {"why": " "}, {"since": "yesterday"}, {"since": "2026-1-1"}],
)
def test_a_known_break_that_excuses_too_much_is_refused(wrong):
    """Releases, platform, day and reason must be there; a slow program is accepted by a waiver, or not at all."""
    with pytest.raises(ValueError, match="expected"):
        replace(OLD, **wrong)
    with pytest.raises(ValueError, match="accept a slow claim by a waiver"):
        claim("run_ns <= 0.5 * reference", known_break=OLD)


FORMULAS = {"<=": "≤ {} ×", ">=": "≥ {} ×", "==": "="}
ALTERNATIVES = {
    "small": reference(facts={"temp_bytes": 100, "collectives": None}),
    "large": reference(facts={"temp_bytes": 400, "collectives": 2}),
}


@pytest.mark.parametrize(
    ("claim", "temp_bytes", "status", "against", "alternative"),
    [
        (claim("temp_bytes <= 1.25 * alternatives"), 125, Status.SAME, 100, "small"),
        (claim("temp_bytes <= 1.25 * alternatives"), 126, Status.REGRESSED, 100, "small"),
        (claim("temp_bytes >= 0.5 * alternatives"), 200, Status.SAME, 400, "large"),
        (claim("temp_bytes >= 0.5 * alternatives"), 199, Status.REGRESSED, 400, "large"),
        (claim("temp_bytes == alternatives"), 100, Status.REGRESSED, 400, "large"),
        (claim("temp_bytes == alternatives"), 400, Status.REGRESSED, 100, "small"),
    ],
)
def test_a_claim_is_held_against_the_hardest_alternative(claim, temp_bytes, status, against, alternative):
    """The least of an upper limit, the greatest of a lower one, the farthest of an equality; the finding names it."""
    finding = check(claim, measurement(facts={"temp_bytes": temp_bytes}, alternatives=ALTERNATIVES))
    assert (finding.status, finding.against) == (status, against)
    assert finding.detail.endswith(f"{alternative} has it")
    assert finding.name == f"temp_bytes {FORMULAS[claim.relation].format(claim.factor)} alternatives"


@pytest.mark.parametrize(
    ("claim", "alternatives", "why"),
    [
        (claim("collectives <= alternatives"), ALTERNATIVES, "collectives is unknown on this backend"),
        (claim("temp_bytes <= alternatives"), {}, "the case has no alternatives"),
    ],
)
def test_a_claim_whose_rivals_say_nothing_is_invalid(claim, alternatives, why):
    """One alternative without the number could be the best: nothing is claimed of the rest."""
    finding = check(claim, measurement(facts={"collectives": 1}, alternatives=alternatives))
    assert finding.status is Status.INVALID
    assert finding.detail == f"cannot be checked: {why}"
