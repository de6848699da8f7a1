"""The page of policies is what the code says."""

import pytest
from support.paths import REPOSITORY

from jaxgate.cli.main import main
from jaxgate.judge.policy import PHASE_POLICIES, POLICIES, STORED_PHASE_POLICIES

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


def test_arguments_are_refused(capsys):
    assert main(["policy", "all"]) == 2
    assert "unknown arguments all" in capsys.readouterr().err
