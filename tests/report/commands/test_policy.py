"""The page of policies is what the code says."""

import pytest
from support.paths import REPOSITORY

from jaxgate.cli.main import main
from jaxgate.judge.policy import ARRIVAL_POLICIES, PHASE_POLICIES, POLICIES, STORED_PHASE_POLICIES

PAGE = REPOSITORY / "docs" / "policy.md"


def test_the_committed_page_is_what_the_command_prints(capsys):
    """``jaxgate policy > docs/policy.md`` was run after the last change of a policy."""
    assert main(["policy"]) == 0
    assert capsys.readouterr().out == PAGE.read_text(), "run: jaxgate policy > docs/policy.md"


@pytest.mark.parametrize(
    "policy", [*POLICIES, *STORED_PHASE_POLICIES, *PHASE_POLICIES], ids=lambda p: f"{p.name}-{p.relative}"
)
def test_every_policy_has_its_row_and_its_reason(policy):
    """A fact that gates stands in the page, with the reason and the place."""
    rows = [row for row in PAGE.read_text().splitlines() if row.startswith(f"| `{policy.name}` | {policy.better} |")]
    assert any(policy.why in row and policy.where in row for row in rows)
    assert policy.why


S, MS, US = 10**9, 10**6, 10**3
COMPILING = ("trace_ns", "lower_ns", "compile_ns", "first_call_ns")
ROUNDED = {
    "facts": (
        (*POLICIES, *ARRIVAL_POLICIES),
        {
            **dict.fromkeys(("constant_bytes", "widened_bytes", "replicated_bytes"), 1024),
            **dict.fromkeys(("temp_bytes", "xla_bytes"), 4096),
            "code_bytes": 65_536,
            "trace_calls": 2000,
            "scattered_bytes": 100_000,
            **dict.fromkeys(("copied_bytes", "sent_bytes"), 1_000_000),
        },
    ),
    "phases": (PHASE_POLICIES, {**dict.fromkeys(COMPILING, 20 * MS), "host_ns": 20 * US}),
    "stored phases": (
        STORED_PHASE_POLICIES,
        {**dict.fromkeys(COMPILING, 100 * MS), "trace_wait_ns": S, "host_ns": 100 * US, "dispatch_ns": 50 * US},
    ),
}


@pytest.mark.parametrize(("policies", "amounts"), ROUNDED.values(), ids=ROUNDED)
def test_what_the_page_rounds_is_exact(policies, amounts):
    """Amounts of three digits at most and shares of whole per cent stand in the page as they are."""
    assert {policy.name: policy.absolute for policy in policies if policy.absolute > 999} == amounts
    assert all(policy.relative == round(policy.relative, 2) for policy in policies)


def test_arguments_are_refused(capsys):
    assert main(["policy", "all"]) == 2
    assert "unknown arguments all" in capsys.readouterr().err
