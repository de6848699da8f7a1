"""``ci/attacks``: an attack that could not be carried out is never held, and a verdict that was fooled is an exit code."""

import runpy
import sys

import pytest
from support.paths import REPOSITORY


@pytest.fixture
def command(monkeypatch):
    """The modules of the command, found as ``python ci/attacks`` finds them, and forgotten afterwards."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(REPOSITORY / "ci" / "attacks")
    import attack
    import attack_runner
    import scratch_project

    yield attack, attack_runner, scratch_project
    for name in set(sys.modules) - before:
        if name in ("attack", "attack_runner", "gated_sources", "scratch_project") or name.startswith("cases_"):
            del sys.modules[name]


def gated(scratch_project, status, code, text=""):
    """A run of one case."""
    case = {"status": status, "findings": [], "time": {"reason": "why"}}
    return scratch_project.Gated(code, text, {"cases": [case]})


def carried_out(command, capsys, run, *arguments):
    """Exit code and text of a command whose one attack does this."""
    attack, runner, _ = command
    code = runner.main(arguments, [attack.Attack("3a", "a fake", run)])
    return code, capsys.readouterr().out


@pytest.mark.parametrize(("outcome", "code"), [("HELD", 0), ("FOOLED", 1), ("NOT_RUN", 1)])
def test_only_what_is_held_is_no_failure(command, capsys, outcome, code):
    attack = command[0]
    seen = attack.Seen(attack.Outcome[outcome], "a | b")
    found, text = carried_out(command, capsys, lambda _: seen)
    assert found == code
    assert f"| 3a | a fake | {seen.outcome} | a \\| b |" in text
    assert f"1 {seen.outcome}" in text


def breaks(_):
    """An attack with an error of its own."""
    raise ZeroDivisionError("by nothing")


def test_an_attack_that_breaks_is_not_held(command, capsys):
    code, text = carried_out(command, capsys, breaks)
    assert code == 1
    assert "could not run | ZeroDivisionError: by nothing" in text


def test_a_project_that_cannot_be_recorded_is_not_held(command, capsys):
    """An interpreter that ends at once records nothing: nothing is known of a verdict."""
    change = command[0].Change({"test_case.py": ""}, held=("SAME", "REGRESSED"))
    code, text = carried_out(command, capsys, change, "--python=false")
    assert code == 1
    assert "could not run | recording ended with exit 1" in text


def test_an_unknown_word_is_no_success(command):
    """Nothing was carried out; a number means its letters, and no other number."""
    attack, runner, _ = command
    known = [attack.Attack(number, "a fake", breaks) for number in ("1", "1a", "11")]
    assert runner.main(["-k", "nothing"], known) == 2
    assert [each.number for each in known if each.chosen("1")] == ["1", "1a"]


@pytest.mark.parametrize(
    ("status", "code", "held", "outcome"),
    [
        ("REGRESSED", 1, ("REGRESSED",), "held"),
        ("REGRESSED", 0, ("REGRESSED",), "FOOLED"),
        ("UNDECIDED", 0, ("UNDECIDED",), "held"),
        ("UNDECIDED", 0, ("REGRESSED",), "FOOLED"),
        ("SAME", 0, ("REGRESSED",), "FOOLED"),
        ("IMPROVED", 2, ("REGRESSED",), "FOOLED"),
    ],
)
def test_a_verdict_and_its_exit_code_go_together(command, status, code, held, outcome):
    attack, _, scratch_project = command
    assert attack.seen_of(gated(scratch_project, status, code), held).outcome == outcome


def test_an_unexpected_red_says_nothing(command):
    """INVALID may be the attack's own fault: it is not held."""
    attack, _, scratch_project = command
    with pytest.raises(attack.CannotRunError, match="expected REGRESSED, found INVALID"):
        attack.seen_of(gated(scratch_project, "INVALID", 1), ("REGRESSED",))


def test_words_that_are_missing_are_no_warning(command):
    attack, _, scratch_project = command
    run = gated(scratch_project, "SAME", 0, "identical program; calls jitted f()")
    assert attack.seen_of(run, ("SAME",), ["calls jitted"]).outcome == "held"
    assert attack.seen_of(run, ("SAME",), ["eager=True"]).outcome == "FOOLED"


def test_a_run_that_left_nothing_judged_nothing(command):
    """Neither is a run of several cases that of one."""
    attack, _, scratch_project = command
    with pytest.raises(attack.CannotRunError, match=r"no results\.json"):
        attack.seen_of(scratch_project.Gated(0, "", None), ("SAME",))


@pytest.mark.parametrize(
    ("status", "code", "outcome"), [("SAME", 0, "held"), ("SAME", 1, "FOOLED"), ("REGRESSED", 1, "FOOLED")]
)
def test_what_is_harmless_passes(command, status, code, outcome):
    attack, _, scratch_project = command
    assert attack.passes(gated(scratch_project, status, code)).outcome == outcome


def test_every_attack_has_a_number_of_its_own(command):
    """All modules of cases can be read, and no JAX is needed for it."""
    del command
    attacks = runpy.run_path(str(REPOSITORY / "ci" / "attacks" / "__main__.py"), run_name="attacks")["ATTACKS"]
    numbers = [attack.number for attack in attacks]
    assert len(set(numbers)) == len(numbers)
    known = {int("".join(filter(str.isdigit, number))) for number in numbers}
    assert known == {*range(1, 25)} - {12}
